"""The ensemble as a belief: what it holds between episodes, how it learns, how it judges itself."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...costs import aggregate
from ...errors import UserError
from ...policy import Metrics, Policy
from ...prediction import costs_in_pieces
from ...spread import middle, spread
from ...task import Task
from ...transitions import Episode, Transitions, split_episodes
from ...types import Index, PRNGKey, Scalar
from .calibration import Calibration, adapted, calibrate, ratio
from .choices import EnsembleChoices
from .fit import OPTIMISER, Trainer, fit, fit_until_worse
from .model import Combination, Disagreement, Ensemble, Samples
from .nets import Nets, Range, Scales
from .replay import Replay
from .switching import Switching

__all__ = ["EnsembleBelief"]

LEAST_STD = 1e-3
"""Of outputs: what does not vary in the data is not divided by nothing."""
MARGIN = 0.1
"""By which share of what was seen predictions may lie beyond it."""


class EnsembleBelief(eqx.Module):
    """M probabilistic networks, the data they were trained on, and how much wider than their spread the samples are."""

    ensemble: Ensemble
    moments: Any
    """Of the optimiser."""
    replay: Replay
    log_kappa: Scalar
    seen: Index
    """Updates with data so far: samples are drawn anew after each."""
    trained: Bool[Array, ""]
    """Whether the offline data were learned from."""
    choices: EnsembleChoices = eqx.field(static=True)
    budgets: tuple[float, ...] = eqx.field(static=True)
    aggregations: tuple[Any, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, task: Task, data: Transitions, episodes: int, choices: EnsembleChoices, key: PRNGKey
    ) -> "EnsembleBelief":
        """Networks that have learned nothing yet, in the units of these data, which are kept to learn from."""
        nets_key, boot_key = jax.random.split(key)
        structure = task.learned_structure
        sizes = (task.state_size, task.action_size, len(structure.part), len(task.costs))
        old = split_episodes(data)
        replay = Replay.create(
            len(data.actions) + episodes * task.horizon, len(old) + episodes, sizes, choices.networks
        )
        nets = _nets(nets_key, task, choices)
        ensemble = Ensemble(
            nets=nets,
            scales=_scales(task, data, np.array(structure.part), choices.units),
            range=_range(data, np.array(structure.part)),
            caps=jnp.asarray(_caps(task, data, choices.cost_cap), PLAN),
            structure=structure,
            cost_structure=task.cost_structure,
            known=task.known_signals,
            noisy=choices.noisy,
            state_share=choices.state_share,
        )
        return cls(
            ensemble=ensemble,
            moments=OPTIMISER.init(nets.members),
            replay=replay.add(data, structure.part, False, boot_key),
            log_kappa=jnp.asarray(np.log(choices.kappa), PLAN),
            seen=jnp.zeros((), jnp.int32),
            trained=jnp.zeros((), bool),
            choices=choices,
            budgets=tuple(cost.budget for cost in task.costs),
            aggregations=tuple(cost.aggregation for cost in task.costs),
            horizon=task.horizon,
        )

    @property
    def kappa(self) -> Scalar:
        return jnp.exp(self.log_kappa)

    def nominal(self) -> Combination:
        return Combination(self.ensemble, jnp.zeros(self.ensemble.nets.count, PLAN))

    def uncertainty(self) -> Disagreement:
        return Disagreement(self.ensemble)

    def samples(self, key: PRNGKey, count: int) -> Samples:
        return Samples.draw(
            self.ensemble, count, self.kappa, self.choices.samples == "members", jax.random.fold_in(key, self.seen)
        )

    def switching(self, count: int) -> Switching:
        return Switching(self.ensemble, count)

    def prepared(self, key: PRNGKey) -> tuple["EnsembleBelief", Metrics]:
        """After learning from the offline data: until episodes held out are predicted worse, and kappa from those."""
        held_key, fit_key = jax.random.split(key)
        held = self._held_out(held_key)
        ensemble, moments, updates, loss = fit_until_worse(
            self.ensemble, self.moments, self.replay, self._trainer, self.choices.offline_updates, RATES, held, fit_key
        )
        tests = self._calibrations(ensemble, np.flatnonzero(np.asarray(held)))
        state, cost = ratio(tests.state_error, tests.state_variance), ratio(tests.cost_error, tests.cost_variance)
        kappa = self.choices.kappa
        if self.choices.adapted and not self.choices.test_steps:  # what is tested piece by piece is under feedback
            kappa = float(
                np.clip(max(kappa, state / self.choices.state_share), self.choices.kappa_least, self.choices.kappa_most)
            )
        after = eqx.tree_at(
            lambda belief: (belief.ensemble, belief.moments, belief.log_kappa, belief.trained),
            self,
            (ensemble, moments, jnp.asarray(np.log(kappa), PLAN), jnp.ones((), bool)),
        )
        return after, {"model_updates": updates, "held_out_loss": loss, "state_ratio": state, "cost_ratio": cost}

    def update(self, data: Transitions, key: PRNGKey) -> "EnsembleBelief":
        """After learning from an episode, on from the last parameters."""
        boot_key, fit_key = jax.random.split(key)
        replay = self.replay.add(data, self.ensemble.structure.part, True, boot_key)
        wider = eqx.tree_at(
            lambda e: (e.range, e.caps),
            self.ensemble,
            (_widened(self.ensemble.range, data, self._part), self._raised_caps(data)),
        )
        ensemble, moments, _ = fit(
            wider, self.moments, replay, self._trainer, self.choices.online_updates, ONLINE_RATE, fit_key
        )
        return eqx.tree_at(
            lambda belief: (belief.ensemble, belief.moments, belief.replay, belief.seen),
            self,
            (ensemble, moments, replay, self.seen + 1),
        )

    def tested(self, policy: Policy, episode: Episode, key: PRNGKey) -> tuple["EnsembleBelief", Metrics]:
        """Predicts the cost of the episode with fresh samples, and widens them if it was beyond all of them."""
        if not len(episode.actions):
            return self, {}
        draw_key, roll_key = jax.random.split(key)
        samples = Samples.draw(self.ensemble, TESTING_SAMPLES, self.kappa, self.choices.samples == "members", draw_key)
        predicted = self._predicted(samples, policy, episode, roll_key)
        real = [float(aggregate(jnp.asarray(episode.costs[:, i]), how)) for i, how in enumerate(self.aggregations)]
        most = np.asarray(jnp.max(predicted, axis=0))
        tolerance = self.choices.tolerance * np.abs(self.budgets)
        missed = bool(np.any(np.array(real) > most + tolerance))
        telling = bool(np.any(np.maximum(real, most) > tolerance))  # that nothing costs is no test that could fail
        log_kappa = self.log_kappa
        if self.choices.adapted and telling:
            limits = (self.choices.kappa_least, self.choices.kappa_most)
            log_kappa = adapted(log_kappa, missed, self.choices.kappa_rate, self.choices.misses, limits)
        test = self._test(self.ensemble, episode.transitions)
        metrics = {
            "kappa": float(self.kappa),
            "predicted_most": float(most[0]),
            "predicted_mean": float(jnp.mean(predicted[:, 0])),
            "state_ratio": ratio(test.state_error, test.state_variance),
            "cost_ratio": ratio(test.cost_error, test.cost_variance),
        }
        if telling:
            metrics["covered"] = float(not missed)
        return eqx.tree_at(lambda belief: belief.log_kappa, self, log_kappa), metrics

    def _predicted(self, samples: Samples, policy: Policy, episode: Episode, key: PRNGKey) -> Float[Array, "S k"]:
        """The costs of an episode under its policy on every sample: from its beginning, or piece by piece."""
        summed = all(how == "sum" for how in self.aggregations)
        steps = min(self.choices.test_steps if summed else 0, self.horizon) or self.horizon
        first = np.arange(0, self.horizon, steps)
        lengths = np.clip(len(episode.actions) - first, 0, steps)
        states = episode.states[np.minimum(first, len(episode.actions))]
        return costs_in_pieces(
            samples,
            policy,
            jnp.asarray(states, PLAN),
            jnp.asarray(lengths, jnp.int32),
            steps,
            self.aggregations,
            key,
        )

    def _raised_caps(self, data: Transitions) -> Float[Array, " k"]:
        """What a step is believed to cost at most is no less than what one has cost."""
        known = self.ensemble.cost_structure
        if (known is not None and known.most is not None) or not len(data.actions):
            return self.ensemble.caps
        return jnp.maximum(self.ensemble.caps, jnp.asarray(data.costs.max(axis=0), PLAN))

    @property
    def _part(self) -> np.ndarray:
        return np.array(self.ensemble.structure.part)

    @property
    def _trainer(self) -> Trainer:
        size = self.choices.batch
        costly = round(self.choices.costly_share * size)
        return Trainer(size, costly, self.choices.new_share, self.choices.cost_weight)

    def _held_out(self, key: PRNGKey) -> Bool[Array, " E"]:
        """Which of the episodes are held out: a tenth, at least one, but never the only one."""
        total = int(self.replay.episodes)
        if total < 2:
            raise UserError(
                "belief=ensemble needs at least two episodes of offline data, one of them to be held out; collect more."
            )
        chosen = np.asarray(jax.random.permutation(key, total))[: max(1, total // 10)]
        return jnp.zeros(self.replay.length.shape, bool).at[chosen].set(True)

    def _calibrations(self, ensemble: Ensemble, episodes: np.ndarray) -> Calibration:
        """Of all these episodes together."""
        tests = [self._test(ensemble, self._stored(int(number))) for number in episodes]
        total = tests[0]
        for each in tests[1:]:
            total = total + each
        return total

    def _stored(self, number: int) -> Transitions:
        """An episode of the replay; what is not needed for a test is left empty."""
        begin, steps = int(self.replay.first[number]), int(self.replay.length[number])
        rows = slice(begin, begin + steps)
        states, actions, costs = (
            np.asarray(p[rows]) for p in (self.replay.states, self.replay.actions, self.replay.costs)
        )
        return Transitions(states, actions, states, np.zeros(steps), costs, np.zeros(steps, bool))

    def _test(self, ensemble: Ensemble, data: Transitions) -> Calibration:
        """Episodes are padded to the horizon, so that all have one program."""
        steps = min(len(data.actions), self.horizon)

        def padded(part: np.ndarray) -> Array:
            rows = part[:steps]
            return jnp.asarray(
                np.pad(rows, [(0, self.horizon - steps), *[(0, 0)] * (rows.ndim - 1)], mode="edge"), PLAN
            )

        valid = jnp.asarray(np.arange(self.horizon) < steps)
        return calibrate(ensemble, padded(data.states), padded(data.actions), padded(data.costs), valid)


RATES, ONLINE_RATE = (2e-3, 2e-4), 3e-4
TESTING_SAMPLES = 10


def _nets(key: PRNGKey, task: Task, choices: EnsembleChoices) -> Nets:
    """Networks of the sizes that the task asks for."""
    known, p, inputs = task.cost_structure, len(task.learned_structure.part), task.state_size + task.action_size
    deciding, near = (inputs, p) if known is None else (known.size, known.size)
    motion = (inputs, *(choices.width,) * choices.layers, 2 * p + 1)
    cost = (deciding, *(choices.cost_width,) * choices.layers, len(task.costs))
    return Nets.create(key, motion, cost, choices.networks, (near, choices.prior_scale, choices.prior_stretch))


def _caps(task: Task, data: Transitions, cap: float) -> Float[np.ndarray, " k"]:
    """What a step is believed to cost at most; the largest of the data where a task knows it for every state."""
    known = task.cost_structure
    if known is not None and known.most is not None:
        return np.asarray(jnp.max(jax.vmap(known.most)(jnp.asarray(data.states)), axis=0))
    return np.array([_cap(cost.limits[1], cap, data.costs[:, i]) for i, cost in enumerate(task.costs)])


def _cap(limit: float, cap: float, costs: Float[np.ndarray, " N"]) -> float:
    """The known limit of a cost; else what the settings say, or twice the largest that was seen, or 1.

    Never less than what was seen.
    """
    if np.isfinite(limit):
        return limit
    largest = float(costs.max(initial=0.0))
    return max(cap, largest) if cap else 2 * largest or 1.0


def _scales(task: Task, data: Transitions, part: np.ndarray, units: str) -> Scales:
    changes = (data.next_states - data.states)[:, part]
    low, high = np.array(task.action_low), np.array(task.action_high)
    values = (
        middle(data.states, units),
        spread(data.states, units),
        (low + high) / 2,
        (high - low) / 2,
        changes.mean(0),
        changes.std(0) + LEAST_STD,
        data.rewards.mean(),
        data.rewards.std() + LEAST_STD,
    )
    return Scales(*(jnp.asarray(value, PLAN) for value in values))


def _range(data: Transitions, part: np.ndarray) -> Range:
    """What these data span, widened."""
    seen = np.concatenate([data.states, data.next_states])[:, part]
    low, high = seen.min(0), seen.max(0)
    room = MARGIN * (high - low) + LEAST_STD
    values = (low - room, high + room, data.rewards.min(), data.rewards.max())
    return Range(*(jnp.asarray(value, PLAN) for value in values))


def _widened(old: Range, data: Transitions, part: np.ndarray) -> Range:
    """Both together. An episode of no steps changes nothing."""
    if not len(data.actions):
        return old
    new = _range(data, part)
    return Range(
        jnp.minimum(old.low, new.low),
        jnp.maximum(old.high, new.high),
        jnp.minimum(old.reward_low, new.reward_low),
        jnp.maximum(old.reward_high, new.reward_high),
    )
