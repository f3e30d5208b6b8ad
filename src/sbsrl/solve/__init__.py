"""Solvers of Problem (1). Each is in a module of its own, which is imported when it is chosen (`sbsrl.parts`)."""

from .protocol import Solution, Solver

__all__ = ["Solution", "Solver"]
