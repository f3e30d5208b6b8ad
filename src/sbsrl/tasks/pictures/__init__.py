"""Drawings of tasks that are only equations. Each is a function of the states of an episode so far."""
