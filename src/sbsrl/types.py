"""Array types, defined once. Axes: dx state, da action, dz = dx + da, T episode, H plan, H1 = H + 1, M samples."""

from collections.abc import Callable

from jaxtyping import Array, Bool, Float, Int, Key

__all__ = [
    "Action",
    "Actions",
    "Dynamics",
    "Flag",
    "Index",
    "Input",
    "PRNGKey",
    "Scalar",
    "State",
    "States",
    "StepFunction",
    "TransitionFunction",
]

PRNGKey = Key[Array, ""]
Scalar = Float[Array, ""]
Index = Int[Array, ""]
Flag = Bool[Array, ""]

State = Float[Array, " dx"]
Action = Float[Array, " da"]
Input = Float[Array, " dz"]
States = Float[Array, "H1 dx"]
Actions = Float[Array, "H da"]

Dynamics = Callable[[State, Action], State]
"""A map (x_t, a_t) to x_{t+1}: the true one, the nominal one, or one sample."""

StepFunction = Callable[[State, Action, PRNGKey], State]
"""A map with noise: one step of the true system."""

TransitionFunction = Callable[[State, Action, State], Scalar]
"""A reward or a cost of a transition (x_t, a_t, x_{t+1})."""
