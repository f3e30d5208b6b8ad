"""The beginning of a run on a user's system: what is known of it, from data, a simulator, or cautious first episodes.

Where nothing was recorded, some episodes are played near what is known to be safe: a fallback controller, a safe
action, or for want of both the middle of the action range, cut short when half of a budget is in use.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from ..costs import Cost, total
from ..errors import UserError
from ..own.caution import CUT, Cautious, EarlyEnd, Share, seed_of, strength
from ..own.description import Description, describe_system
from ..own.entry import read_own
from ..own.fallback import Fallback
from ..own.proposal import LARGEST_GP, Proposal, explain_belief, propose
from ..own.settings import OwnSettings
from ..own.signals import function
from ..own.system import DressedEnv, OwnSystem
from ..own.task import points_of, traced_signals
from ..settings import RunSettings, Text
from ..systems.deadline import within
from ..systems.episode import Guard, Played, run_episode
from ..systems.faults import FAILURES, STEP_TIMEOUT, stop
from ..transitions import Transitions
from ..types import PRNGKey
from ..validation import Kind, Numbers, kinds
from .system import CLOSE_TIMEOUT

__all__ = [
    "UNLIMITED",
    "Asked",
    "FirstEpisodes",
    "asked_of",
    "first_seed",
    "joined",
    "opened_system",
    "projected",
    "proposal_of",
]


@dataclass(frozen=True, eq=False)
class Asked:
    """A user's system and what was said of it."""

    system: OwnSystem
    shape: Description
    costs: tuple[Cost, ...]
    data: Transitions | None
    """What was recorded."""
    belief: str
    episodes: int
    step_timeout: float

    @property
    def first_episodes(self) -> int:
        """How many cautious ones a run begins with, if it needs any."""
        return self.system.settings.first_episodes

    @property
    def rows(self) -> int:
        """Transitions before the first planned episode: recorded ones, or those of first episodes if none is cut."""
        if self.data is not None:
            return len(self.data.actions)
        return self.first_episodes * self.shape.horizon if self.needs_episodes else 0

    @cached_property
    def needs_episodes(self) -> bool:
        """Whether data must be played: none were given, and no simulator and functions take their place."""
        settings, shape = self.system.settings, self.shape
        if self.data is not None:
            return False
        large = shape.state_size + shape.action_size > LARGEST_GP
        if large or self.belief == "ensemble" or not (settings.simulator and settings.start):
            return True
        points = points_of(np.array([settings.start]), shape.action_low, shape.action_high, None)
        return any(signal is None for signal in traced_signals(self.system, points))

    def proposed_belief(self) -> tuple[str, str]:
        """The belief of a run, and why, in words."""
        return explain_belief(self.shape, self.rows, self.episodes, self.belief)


UNLIMITED = 1e30
"""A budget where none was given and none is needed."""


def asked_of(spec: str, changes: Mapping[str, Any], priced: bool = True) -> Asked:
    """What the changes of settings say of a system; it is opened for its shape, and not reset.

    Without a budget for each cost it is refused, unless it need not be `priced`.
    """
    settings, run = _own_settings(changes), kinds(RunSettings)
    system = OwnSystem(spec, settings)
    budgets = _value(changes, "budget", Numbers(), None)
    if budgets is None and not priced:
        budgets = (UNLIMITED,) * len(settings.cost)
    if budgets is None:
        raise UserError(f"the budget of {spec} is yours to say: how much may an episode cost? Give budget=...")
    costs = settings.priced(budgets)
    with opened_system(system) as env:
        shape = describe_system(env, settings, spec)
    settings.check(shape.action_low, shape.action_high, shape.state_size)
    return Asked(
        system,
        shape,
        costs,
        data=read_own(system, shape, _value(changes, "data", run["data"], "")),
        belief=str(changes.get("belief", "")),
        episodes=_value(changes, "episodes", run["episodes"], 10),
        step_timeout=_value(changes, "step_timeout", run["step_timeout"], STEP_TIMEOUT),
    )


@contextmanager
def opened_system(system: OwnSystem, watched: Callable[[Any], Any] = lambda env: env) -> Iterator[DressedEnv]:
    """The system while it is open. One that cannot be closed, or not in time, has been used all the same."""
    env = system.open(watched)
    try:
        yield env
    finally:
        with suppress(*FAILURES):
            within(CLOSE_TIMEOUT, env.close)


def _own_settings(changes: Mapping[str, Any]) -> OwnSettings:
    known = kinds(OwnSettings)
    values = ((item.name, _value(changes, item.name, known[item.name], None, "task")) for item in fields(OwnSettings))
    return OwnSettings(**{name: value for name, value in values if value is not None})


