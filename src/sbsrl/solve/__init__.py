"""Solvers of Problem (1): iCEM with replanning, and search over a class of policies."""

from .gradient import GradientSearch
from .icem import ICEM, Memory, Plan
from .policy_search import ClassPolicy, EvolutionSearch, ExactSearch
from .protocol import Decision, Policy, Solution, Solver
from .receding import RecedingHorizon, ReplanningSolver
from .returns import Quadrature, Returns, Scenarios, expectation

__all__ = [
    "ICEM",
    "ClassPolicy",
    "Decision",
    "EvolutionSearch",
    "ExactSearch",
    "GradientSearch",
    "Memory",
    "Plan",
    "Policy",
    "Quadrature",
    "RecedingHorizon",
    "ReplanningSolver",
    "Returns",
    "Scenarios",
    "Solution",
    "Solver",
    "expectation",
]
