"""The Gaussian process of a proposed prior: fitted, tried on data that it was not shown, and widened where they ask."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._jax import EXACT
from ..errors import UserError
from ..transitions import Transitions, split_episodes
from .coverage import LEVELS, Coverage, held_out, measure
from .description import Description
from .distillation import ask
from .fitting import fit_numbers
from .knowledge import GPNumbers, Knowledge
from .signals import function
from .system import OwnSystem
from .task import mean_of

__all__ = ["with_gp"]

TWICE_THE_NOISE = 0.5 * np.log(1 + 2.0**2)
"""Information of an output of one step whose uncertainty is twice the noise, in nats."""
ASSUMED_ERROR = 0.2
"""How wrong a simulator is taken to be where no data say it: a share of the size of its steps."""
ENOUGH, MOST_STRETCH = 0.9, 6.0
"""The share of held-out outcomes that the interval of 95 % must hold, and how far deviations are stretched for it."""
ENOUGH_ROWS, FEWEST_ROWS = 10, 10
"""Rows that must be held out to judge anything by them, and without which there is nothing to fit."""
STRANGE = 3.0
"""A simulator that is wrong by more than so many times what the observation moves has other units, or another order."""


def with_gp(
    system: OwnSystem,
    knowledge: Knowledge,
    data: Transitions | None,
    points: Sequence[Sequence[np.ndarray]],
    seed: int,
    said: list[str],
) -> Knowledge:
    """The knowledge with a Gaussian process and a threshold for exploration; what was found is added to `said`."""
    shape, kind = knowledge.shape, "simulator" if system.settings.simulator else "stay"
    mean, words = mean_of(system, kind, np.array(knowledge.starts), points, shape)
    said.append(f"{words[0].upper()}{words[1:]}.")
    found: dict[str, Any] = {}
    if data is None:
        numbers = _assumed(system, knowledge, said)
    else:
        seen = _seen(system, knowledge, mean, data)
        _check(system, shape, data, seen, said)
        numbers, found = _fitted(kind, shape, seen, seed, said)
    threshold = float(f"{TWICE_THE_NOISE * shape.horizon * len(numbers.scale):.2g}")
    said.append(
        f"An episode counts as exploring if it promises {threshold:g} nats: what its {shape.horizon} steps bring where "
        "the uncertainty is twice the noise."
    )
    method = replace(knowledge.method, exploration_threshold=threshold)
    return replace(knowledge, gp=numbers, method=method, found=found)


class _Seen(NamedTuple):
    """Data as a Gaussian process sees them."""

    inputs: Float[np.ndarray, "N d"]
    residuals: Float[np.ndarray, "N k"]
    """What the mean does not explain: of the states, then of the learned signals."""
    signal_means: tuple[float, ...]
    """Of learned signals, what is expected where nothing is known: the worst that was seen."""
    names: list[str]
    """Of the outputs."""
    episodes: list[int]
    """How many rows each episode has."""


def _seen(system: OwnSystem, knowledge: Knowledge, mean: Any, data: Transitions) -> _Seen:
    x, a = jnp.asarray(data.states, EXACT), jnp.asarray(data.actions, EXACT)
    left = data.next_states - np.asarray(jax.vmap(mean)(x, a))
    every = np.concatenate([data.rewards[:, None], data.costs], axis=1)
    named = ("reward", *(f"cost '{name}'" for name, _ in system.settings.costs))
    learned = [i for i, how in enumerate((knowledge.reward, *knowledge.costs)) if how == "learned"]
    signals = every[:, learned]
    means = np.array([signals[:, k].min() if i == 0 else signals[:, k].max() for k, i in enumerate(learned)])
    return _Seen(
        inputs=np.concatenate([data.states, data.actions], axis=1),
        residuals=np.concatenate([left, signals - means], axis=1),
        signal_means=tuple(means.tolist()),
        names=[*knowledge.shape.state_names, *(named[i] for i in learned)],
        episodes=[len(each.actions) for each in split_episodes(data)],
    )


def _check(system: OwnSystem, shape: Description, data: Transitions, seen: _Seen, said: list[str]) -> None:
    """Refuses data and simulators that cannot be right; says what the data leave open."""
    if len(data.actions) < FEWEST_ROWS:
        raise UserError(
            f"{len(data.actions)} transitions are too few to fit anything to; record {FEWEST_ROWS} or more."
        )
    moved = np.sqrt(np.mean((data.next_states - data.states) ** 2, axis=0))
    if not moved.max() > 1e-9 * (1 + np.abs(data.states).max()):
        raise UserError("in these data nothing moves, so that nothing can be learned from them; record some motion.")
    if system.settings.simulator:
        _check_units(system, shape, seen, moved)
    for name, column in zip((*shape.state_names, *shape.action_names), seen.inputs.T, strict=True):
        if _constant(column):
            said.append(f"In these data {name} never changes: nothing can be said of its effect.")
    for name, column in zip(seen.names[shape.state_size :], seen.residuals.T[shape.state_size :], strict=True):
        if _constant(column):
            said.append(
                f"In these data the {name} is always the same: until it is seen to change, nothing is known of what "
                "changes it, and plans do not avoid that. Give it as a function if you can."
            )


def _constant(column: Float[np.ndarray, " N"]) -> bool:
    return bool(np.ptp(column) <= 1e-9 * (1 + np.abs(column).max()))


def _check_units(system: OwnSystem, shape: Description, seen: _Seen, moved: Float[np.ndarray, " dx"]) -> None:
    wrong = np.sqrt(np.mean(seen.residuals[:, : shape.state_size] ** 2, axis=0))
    for name, error, motion in zip(shape.state_names, wrong, moved, strict=True):
        if error > STRANGE * motion + 1e-9:
            raise UserError(
                f"the simulator {system.settings.simulator} is wrong by {error:.3g} in {name} where a step of the data "
                f"moves it by {motion:.3g}: are these the same units, the same order of states and the same time step?"
            )


def _fitted(mean: str, shape: Description, seen: _Seen, seed: int, said: list[str]) -> tuple[GPNumbers, dict[str, Any]]:
    """Numbers that are fitted, and widened as the same fit without some rows must be to cover these."""
    least = _least_spread(shape, seen.inputs)
    out = held_out(seen.inputs, seen.episodes, np.maximum(seen.inputs.std(axis=0), least))
    shown = ~(out["random"] | out["outermost"])

    def tried(numbers: GPNumbers) -> dict[str, Coverage]:
        return {how: measure(numbers, seen.inputs, seen.residuals, rows) for how, rows in out.items()}

    blind = fit_numbers(seen.inputs[shown], seen.residuals[shown], least, seed)
    before = tried(blind.numbers(mean))
    stretch = _stretch(before)
    after = tried(_wider(blind.numbers(mean), stretch)) if max(stretch) > 1 else before
    fitted = fit_numbers(seen.inputs, seen.residuals, least, seed)
    numbers = replace(_wider(fitted.numbers(mean), stretch), signal_means=seen.signal_means)
    said.extend(_words(numbers, seen.names, before, after, stretch))
    found = {
        f"coverage_{how}{when}": dict(zip(map(str, LEVELS), c.shares, strict=True))
        for when, each in (("_before", before), ("", after))
        for how, c in each.items()
    }
    return numbers, {**found, "stretched": stretch, "log_posterior_per_datum": fitted.value}


def _wider(numbers: GPNumbers, stretch: tuple[float, ...]) -> GPNumbers:
    return replace(numbers, scale=tuple(k * s for k, s in zip(stretch, numbers.scale, strict=True)))


def _stretch(tried: dict[str, Coverage]) -> tuple[float, ...]:
    """By how much each output is widened: 1 where enough is covered, or too little is known to say."""
    each = [
        [min(k, MOST_STRETCH) if share < ENOUGH else 1.0 for k, share in zip(c.stretch, c.at_95, strict=True)]
        for c in tried.values()
        if c.points >= ENOUGH_ROWS
    ]
    outputs = len(next(iter(tried.values())).stretch)
    return tuple(max(1.0, *column) for column in zip(*each, strict=True)) if each else (1.0,) * outputs


def _least_spread(shape: Description, inputs: Float[np.ndarray, "N d"]) -> Float[np.ndarray, " d"]:
    """Of states next to nothing, of actions that of their whole range."""
    whole = (np.array(shape.action_high) - np.array(shape.action_low)) / np.sqrt(12)
    return np.concatenate([1e-6 * (1 + np.abs(inputs[:, : shape.state_size]).max(axis=0)), whole])


def _words(
    numbers: GPNumbers,
    names: list[str],
    before: dict[str, Coverage],
    after: dict[str, Coverage],
    stretch: tuple[float, ...],
) -> list[str]:
    sizes = ", ".join(f"{name} {scale:.3g}" for name, scale in zip(names, numbers.scale, strict=True))
    said = [
        f"One step leads away from what is expected by about: {sizes}; the kernel is {numbers.kernel}, the noise "
        f"{100 * max(numbers.noise):.2g} % of that."
    ]
    held = min(c.points for c in before.values())
    if held < ENOUGH_ROWS:
        said.append(f"Only {held} rows could be held out, too few to judge this by: record more, and make it again.")
        return said
    said.append(f"Of {held} rows that were held out the interval of 95 % holds {_shares(before)}.")
    if wide := [f"{name} by {k:.2g}" for name, k in zip(names, stretch, strict=True) if k > 1]:
        said.append(f"That is too few, so scales were multiplied ({', '.join(wide)}): now {_shares(after)}.")
    if min(c.least for c in after.values()) < ENOUGH - 0.1:
        said.append(
            "Even so the data contradict it: they jump, their noise is not the same everywhere, or something that "
            "matters is not observed. Do not rely on the first episodes."
        )
    return said


def _shares(tried: dict[str, Coverage]) -> str:
    """Of the output that is covered worst."""
    inside, outside = (100 * tried[how].least for how in ("random", "outermost"))
    return f"{inside:.0f} %, and of the outermost fifth {outside:.0f} %, of the output that is foretold worst"


def _assumed(system: OwnSystem, knowledge: Knowledge, said: list[str]) -> GPNumbers:
    """Numbers for a simulator that no data judge: wrong by a share of its own steps."""
    shape = knowledge.shape
    simulator = function(system.settings.simulator, "simulator")
    answers = ask(simulator, np.array(knowledge.starts), shape.action_low, shape.action_high, shape.horizon, 500)
    motion = np.sqrt(np.mean((answers.next_states - answers.states) ** 2, axis=0))
    motion = np.maximum(motion, 1e-3 * motion.max() + 1e-9)
    inputs = np.concatenate([answers.states, answers.actions], axis=1)
    lengths = np.maximum(inputs.std(axis=0), 1e-6) * np.sqrt(inputs.shape[1])
    said.append(
        "There are no data to judge the simulator by, so it is assumed to be wrong by "
        f"{100 * ASSUMED_ERROR:.0f} % of a step. Record an episode or two and make the prior again, or edit the scale."
    )
    return GPNumbers(
        mean="simulator",
        scale=tuple((ASSUMED_ERROR * motion).tolist()),
        kernel="squared-exponential",
        length_scales=(tuple(lengths.tolist()),),
        noise=(0.02,),
    )
