"""The beginning of a run on a user's system: what is known of it, from data, a simulator, or cautious first episodes.

Where nothing was recorded, some episodes are played near what is known to be safe: a fallback controller, a safe
action, or for want of both the middle of the action range, cut short when half of a budget is in use.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np

from ..costs import Cost
from ..errors import UserError
from ..own.caution import Cautious, EarlyEnd, seed_of, strength
from ..own.description import Description, describe_system
from ..own.entry import read_own
from ..own.fallback import Fallback
from ..own.proposal import LARGEST_GP, Proposal, propose
from ..own.settings import OwnSettings
from ..own.signals import function
from ..own.system import OwnSystem
from ..settings import RunSettings, Text
from ..systems.episode import Guard, Played, run_episode
from ..systems.faults import STEP_TIMEOUT
from ..transitions import Transitions
from ..validation import Kind, Numbers, kinds

__all__ = [
    "UNLIMITED",
    "Asked",
    "asked_of",
    "first_episode",
    "first_episodes",
    "joined",
    "proposal_of",
]


@dataclass(frozen=True)
class Asked:
    """A user's system and what was said of it."""

    system: OwnSystem
    shape: Description
    costs: tuple[Cost, ...]
    data: str
    belief: str
    episodes: int
    step_timeout: float

    @property
    def first_episodes(self) -> int:
        """How many cautious ones a run begins with, if it needs any."""
        return self.system.settings.first_episodes

    @property
    def needs_episodes(self) -> bool:
        """Whether neither data nor a simulator say how the system moves and where it begins."""
        settings = self.system.settings
        large = self.shape.state_size + self.shape.action_size > LARGEST_GP
        return not self.data and (large or not (settings.simulator and settings.start))


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
    with closing(system.open()) as env:
        shape = describe_system(env, settings, spec)
    return Asked(
        system,
        shape,
        costs,
        data=_value(changes, "data", run["data"], ""),
        belief=str(changes.get("belief", "")),
        episodes=_value(changes, "episodes", run["episodes"], 10),
        step_timeout=_value(changes, "step_timeout", run["step_timeout"], STEP_TIMEOUT),
    )


def _own_settings(changes: Mapping[str, Any]) -> OwnSettings:
    known = kinds(OwnSettings)
    values = ((item.name, _value(changes, item.name, known[item.name], None, "task")) for item in fields(OwnSettings))
    return OwnSettings(**{name: value for name, value in values if value is not None})


def _value(changes: Mapping[str, Any], name: str, kind: Kind, default: Any, group: str = "run") -> Any:
    value = changes.get(name, changes.get(f"{group}.{name}"))
    if value is None:
        return default
    return kind.parse(name, value) if isinstance(value, Text) else kind.read(name, value)


class _Base(NamedTuple):
    """What cautious episodes stay near."""

    policy: Any
    trusted: bool
    """Whether it keeps the system safe by itself, so that no episode needs to be cut short."""


def first_episodes(asked: Asked, seed: int, done: int) -> Iterator[Played]:
    """Cautious episodes after those that are done, each as it ends; an episode that the system cut short is the last.

    All their randomness follows from the seed. Raises ResetFault, and Interrupted, as any episode does.
    """
    with closing(asked.system.open()) as env:
        for i in range(done, asked.first_episodes):
            played = first_episode(asked, env, i, seed, asked.shape.horizon)
            yield played
            if played.episode.ended == "fault":
                return


def first_episode(asked: Asked, env: gymnasium.Env[Any, Any], number: int, seed: int, steps: int) -> Played:
    """The cautious episode of that number on an opened system, of at most so many steps."""
    base, shape, settings = _base(asked), asked.shape, asked.system.settings
    guard = Guard(
        state_size=shape.state_size,
        costs=len(asked.costs),
        step_timeout=asked.step_timeout,
        safe_action=settings.safe_action or None,
        state_names=shape.state_names,
        fallback=base.policy if isinstance(base.policy, Fallback) else None,
        action_limits=tuple(zip(shape.action_low, shape.action_high, strict=True)),
        region=settings.region(shape.state_size),
    )
    key = jax.random.fold_in(jax.random.key(seed), 2**30 + number)
    policy = Cautious(base.policy, shape.action_low, shape.action_high, asked.costs, strength(number), seed_of(key))
    system = env if base.trusted else EarlyEnd(env, asked.costs)
    return run_episode(system, policy, seed_of(key), key, steps, guard=guard)


def _base(asked: Asked) -> _Base:
    settings, shape = asked.system.settings, asked.shape
    if settings.fallback:
        control = function(settings.fallback, "fallback")
        return _Base(Fallback(control, shape.action_low, shape.action_high, shape.state_size), True)
    if settings.safe_action:
        return _Base(np.array(settings.safe_action, float), False)
    return _Base((np.array(shape.action_low) + np.array(shape.action_high)) / 2, False)


def joined(played: list[Played]) -> Transitions:
    """All their transitions."""
    parts = [each.episode.transitions for each in played]
    return Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def proposal_of(asked: Asked, played: list[Played], seed: int) -> Proposal:
    """The prior that recorded data or these episodes, and the simulator if there is one, suggest."""
    return propose(
        asked.system,
        asked.shape,
        joined(played) if played else read_own(asked.system, asked.shape, asked.data),
        asked.costs,
        belief=asked.belief,
        episodes=asked.episodes,
        seed=seed,
    )
