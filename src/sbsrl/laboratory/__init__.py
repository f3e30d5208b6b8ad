"""Where the theorems are put to the test: small worlds in which the theory's own numbers can be afforded."""
