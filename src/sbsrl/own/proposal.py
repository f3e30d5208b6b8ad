"""Prior knowledge of a user's system, proposed from data, a simulator, or both, and checked where it can be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..costs import Cost
from ..errors import UserError
from ..transitions import Transitions, split_episodes
from .description import Description
from .gp_proposal import with_gp
from .knowledge import Knowledge, MethodNumbers
from .settings import INFO
from .system import OwnSystem
from .task import points_of, traced_signals

__all__ = ["LARGEST_GP", "Proposal", "explain_belief", "propose"]

MOST_STARTS = 64
LARGEST_GP = 12
"""Numbers in (observation, action) up to which a Gaussian process is proposed."""
MOST_GP_POINTS = 4000
"""Transitions that it may have to hold: those of the data and of the episodes to come."""
FEWEST_FOR_NETWORKS = 1000
"""Transitions below which networks have nothing to learn from."""
SAMPLES = {"gp": 30, "ensemble": 10}
TIGHTENING = 0.03
"""Share of the budget by which plans stay below it."""


@dataclass(frozen=True)
class Proposal:
    """What is proposed, and what there is to say about it, a sentence each."""

    knowledge: Knowledge
    said: tuple[str, ...]


def propose(
    system: OwnSystem,
    shape: Description,
    data: Transitions | None,
    costs: Sequence[Cost],
    *,
    belief: str = "",
    episodes: int = 10,
    seed: int = 0,
) -> Proposal:
    """A prior for a system of this shape, with data or a simulator; `belief` insists on one."""
    said: list[str] = []
    if data is None and not system.settings.simulator:
        raise UserError("nothing says how the system moves: give recorded data, or simulator=...")
    starts = _starts(system, shape, data)
    points = points_of(starts, shape.action_low, shape.action_high, data)
    traced = traced_signals(system, points)
    how = _signals(system, traced, data, said)
    kind = _belief(shape, data, episodes, belief, said)
    knowledge = Knowledge(
        system=system.spec,
        shape=shape,
        starts=tuple(tuple(row) for row in starts.tolist()),
        reward=how[0],
        costs=how[1:],
        belief=kind,
        method=MethodNumbers(SAMPLES[kind], _tightening(costs, data), 0.0),
        source=_source(system, data),
    )
    if kind == "gp":
        knowledge = with_gp(system, knowledge, data, points, seed, said)
    return Proposal(knowledge, tuple(said))


def _source(system: OwnSystem, data: Transitions | None) -> str:
    parts = []
    if data is not None:
        parts.append(f"{len(data.actions)} recorded transitions of {len(split_episodes(data))} episodes")
    if system.settings.simulator:
        parts.append(f"the simulator {system.settings.simulator}")
    return f"Made from {' and '.join(parts)}."


def _starts(system: OwnSystem, shape: Description, data: Transitions | None) -> Float[np.ndarray, "K dx"]:
    """Where episodes begin: as the user says, else as the recorded ones did."""
    given = system.settings.start
    if given:
        if len(given) != shape.state_size:
            raise UserError(f"start has {len(given)} numbers, and an observation has {shape.state_size}.")
        return np.array([given], float)
    if data is None:
        raise UserError(
            "nothing says where episodes begin: give recorded data, or start=... with the first observation."
        )
    return np.array([each.states[0] for each in split_episodes(data)][:MOST_STARTS])


def _signals(system: OwnSystem, traced: tuple[Any, ...], data: Transitions | None, said: list[str]) -> tuple[str, ...]:
    """For reward and each cost whether it is known or learned."""
    names = ("reward", *(f"cost '{name}'" for name, _ in system.settings.costs))
    given = (bool(system.settings.reward), *(word.partition(":")[0] != INFO for _, word in system.settings.costs))
    how = []
    for name, each, is_function in zip(names, traced, given, strict=True):
        how.append("known" if each is not None else "learned")
        if each is not None:
            said.append(f"The {name} is a known function.")
        elif is_function:
            said.append(
                f"The {name} is a function that cannot be traced (it branches on values, or calls what JAX does not "
                "have), so it is learned from data; write it with numpy alone to have it known exactly."
            )
        else:
            said.append(f"The {name} is what the system reports, so it is learned from data.")
        if each is None and data is None:
            raise UserError(
                f"the {name} must be learned, and there are no data; record some, or give it as a function that numpy "
                "can compute."
            )
    return tuple(how)


def explain_belief(shape: Description, rows: int, episodes: int, wanted: str) -> tuple[str, str]:
    """Which belief is proposed for so many recorded transitions and episodes to come, and why, in words."""
    size, points = shape.state_size + shape.action_size, rows + episodes * shape.horizon
    fits = size <= LARGEST_GP and points <= MOST_GP_POINTS
    why = f"{size} numbers in observation and action, and {points} transitions with those of {episodes} episodes"
    limits = f"{LARGEST_GP} and {MOST_GP_POINTS}"
    if wanted:
        return wanted, f"The belief is {wanted}, as you say ({why})."
    if fits:
        return "gp", f"The belief is a Gaussian process: {why}, which it can hold (up to {limits})."
    return (
        "ensemble",
        f"The belief is an ensemble of networks: {why}, too many for a Gaussian process (up to {limits}).",
    )


def _belief(shape: Description, data: Transitions | None, episodes: int, wanted: str, said: list[str]) -> str:
    rows = 0 if data is None else len(data.actions)
    chosen, words = explain_belief(shape, rows, episodes, wanted)
    said.append(words)
    kind = (
        "ensemble" if chosen == "ensemble" else "gp"
    )  # a belief of the user's own has the prior of a Gaussian process
    if kind == "ensemble" and rows < FEWEST_FOR_NETWORKS:
        said.append(
            f"Networks learn little from {rows} transitions; record {FEWEST_FOR_NETWORKS} or more, or plan shorter "
            "episodes so that a Gaussian process fits."
        )
    return kind


def _tightening(costs: Sequence[Cost], data: Transitions | None) -> tuple[float, ...]:
    """A share of each budget; where every step counts and data show how low a cost can be, of the way from there."""
    found = []
    for i, cost in enumerate(costs):
        recorded = cost.aggregation == "statewise" and data is not None and len(data.costs)
        room = abs(cost.budget - data.costs[:, i].min()) if recorded and data is not None else abs(cost.budget)
        found.append(float(f"{TIGHTENING * room or 1e-3:.2g}"))
    return tuple(found)
