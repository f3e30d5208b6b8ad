"""Turning a problem into a policy."""

from .icem import ICEM, Plan
from .protocol import Decision, Policy, Solution, Solver
from .receding import RecedingHorizon, ReplanningSolver

__all__ = ["ICEM", "Decision", "Plan", "Policy", "RecedingHorizon", "ReplanningSolver", "Solution", "Solver"]