def _value(changes: Mapping[str, Any], name: str, kind: Kind, default: Any, group: str = "run") -> Any:
    value = changes.get(name, changes.get(f"{group}.{name}"))
    if value is None:
        return default
    return kind.parse(name, value) if isinstance(value, Text) else kind.read(name, value)


def _first_key(seed: int, number: int) -> PRNGKey:
    return jax.random.fold_in(jax.random.key(seed), 2**30 + number)


def first_seed(seed: int, number: int) -> int:
    """Of the reset of the cautious episode with this number, counted from 0, of a run with this seed."""
    return seed_of(_first_key(seed, number))


class FirstEpisodes:
    """Cautious episodes on an opened system, each of which knows how the ones before it went."""

    def __init__(self, asked: Asked, seed: int, before: Sequence[Played] = ()) -> None:
        """All their randomness follows from the seed; `before` are those that were played already."""
        self._asked, self._seed, self._before = asked, seed, list(before)
        self._base, self._trusted = _base(asked)
        settings, shape = asked.system.settings, asked.shape
        self.guard = Guard(
            state_size=shape.state_size,
            costs=len(asked.costs),
            step_timeout=asked.step_timeout,
            safe_action=settings.safe_action or None,
            state_names=shape.state_names,
            fallback=self._base if isinstance(self._base, Fallback) else None,
            action_limits=tuple(zip(shape.action_low, shape.action_high, strict=True)),
            region=settings.region(shape.state_size),
        )

    def play(self, env: gymnasium.Env[Any, Any], steps: int, unrest: float | None = None) -> Played:
        """The next one, of at most so many steps. Raises ResetFault, and Interrupted, as any episode does.

        An episode that is cut short because too much of a budget is in use ends with the safe action, if one is known.
        """
        shape, costs, floors = self._asked.shape, self._asked.costs, self._floors()
        key = _first_key(self._seed, len(self._before))
        strong = strength([_quiet(costs, each) for each in self._before]) if unrest is None else unrest
        share = Share(costs, floors)
        policy = Cautious(self._base, shape.action_low, shape.action_high, share, strong, seed_of(key))
        system = EarlyEnd(env, costs, floors, 1.0 if self._trusted else CUT)
        played = run_episode(system, policy, seed_of(key), key, steps, guard=self.guard)
        if system.cut and (self.guard.safe_action or self.guard.fallback):
            stop(env, self.guard, last=played.episode.states[-1])
        self._before.append(played)
        return played

    def _floors(self) -> list[float]:
        """The lowest cost of a step so far, of each cost."""
        columns = [np.concatenate([[np.inf], *(p.episode.costs[:, i] for p in self._before)]) for i in self._indices]
        return [float(column.min()) for column in columns]

    @property
    def _indices(self) -> range:
        return range(len(self._asked.costs))


def _quiet(costs: Sequence[Cost], played: Played) -> bool:
    """Whether an episode went on to its end and kept all budgets."""
    ended = played.episode.ended in {"horizon", "terminated"}
    totals = [total(played.episode.costs[:, i], cost.aggregation) for i, cost in enumerate(costs)]
    return ended and all(each <= cost.budget for each, cost in zip(totals, costs, strict=True))


def _base(asked: Asked) -> tuple[Any, bool]:
    """What cautious episodes stay near, and whether it keeps the system safe by itself."""
    settings, shape = asked.system.settings, asked.shape
    if settings.fallback:
        control = function(settings.fallback, "fallback")
        return Fallback(control, shape.action_low, shape.action_high, shape.state_size), True
    if settings.safe_action:
        return np.array(settings.safe_action, float), False
    return (np.array(shape.action_low) + np.array(shape.action_high)) / 2, False


def projected(cost: Cost, charged: Float[np.ndarray, " T"], horizon: int) -> float:
    """What a whole episode would have cost, had it gone on as it did until it was cut short."""
    if cost.aggregation == "sum" and len(charged):
        return float(charged.mean()) * horizon
    return total(charged, cost.aggregation)


def joined(played: list[Played]) -> Transitions:
    """All their transitions."""
    parts = [each.episode.transitions for each in played]
    return Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def proposal_of(asked: Asked, played: list[Played], seed: int) -> Proposal:
    """The prior that recorded data or these episodes, and the simulator if there is one, suggest."""
    return propose(
        asked.system,
        asked.shape,
        joined(played) if played else asked.data,
        asked.costs,
        belief=asked.belief,
        episodes=asked.episodes,
        seed=seed,
    )
