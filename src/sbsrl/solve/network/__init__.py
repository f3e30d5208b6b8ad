"""Policies that are networks: what all solvers that train them have in common."""
