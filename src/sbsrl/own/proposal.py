"""Prior knowledge of a user's system, proposed from data, a simulator, or both, and checked where it can be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from .knowledge import GPNumbers, Knowledge, MethodNumbers
from .settings import INFO
from .signals import function
from .system import OwnSystem
from .task import mean_of, points_of, traced_signals

__all__ = ["LARGEST_GP", "Proposal", "explain_belief", "propose"]

MOST_STARTS = 64
LARGEST_GP = 12
"""Numbers in (observation, action) up to which a Gaussian process is proposed."""
MOST_GP_POINTS = 4000
"""Transitions that it may have to hold: those of the data and of the episodes to come."""
FEWEST_FOR_NETWORKS = 1000
"""Transitions below which networks have nothing to learn from."""
TWICE_THE_NOISE = 0.5 * np.log(1 + 2.0**2)
"""Information of an output of one step whose uncertainty is twice the noise, in nats."""
SAMPLES = {"gp": 30, "ensemble": 10}
TIGHTENING = 0.02
"""Share of the budget, or of the largest cost that was recorded where that is more, by which plans stay below it."""
ASSUMED_ERROR = 0.2
"""How wrong a simulator is taken to be where no data say it: a share of the size of its steps."""
ENOUGH, MOST_STRETCH = 0.9, 6.0
"""The share of held-out outcomes that the interval of 95 % must hold, and how far deviations are stretched for it."""


@dataclass(frozen=True)
class Proposal:
    """What is proposed, and what there is to say about it, a sentence each."""

    knowledge: Knowledge
    said: tuple[str, ...]


def propose(
    system: OwnSystem,
    shape: Description,
    data: Transitions | None,
    budgets: Sequence[float],
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
    chosen = _belief(shape, data, episodes, belief, said)
    knowledge = Knowledge(
        system=system.spec,
        shape=shape,
        starts=tuple(tuple(row) for row in starts.tolist()),
        reward=how[0],
        costs=how[1:],
        belief=chosen,
        method=MethodNumbers(SAMPLES[chosen], _tightening(data, budgets), 0.0),
        source=_source(system, data),
    )
    if chosen == "gp":
        knowledge = _with_gp(system, knowledge, data, points, seed, said)
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
    if chosen == "ensemble" and rows < FEWEST_FOR_NETWORKS:
        said.append(
            f"Networks learn little from {rows} transitions; record {FEWEST_FOR_NETWORKS} or more, or plan shorter "
            "episodes so that a Gaussian process fits."
        )
    return chosen


def _tightening(data: Transitions | None, budgets: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(f"{TIGHTENING * abs(budget) or 1e-3:.2g}") for budget in budgets)


def _with_gp(
    system: OwnSystem,
    knowledge: Knowledge,
    data: Transitions | None,
    points: Sequence[Sequence[np.ndarray]],
    seed: int,
    said: list[str],
) -> Knowledge:
    shape, kind = knowledge.shape, "simulator" if system.settings.simulator else "stay"
    mean, words = mean_of(system, kind, np.array(knowledge.starts), points, shape)
    said.append(f"{words[0].upper()}{words[1:]}.")
    if data is None:
        numbers = _assumed(system, knowledge, said)
        found: dict[str, Any] = {}
    else:
        inputs = np.concatenate([data.states, data.actions], axis=1)
        residuals = _residuals(mean, data, knowledge)
        if kind == "simulator":
            _check_units(system, shape, data, residuals)
        numbers, found = _fitted(kind, shape, data, inputs, residuals, seed, said)
    outputs = len(numbers.scale)
    threshold = float(f"{TWICE_THE_NOISE * shape.horizon * outputs:.2g}")
    said.append(
        f"An episode counts as exploring if it promises {threshold:g} nats: what its {shape.horizon} steps bring where "
        "the uncertainty is twice the noise."
    )
    method = replace(knowledge.method, exploration_threshold=threshold)
    return replace(knowledge, gp=numbers, method=method, found=found)


def _residuals(mean: Any, data: Transitions, knowledge: Knowledge) -> Float[np.ndarray, "N k"]:
    """What the mean does not explain, states first, then the learned signals."""
    x, a = jnp.asarray(data.states, EXACT), jnp.asarray(data.actions, EXACT)
    left = data.next_states - np.asarray(jax.vmap(mean)(x, a))
    every = np.concatenate([data.rewards[:, None], data.costs], axis=1)
    learned = [i for i, how in enumerate((knowledge.reward, *knowledge.costs)) if how == "learned"]
    return np.concatenate([left, every[:, learned]], axis=1)


STRANGE = 3.0
"""A simulator that is wrong by more than so many times what the observation moves has other units, or another order."""


def _check_units(system: OwnSystem, shape: Description, data: Transitions, residuals: np.ndarray) -> None:
    wrong = np.sqrt(np.mean(residuals[:, : shape.state_size] ** 2, axis=0))
    moved = np.sqrt(np.mean((data.next_states - data.states) ** 2, axis=0))
    for name, error, motion in zip(shape.state_names, wrong, moved, strict=True):
        if error > STRANGE * motion + 1e-9:
            raise UserError(
                f"the simulator {system.settings.simulator} is wrong by {error:.3g} in {name} where a step of the data "
                f"moves it by {motion:.3g}: are these the same units, the same order of states and the same time step?"
            )


def _fitted(
    mean: str,
    shape: Description,
    data: Transitions,
    inputs: Float[np.ndarray, "N d"],
    residuals: Float[np.ndarray, "N k"],
    seed: int,
    said: list[str],
) -> tuple[GPNumbers, dict[str, Any]]:
    """Numbers that are fitted, then widened until they hold what they were not shown."""
    half = np.array([*np.zeros(shape.state_size), *(np.array(shape.action_high) - np.array(shape.action_low)) / 2])
    floor = np.concatenate([1e-6 * (1 + np.abs(data.states).max(axis=0)), half[shape.state_size :] / np.sqrt(3)])
    fitted = fit_numbers(inputs, residuals, floor, seed)
    numbers = fitted.numbers(mean)
    for name, column in zip((*shape.state_names, *shape.action_names), inputs.T, strict=True):
        if np.ptp(column) <= 1e-9 * (1 + np.abs(column).max()):
            said.append(f"In these data {name} never changes: nothing can be said of its effect.")
    out = held_out(inputs, [len(each.actions) for each in split_episodes(data)], np.array(numbers.length_scales[0]))
    before = {how: measure(numbers, inputs, residuals, rows) for how, rows in out.items()}
    stretch = max((c.stretch for c in before.values() if c.at_95 < ENOUGH), default=1.0)
    if stretch > 1:
        numbers = replace(numbers, scale=tuple(min(stretch, MOST_STRETCH) * s for s in numbers.scale))
    after = {how: measure(numbers, inputs, residuals, rows) for how, rows in out.items()}
    said.extend(_words(numbers, shape, residuals.shape[1], before, after, stretch))
    found = {f"coverage_{how}": dict(zip(map(str, LEVELS), c.shares, strict=True)) for how, c in after.items()}
    return numbers, {**found, "stretched": float(stretch), "log_posterior_per_datum": fitted.value}


def _words(
    numbers: GPNumbers,
    shape: Description,
    outputs: int,
    before: dict[str, Coverage],
    after: dict[str, Coverage],
    stretch: float,
) -> list[str]:
    names = [*shape.state_names, *(f"signal {i}" for i in range(outputs - shape.state_size))]
    sizes = ", ".join(f"{name} {scale:.3g}" for name, scale in zip(names, numbers.scale, strict=True))
    noise = max(numbers.noise)
    said = [
        f"One step leads away from what is expected by about: {sizes}; the kernel is {numbers.kernel}, the noise "
        f"{100 * noise:.2g} % of that."
    ]
    inside, outside = before["random"].at_95, before["outermost"].at_95
    said.append(
        f"On data that were held out the interval of 95 % holds {100 * inside:.0f} % of the outcomes, and on the "
        f"outermost fifth {100 * outside:.0f} %."
    )
    if stretch > 1:
        said.append(
            f"That is too few, so the scale was multiplied by {min(stretch, MOST_STRETCH):.2g}: now "
            f"{100 * after['random'].at_95:.0f} % and {100 * after['outermost'].at_95:.0f} %."
        )
    if stretch > MOST_STRETCH or min(c.at_95 for c in after.values()) < ENOUGH - 0.1:
        said.append(
            "Even so the data contradict it: they jump, their noise is not the same everywhere, or something that "
            "matters is not observed. Do not rely on the first episodes."
        )
    return said


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
        "simulator",
        tuple((ASSUMED_ERROR * motion).tolist()),
        "squared-exponential",
        (tuple(lengths.tolist()),),
        (0.02,),
    )
