"""`sbsrl check`: walks through a user's system, and says what is wrong, how to mend it, and what will be done with it.

It plays two short cautious episodes with the same seed, as a run would begin, and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from ..errors import UserError
from ..own.witness import Witness
from ..systems.episode import Played, ResetFault
from ..systems.faults import stop
from ..transitions import Episode
from .acquaintance import UNLIMITED, Asked, FirstEpisodes, asked_of, opened_system, projected

__all__ = ["Finding", "check"]

Kind = Literal["wrong", "careful", "fine"]

SEED = 1
STEPS = 50
"""Control steps of each of the two episodes, at most."""
LARGEST, SMALLEST = 1e4, 1e-4
"""Numbers beyond these are in units that single precision and hyper-priors do not like."""
SLOW = 0.1
"""Seconds of a step beyond which it is said how long an episode takes."""


class Finding(NamedTuple):
    """One thing to say about a system."""

    kind: Kind
    text: str


def check(spec: str, changes: Mapping[str, Any]) -> list[Finding]:
    """All that can be said of a system; the first thing that makes it useless ends the walk."""
    try:
        asked = asked_of(spec, changes, priced=False)
    except UserError as error:
        return [Finding("wrong", str(error))]
    found = [Finding("fine", _shape(asked))]
    try:
        witness, first, second, said = _played(asked)
    except ResetFault as fault:
        return [*found, Finding("wrong", f"No episode could begin: {fault}; mend reset().")]
    found += _in_episode(first)
    found += _in_space(witness)
    if second is not None:
        found += _repeated(first.episode, second.episode)
        found += _sizes(asked, first.episode)
        found += _costs(asked, first.episode)
        found += _speed(asked, witness)
        found += _after_the_end(said)
        found += _plan(asked)
    return found


def _shape(asked: Asked) -> str:
    shape = asked.shape
    limits = ", ".join(
        f"{name} {low:g} to {high:g}"
        for name, low, high in zip(shape.action_names, shape.action_low, shape.action_high, strict=True)
    )
    return (
        f"An observation has {shape.state_size} numbers ({', '.join(shape.state_names[:8])}"
        f"{', ...' if shape.state_size > 8 else ''}), an action {shape.action_size} ({limits}), an episode "
        f"{shape.horizon} steps."
    )


def _played(asked: Asked) -> tuple[Witness, Played, Played | None, str]:
    """Two episodes with the same seed and the same actions, the second only after a first that did not fail.

    Where the system itself ended the first one, the safe action is sent after it, as it would be after a fault; the
    last word is what came of that. Where no budget was given nothing says what is too much, and nothing is shaken.
    """
    bystanders: list[Witness] = []

    def watched(env: Any) -> Witness:
        bystanders.append(Witness(env))
        return bystanders[-1]

    steps = min(STEPS, asked.shape.horizon)
    unrest = 0.0 if any(cost.budget == UNLIMITED for cost in asked.costs) else None
    with opened_system(asked.system, watched) as env:
        episodes = FirstEpisodes(asked, SEED)
        first = episodes.play(env, steps, unrest)
        if first.episode.ended == "fault":
            return bystanders[0], first, None, ""
        said = ""
        if bystanders[0].ended and episodes.guard.safe_action:
            said = stop(env, episodes.guard, last=first.episode.states[-1])
        second = FirstEpisodes(asked, SEED).play(env, steps, unrest)
    return bystanders[0], first, second, said


def _after_the_end(said: str) -> Iterator[Finding]:
    if "raised" in said:
        yield Finding(
            "careful",
            f"After the end of an episode {said}: a machine must take its safe action at any time, also then.",
        )


def _in_episode(played: Played) -> Iterator[Finding]:
    episode = played.episode
    if episode.ended == "fault":
        yield Finding("wrong", f"An episode failed: {episode.reason}.")
    elif episode.ended == "terminated":
        yield Finding(
            "careful",
            f"An episode terminated after {len(episode.actions)} steps of next to nothing: what it earned counts up to "
            "there. Is that meant?",
        )
    if len(episode.actions) > 3 and np.ptp(episode.states, axis=0).max() == 0:
        yield Finding("careful", "The observation never changed: is the action sent, and is the state returned?")


def _in_space(witness: Witness) -> Iterator[Finding]:
    if witness.outside:
        yield Finding(
            "careful",
            f"{len(witness.outside)} observations are not in the declared observation_space, the first "
            f"{witness.outside[0]}; declare what is true, since other programs believe it.",
        )


def _repeated(first: Episode, second: Episode) -> Iterator[Finding]:
    """Whether the same seed gives the same episode."""
    if not np.array_equal(first.states[0], second.states[0]):
        yield Finding(
            "careful",
            f"reset(seed={SEED}) began elsewhere the second time (by {_apart(first.states[0], second.states[0]):.3g}); "
            "call super().reset(seed=seed) and draw from self.np_random. Without it a resumed run is not exact.",
        )
        return
    steps = min(len(first.states), len(second.states))
    if len(first.states) != len(second.states) or not np.array_equal(first.states[:steps], second.states[:steps]):
        yield Finding(
            "careful",
            "The same seed and actions led elsewhere the second time (by "
            f"{_apart(first.states[:steps], second.states[:steps]):.3g}): fine for a machine; in a simulation draw all "
            "noise from self.np_random.",
        )
        return
    yield Finding("fine", "The same seed gives the same episode: a resumed run is exact.")


def _apart(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> float:
    return float(np.abs(a - b).max(initial=0))


def _sizes(asked: Asked, episode: Episode) -> Iterator[Finding]:
    for name, column in zip(asked.shape.state_names, episode.states.T, strict=True):
        size, spread = float(np.abs(column).max()), float(np.ptp(column))
        if size > LARGEST or 0 < spread < SMALLEST:
            yield Finding(
                "careful",
                f"{name} is as large as {size:.3g} and changes by {spread:.3g}: divide or multiply it inside the "
                f"system, so that it lies between {SMALLEST:g} and {LARGEST:g} and changes by a part of that.",
            )


def _costs(asked: Asked, episode: Episode) -> Iterator[Finding]:
    for cost, column in zip(asked.costs, episode.costs.T, strict=True):
        if cost.aggregation == "sum" and column.min(initial=0) < 0:
            yield Finding(
                "careful",
                f"The cost {cost.name} was negative ({column.min():.3g}): a sum of such costs can hide a bad step "
                "behind good ones; make it at least 0, or set aggregation=statewise.",
            )
        if cost.budget == UNLIMITED:
            yield Finding(
                "careful", f"No budget was given for {cost.name}; in these steps it was {_range(column)} per step."
            )
            continue
        least = projected(cost, column, asked.shape.horizon)
        if least > cost.budget:
            yield Finding(
                "wrong",
                f"Next to nothing was done, and the cost {cost.name} ({_range(column)} per step) makes {least:.4g} per "
                f"episode, more than its budget of {cost.budget:g}: raise it, or name a safe_action or a fallback that "
                "keeps it.",
            )
        else:
            yield Finding("fine", f"The cost {cost.name} was {_range(column)} per step; the budget is {cost.budget:g}.")


def _range(column: Float[np.ndarray, " T"]) -> str:
    low, high = float(column.min()), float(column.max())
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _speed(asked: Asked, witness: Witness) -> Iterator[Finding]:
    step = float(np.median(witness.seconds))
    if step > SLOW:
        yield Finding(
            "careful",
            f"A step takes {step:.2g} s, so an episode of {asked.shape.horizon} steps at least "
            f"{step * asked.shape.horizon:.0f} s.",
        )


A_PLAN = 0.3
"""Seconds that a plan of usual size takes on one core, roughly."""
WORK: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "gp": ("a plan at every step", lambda steps: f"so an episode takes about {A_PLAN * steps:.0f} s on one core"),
    "ensemble": ("a network", lambda steps: "some minutes of learning first, then seconds per episode"),
}
"""Which solver goes with a belief, and how long that takes."""


def _plan(asked: Asked) -> Iterator[Finding]:
    """What a run would do."""
    belief, why = asked.proposed_belief()
    solver, duration = WORK["ensemble" if belief == "ensemble" else "gp"]
    yield Finding("fine", f"{why} Policies: {solver}, {duration(asked.shape.horizon)}.")
    settings = asked.system.settings
    if asked.needs_episodes:
        near = "the fallback" if settings.fallback else "safe_action" if settings.safe_action else "the middle action"
        yield Finding(
            "fine",
            f"Nothing was recorded, so a run begins with cautious episodes near {near}; give --data, or a simulator "
            "and start, to begin with what is known.",
        )
    if not (settings.fallback or settings.safe_action):
        yield Finding(
            "careful", "No safe_action is named: when an episode is cut short, nothing can be sent to bring it to rest."
        )
