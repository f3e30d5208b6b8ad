"""Problem (1) for policies that are networks, as in the paper: a soft actor-critic with critics for every sample."""
