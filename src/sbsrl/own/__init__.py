"""Systems of a user's own: found, opened, described, and what is known of them beforehand."""
