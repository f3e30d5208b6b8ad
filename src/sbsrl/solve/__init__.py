"""Turning a problem into a policy."""

from .icem import ICEM, Plan
from .receding import RecedingHorizon, Solution, solve

__all__ = ["ICEM", "Plan", "RecedingHorizon", "Solution", "solve"]
