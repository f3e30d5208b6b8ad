"""The belief for kernels of finite rank, as a distribution of weights: exact, at a cost that data do not raise.

With k(u, v) = phi(u) . phi(v) every function of the RKHS is g(z) = phi(z) . w. It is the same belief as that of
`gp.py`, which remembers all points. What is remembered here is the posterior of w after every episode
(`weight_posterior.py`), from which the intersection of all confidence sets follows.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..errors import UserError
from ..model import Signals
from ..prior import GPPrior
from ..theory.confidence import confidence_width
from ..theory.evidence import SPENT, Misfit
from ..transitions import Transitions
from ..types import Index, PRNGKey, Scalar
from .agreement import Ellipsoid, disagreement
from .checks import check_bound, check_noise, check_sizes, check_transitions, check_untouched, no_common_point
from .choices import DEFAULT, GPChoices
from .functions import GPSamples, GPSystem, Stack, join
from .gp_model import GPModel
from .rows import padded_rows
from .truncation import is_empty, truncate
from .uncertainty import UNCERTAINTIES, UncertaintyMeasure
from .weight_posterior import Weights, WeightVariance

__all__ = ["WeightBelief"]


class WeightBelief(eqx.Module):
    """All that is known after n updates, for kernels of finite rank."""

    prior: GPPrior = eqx.field(static=True)
    settings: GPChoices = eqx.field(static=True)
    signals: Signals | None = eqx.field(static=True)
    """Reward and costs of every model; None where they are not known."""
    chunk: int | None = eqx.field(static=True)
    """Data of fewer rows are padded to so many, so that nothing is recompiled; None pads nothing."""
    model: GPModel
    offline: Index
    """How many of the updates were with offline data."""
    groups: tuple[Weights, ...]
    gap: Bool[Array, " dx"]
    """For which output the confidence sets had no common point, the first time that happened,"""
    gap_at: Float[Array, " dz"]
    """where,"""
    gap_update: Index
    """and after which update; -1 if never."""

    @classmethod
    def create(
        cls,
        prior: GPPrior,
        dz: int,
        episodes: int,
        settings: GPChoices = DEFAULT,
        *,
        signals: Signals | None = None,
        chunk: int | None = None,
    ) -> "WeightBelief":
        """The prior, with room for offline data once, and for so many episodes.

        dz is the size of an input (x, a); `chunk` the length of an episode that does not end early.
        """
        model = GPModel.of(prior)
        check_sizes(model, dz)
        _check_settings(model, prior, settings)
        bound = np.inf if prior.bound is None else prior.bound
        return cls(
            prior=prior,
            settings=settings,
            signals=signals,
            chunk=chunk,
            model=model,
            offline=jnp.zeros((), jnp.int32),
            groups=tuple(
                Weights.empty(
                    kernel.features(jax.random.key(0), 0), kernel.rank or 0, outputs, noise, bound, episodes + 1
                )
                for kernel, noise, outputs in zip(model.kernels, model.noise, model.group_sizes, strict=True)
            ),
            gap=jnp.zeros(model.outputs, bool),
            gap_at=jnp.zeros(dz, EXACT),
            gap_update=jnp.full((), -1, jnp.int32),
        )

    @staticmethod
    def fits(prior: GPPrior, settings: GPChoices) -> bool:
        """Whether this belief can stand for that of all points."""
        finite = all(kernel.rank is not None for kernel in prior.kernels)
        return finite and settings.sampler != "particles" and not settings.fitted

    @property
    def precision(self) -> DTypeLike:
        """In which functions are computed."""
        return GPModel.precision(self.prior)

    def nominal(self) -> GPSystem:
        return _nominal(self)

    def uncertainty(self) -> UncertaintyMeasure:
        return _uncertainty(self)

    def samples(self, key: PRNGKey, count: int) -> GPSamples:
        return _samples(self, key, count)

    def draws(self, key: PRNGKey, count: int) -> GPSamples:
        return _draws(self, key, count)

    def noise(self) -> Float[Array, " dx"]:
        return self.model.frame.scale * self.model.noise_of_each_output()

    def width(self) -> Float[Array, " dx"]:
        """beta_n of each output."""
        return _width(self)

    def update(self, data: Transitions, key: PRNGKey) -> "WeightBelief":
        """The belief after these transitions of an episode; raises rather than return one that is not finite.

        No data are no update. The key is not used.
        """
        return self._after(data, self.chunk or 0)

    def condition_on(self, data: Transitions) -> "WeightBelief":
        """The belief that knows these offline data, from before the first episode; they count as no episode."""
        check_untouched(int(self.groups[0].now - self.offline))
        after = self._after(data, len(data.actions))
        return replace(after, offline=after.groups[0].now)

    def _after(self, data: Transitions, rows: int) -> "WeightBelief":
        """The belief after these data, padded to so many rows."""
        dx, dz = self.model.outputs, self.gap_at.shape[0]
        check_transitions(data, dx, dz - dx)
        if not len(data.actions):
            return self
        room = self.groups[0].beta.shape[0] - 1
        if int(self.groups[0].now) >= room:
            raise UserError(f"the belief has room for {room} updates; create it for more episodes.")
        after = self.append(*padded_rows(data, rows))
        _check_weights(after)
        return after

    def append(
        self,
        x: Float[Array, "T dx"],
        a: Float[Array, "T da"],
        y: Float[Array, "T dx"],
        valid: Float[Array, " T"] | None = None,
    ) -> "WeightBelief":
        """The same without a look at the data: for use within compiled programs.

        Rows whose `valid` is 0 are padding; without it there is none.
        """
        return _append(self, x, a, y, jnp.ones(len(x), EXACT) if valid is None else valid)

    def calibration_warning(self) -> str | None:
        """That the confidence sets so far had no common point at the data of an update, in words; None if they had."""
        if self.prior.bound is None or int(self.gap_update) < 0:
            return None
        output = int(np.argmax(np.asarray(self.gap)))
        return no_common_point(int(self.gap_update), int(self.offline), np.asarray(self.gap_at), output)

    def misfit(self) -> Misfit | None:
        """How well the best function explains all data so far; None without a bound."""
        if self.prior.bound is None:
            return None
        squares, count = _misfit(self)
        least, most = self.prior.bound**2 * self.model.outputs, float(jnp.sum(self.width() ** 2))
        return Misfit(int(count) * self.model.outputs, float(squares), least, most)

    def disagreement(self) -> float | None:
        """How far the offline data and the episodes are from being of one system: above 1 they are not.

        If they are, with the noise and the bound of the prior, the probability that it ever is above 1 is what a test
        may spend (`theory.evidence.SPENT`). None where there is nothing to compare.
        """
        if self.prior.bound is None or not int(self.offline):
            return None
        return float(_disagreement(self))


def _check_settings(model: GPModel, prior: GPPrior, settings: GPChoices) -> None:
    for kernel in model.kernels:
        if kernel.rank is None:
            raise UserError(
                f"{kernel.describe()} has infinitely many features; use GPBelief, which remembers the data."
            )
    if settings.sampler == "particles" or settings.fitted:
        raise UserError("a belief of weights has no particles and fits nothing; use GPBelief.")
    check_noise(prior)
    check_bound(prior, settings.sampler)


def _check_weights(belief: WeightBelief) -> None:
    for kernel, group in zip(belief.model.kernels, belief.groups, strict=True):
        if not _finite(group):
            raise UserError(
                f"{kernel.describe()}, or the prior's mean, is not finite on the data; use a bounded map of the inputs."
            )


@eqx.filter_jit
def _finite(group: Weights) -> Bool[Array, ""]:
    """Whether what is known now is."""
    return jnp.all(jnp.isfinite(group.inverse[group.now])) & jnp.all(jnp.isfinite(group.mean[group.now]))


@eqx.filter_jit
def _width(belief: WeightBelief) -> Float[Array, " dx"]:
    each = jnp.stack([group.beta[group.now] for group in belief.groups])
    return jnp.broadcast_to(each, (belief.model.outputs,))


@eqx.filter_jit
def _misfit(belief: WeightBelief) -> tuple[Scalar, Index]:
    return jnp.sum(jnp.concatenate([group.misfit() for group in belief.groups])), belief.groups[0].count


@eqx.filter_jit
def _disagreement(belief: WeightBelief) -> Scalar:
    """The largest of all outputs, of the confidence sets that follow from the offline data and from all other data."""
    model, bound, delta = belief.model, belief.prior.bound, SPENT * belief.settings.delta
    assert bound is not None
    each = []
    for group in belief.groups:
        parts = []
        for weights in group.before_and_since(belief.offline):
            radius = confidence_width(weights.information, bound, group.noise, 2 * model.outputs, delta)
            parts.append((weights, radius))
        for output in range(group.moment.shape[0]):
            sets = [Ellipsoid(weights.mean[output], weights.precision, radius) for weights, radius in parts]
            each.append(disagreement(*sets))
    return jnp.max(jnp.stack(each))


@eqx.filter_jit
def _append(
    belief: WeightBelief,
    x: Float[Array, "T dx"],
    a: Float[Array, "T da"],
    y: Float[Array, "T dx"],
    valid: Float[Array, " T"],
) -> WeightBelief:
    model, settings = belief.model, belief.settings
    inputs = jax.vmap(join)(x, a)
    targets = model.split(jax.vmap(model.frame.drop)(x, a, y))
    groups = tuple(group.append(inputs, part, valid) for group, part in zip(belief.groups, targets, strict=True))
    if belief.prior.bound is None:
        return eqx.tree_at(lambda b: b.groups, belief, groups)
    gained = jnp.stack([group.information() for group in groups])
    beta = confidence_width(gained, belief.prior.bound, model.noise, model.outputs, settings.delta, settings.convention)
    groups = tuple(group.with_width(b) for group, b in zip(groups, beta, strict=True))
    return _look_for_gaps(eqx.tree_at(lambda b: b.groups, belief, groups), inputs, valid)


def _look_for_gaps(belief: WeightBelief, inputs: Float[Array, "T dz"], valid: Float[Array, " T"]) -> WeightBelief:
    """Notes whether the confidence sets up to now have no common point at one of the new inputs."""
    now = belief.groups[0].now
    empty = jnp.concatenate([is_empty(group(inputs.T)) for group in belief.groups]) & (valid > 0)[None]  # [dx, T]
    first = jnp.any(empty) & (belief.gap_update < 0)
    worst = jnp.argmax(jnp.any(empty, axis=0))
    return eqx.tree_at(
        lambda b: (b.gap, b.gap_at, b.gap_update),
        belief,
        (
            jnp.where(first, empty[:, worst], belief.gap),
            jnp.where(first, inputs[worst], belief.gap_at),
            jnp.where(first, now, belief.gap_update),
        ),
    )


@eqx.filter_jit
def _nominal(belief: WeightBelief) -> GPSystem:
    means = tuple(group.function(group.mean[group.now], belief.precision) for group in belief.groups)
    return GPSystem(belief.model.frame, means, belief.signals)


@eqx.filter_jit
def _uncertainty(belief: WeightBelief) -> UncertaintyMeasure:
    variances = tuple(WeightVariance(group.phi, group.inverse[group.now]) for group in belief.groups)
    measure = UNCERTAINTIES[belief.settings.uncertainty]
    return measure(variances, belief.model.frame.scale, belief.model.noise_of_each_output())


@eqx.filter_jit
def _draws(belief: WeightBelief, key: PRNGKey, count: int) -> GPSamples:
    """m_n + L_n^-T xi, exactly."""
    parts = []
    for i, group in enumerate(belief.groups):
        xi = jax.random.normal(jax.random.fold_in(key, i), (count, *group.moment.shape), EXACT)
        weights = group.mean[group.now][None] + xi @ group.inverse[group.now]
        parts.append(_with_weights(group, weights, belief.precision))
    return GPSamples(belief.model.frame, tuple(parts), belief.signals)


def _with_weights(group: Weights, weights: Float[Array, "M k p"], precision: DTypeLike) -> Stack:
    """M functions with these weights, to be computed in this precision."""
    return Stack.varying(group.function(group.moment, precision), lambda f: f.weights, weights.astype(precision))


@eqx.filter_jit
def _samples(belief: WeightBelief, key: PRNGKey, count: int) -> GPSamples:
    """Prior weights, drawn once with the run's key, cut to the envelope; or posterior weights m_n + L_n^-T xi."""
    truncated = belief.settings.sampler == "truncated"
    if not truncated:
        key = jax.random.fold_in(key, belief.groups[0].now)
    parts = []
    for i, group in enumerate(belief.groups):
        xi = jax.random.normal(jax.random.fold_in(key, i), (count, *group.moment.shape), EXACT)
        weights = xi if truncated else group.mean[group.now][None] + xi @ group.inverse[group.now]
        stack = _with_weights(group, weights, belief.precision)
        parts.append(truncate(stack, group) if truncated else stack)
    return GPSamples(belief.model.frame, tuple(parts), belief.signals)
