"""The Gaussian-process belief: exact posterior around a prior mean, sampled functions, confidence, uncertainty."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from .._jax import EXACT
from ..errors import UserError
from ..model import Signals
from ..prior import GPPrior
from ..theory.confidence import confidence_width
from ..theory.evidence import Misfit
from ..transitions import Transitions
from ..types import Index, PRNGKey
from . import cholesky
from .blocks import BLOCK, padded_size
from .centres import SHARE, Centres, KernelSum, LowRankVariance
from .checks import check_bound, check_noise, check_sizes, check_transitions, check_untouched, no_common_point
from .choices import DEFAULT, GPChoices
from .fit import fit
from .functions import GPSamples, GPSystem, Stack, UnitFunction, join
from .gp_model import GPModel
from .particles import draw_particles
from .pathwise import WeightedFeatures, draw_posterior, draw_prior
from .posterior import Moments, Posterior, Variance
from .rows import padded_rows
from .truncation import Envelope, truncate
from .uncertainty import UNCERTAINTIES, UncertaintyMeasure, VarianceOf

__all__ = ["GPBelief"]


class Group(eqx.Module):
    """What is known of the outputs that share a kernel."""

    posterior: Posterior
    centres: Centres

    def mean(self, precision: DTypeLike) -> UnitFunction:
        """mu_n, as a sum over the centres, or over the features of a kernel of finite rank, in this precision."""
        posterior = self.posterior
        weights = posterior.solve(posterior.targets)
        if posterior.kernel.rank is None:
            return KernelSum.of(posterior, self.centres, weights, precision)
        return WeightedFeatures.mean_of(posterior, weights, precision)

    def variance(self, delicate: bool) -> VarianceOf:
        """sigma_n^2, from the centres, or solved for with all data where the noise is delicate."""
        if delicate:
            return Variance(Moments.of(self.posterior, delicate=True))
        return LowRankVariance.of(self.posterior, self.centres)

    def append(self, inputs: Float[Array, "T dz"], targets: Float[Array, "T k"], valid: Float[Array, " T"]) -> "Group":
        """After T more points; those whose `valid` is 0 are padding."""
        posterior = self.posterior.append(inputs, targets, valid)
        tolerance = SHARE * posterior.noise**2
        return Group(posterior, self.centres.grow(posterior.kernel, inputs, tolerance, valid))


FEATURES_OF_DRAWS = 512
"""Of functions on which policies are tried: with these a draw of the prior has the tails of a Gaussian process."""


LATER = np.iinfo(np.int32).max
"""With which update padding comes: none that there is."""


class GPBelief(eqx.Module):
    """All that is known after n episodes: every point that was seen."""

    prior: GPPrior = eqx.field(static=True)
    settings: GPChoices = eqx.field(static=True)
    signals: Signals | None = eqx.field(static=True)
    """Reward and costs of every model; None where they are not known."""
    chunk: int | None = eqx.field(static=True)
    """Data of fewer rows are padded to so many, so that nothing is recompiled; None pads nothing."""
    precision: DTypeLike = eqx.field(static=True)
    """In which functions are computed."""
    model: GPModel
    residuals: Float[Array, "n dx"]
    """y - mu(z), in units of the state."""
    episode_of: Int[Array, " n"]
    """With which update a point came, counted from 0."""
    updates: Index
    offline: Index
    """How many of the updates were with offline data."""
    groups: tuple[Group, ...]
    beta: Float[Array, "g E1"]
    """beta_0 .. beta_E of each kernel."""

    @classmethod
    def create(
        cls,
        prior: GPPrior,
        dz: int,
        points: int,
        episodes: int,
        settings: GPChoices = DEFAULT,
        *,
        signals: Signals | None = None,
        chunk: int | None = None,
    ) -> "GPBelief":
        """The prior, with room for so many transitions, for offline data once, and for so many episodes.

        dz is the size of an input (x, a); `chunk` the length of an episode that does not end early.
        """
        model = GPModel.of(prior)
        check_sizes(model, dz)
        check_noise(prior)
        check_bound(prior, settings.sampler)
        room = padded_size(points)
        return cls(
            prior=prior,
            settings=settings,
            signals=signals,
            chunk=chunk,
            precision=GPModel.precision(prior),
            model=model,
            residuals=jnp.zeros((room, model.outputs), EXACT),
            episode_of=jnp.full(room, LATER, jnp.int32),
            updates=jnp.zeros((), jnp.int32),
            offline=jnp.zeros((), jnp.int32),
            groups=_no_data(model, room, dz),
            beta=jnp.full((len(model.kernels), episodes + 2), np.inf if prior.bound is None else prior.bound, EXACT),
        )

    @property
    def count(self) -> Index:
        return self.groups[0].posterior.count

    @property
    def delicate(self) -> bool:
        """Whether variances are solved for."""
        return GPModel.delicate(self.prior)

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
        return jnp.broadcast_to(self.beta[:, self.updates], (self.model.outputs,))

    def misfit(self) -> Misfit | None:
        """How well the best function explains all data so far; None without a bound, or with a fitted model."""
        if self.prior.bound is None or self.settings.fitted:
            return None
        squares = sum(float(jnp.sum(group.posterior.whitened**2)) for group in self.groups)
        least, most = self.prior.bound**2 * self.model.outputs, float(jnp.sum(self.width() ** 2))
        return Misfit(int(self.count) * self.model.outputs, squares, least, most)

    def update(self, data: Transitions, key: PRNGKey) -> "GPBelief":
        """The belief after these transitions of an episode; raises rather than return one that is not finite.

        No data are no update. The key is not used.
        """
        room = self.residuals.shape[0] - int(self.count)
        return self._after(data, min(self.chunk or 0, room))

    def condition_on(self, data: Transitions) -> "GPBelief":
        """The belief that knows these offline data, from before the first episode; they count as no episode."""
        check_untouched(int(self.updates - self.offline))
        after = self._after(data, len(data.actions))
        return replace(after, offline=after.updates)

    def _after(self, data: Transitions, rows: int) -> "GPBelief":
        """The belief after these data, padded to so many rows."""
        _check(self, data)
        if not len(data.actions):
            return self
        after = _append(self, *padded_rows(data, rows))
        _check_factors(after)
        if self.settings.fitted:
            after = _rebuild(after, fit(after.model, after.groups[0].posterior.inputs, after.residuals, after.count))
            _check_factors(after)
        return after

    def calibration_warning(self) -> str | None:
        """That the confidence sets so far have no common point at one of the data, in words; None if they have.

        Without a bound, or with a model that is fitted to the data, there is nothing that data could contradict.
        """
        if self.prior.bound is None or self.settings.fitted:
            return None
        empty = np.asarray(_empty_intersections(self))
        points, episodes, outputs = np.nonzero(empty)
        if not len(points):
            return None
        first = int(np.argmin(episodes))
        z = np.asarray(self.groups[0].posterior.inputs[points[first]])
        return no_common_point(int(episodes[first]), int(self.offline), z, int(outputs[first]))


def _no_data(model: GPModel, room: int, dz: int) -> tuple[Group, ...]:
    return tuple(
        Group(Posterior.empty(kernel, noise, room, dz, outputs), Centres.empty(room, dz))
        for kernel, noise, outputs in zip(model.kernels, model.noise, model.group_sizes, strict=True)
    )


def _check(belief: GPBelief, data: Transitions) -> None:
    dx, dz = belief.model.outputs, belief.groups[0].posterior.inputs.shape[1]
    check_transitions(data, dx, dz - dx)
    room, total = belief.residuals.shape[0], int(belief.count) + len(data.actions)
    if total > room or int(belief.updates) + 2 > belief.beta.shape[1]:
        raise UserError(
            f"the belief has room for {room} transitions and {belief.beta.shape[1] - 1} updates, and would hold "
            f"{total} after update {int(belief.updates) + 1}; create it with more capacity."
        )


def _check_factors(belief: GPBelief) -> None:
    for kernel, group in zip(belief.model.kernels, belief.groups, strict=True):
        if jnp.all(jnp.isfinite(jnp.diagonal(group.posterior.factor))):  # a row with a gap has none on its diagonal
            continue
        points = int(group.posterior.count)
        if not jnp.all(jnp.isfinite(jax.vmap(lambda z, k=kernel: k(z, z))(group.posterior.inputs[:points]))):
            raise UserError(f"{kernel.describe()} is not finite on the data; use a bounded map of the inputs.")
        raise UserError(
            f"the Gram matrix of {points} points is not positive definite even with a jitter of "
            f"{cholesky.LAST_JITTER:g}: {kernel.describe()} is no kernel on these data, or the noise, which is "
            f"{float(group.posterior.noise):g}, is too small."
        )


@eqx.filter_jit
def _append(
    belief: GPBelief,
    x: Float[Array, "T dx"],
    a: Float[Array, "T da"],
    y: Float[Array, "T dx"],
    valid: Float[Array, " T"],
) -> GPBelief:
    """The belief after T transitions. Those whose `valid` is 0 are padding: nothing depends on them."""
    model = belief.model
    inputs = jax.vmap(join)(x, a)
    residuals = jnp.where(valid[:, None] > 0, y - jax.vmap(model.frame.mean)(x, a), 0)
    targets = jax.vmap(model.frame.drop)(x, a, y)
    groups = tuple(
        group.append(inputs, part, valid) for group, part in zip(belief.groups, model.split(targets), strict=True)
    )
    came = jnp.where(valid > 0, belief.updates, LATER)
    return _with_confidence(
        belief,
        model,
        groups,
        jax.lax.dynamic_update_slice_in_dim(belief.residuals, residuals, belief.count, 0),
        jax.lax.dynamic_update_slice_in_dim(belief.episode_of, came, belief.count, 0),
        belief.updates + 1,
    )


@eqx.filter_jit
def _rebuild(belief: GPBelief, model: GPModel) -> GPBelief:
    """The same data seen with another model."""
    inputs, count = belief.groups[0].posterior.inputs, belief.count
    valid = belief.groups[0].posterior.valid
    targets = (belief.residuals - model.frame.offset[None, :]) / model.frame.scale[None, :] * valid[:, None]
    groups = []
    for kernel, noise, part in zip(model.kernels, model.noise, model.split(targets), strict=True):
        posterior = Posterior.given(kernel, noise, inputs, part, count)
        centres = Centres.empty(*inputs.shape).grow(kernel, inputs, SHARE * noise**2, valid)
        groups.append(Group(posterior, centres))
    return _with_confidence(belief, model, tuple(groups), belief.residuals, belief.episode_of, belief.updates)


def _with_confidence(
    belief: GPBelief,
    model: GPModel,
    groups: tuple[Group, ...],
    residuals: Float[Array, "n dx"],
    episode_of: Int[Array, " n"],
    updates: Index,
) -> GPBelief:
    """Puts the parts together, with beta_n from the information that the data have given."""
    beta = belief.beta
    if belief.prior.bound is not None:
        gained = jnp.stack([group.posterior.information() for group in groups])
        width = confidence_width(
            gained, belief.prior.bound, model.noise, model.outputs, belief.settings.delta, belief.settings.convention
        )
        beta = jax.lax.dynamic_update_slice_in_dim(beta, width[:, None], updates, axis=1)
    return replace(
        belief, model=model, residuals=residuals, episode_of=episode_of, updates=updates, groups=groups, beta=beta
    )


@eqx.filter_jit
def _nominal(belief: GPBelief) -> GPSystem:
    precision = belief.precision
    return GPSystem(belief.model.frame, tuple(group.mean(precision) for group in belief.groups), belief.signals)


@eqx.filter_jit
def _uncertainty(belief: GPBelief) -> UncertaintyMeasure:
    variances = tuple(group.variance(belief.delicate) for group in belief.groups)
    measure = UNCERTAINTIES[belief.settings.uncertainty]
    return measure(variances, belief.model.frame.scale, belief.model.noise_of_each_output())


@eqx.filter_jit
def _samples(belief: GPBelief, key: PRNGKey, count: int) -> GPSamples:
    """Truncated samples use the run's key and stay the same functions; the others are of this episode."""
    if belief.settings.sampler != "truncated":
        key = jax.random.fold_in(key, belief.updates)
    parts = []
    for i, group in enumerate(belief.groups):
        parts.append(_draw(belief, i, group, jax.random.fold_in(key, i), count))
    return GPSamples(belief.model.frame, tuple(parts), belief.signals)


@eqx.filter_jit
def _draws(belief: GPBelief, key: PRNGKey, count: int) -> GPSamples:
    """As samples of the pathwise kind, with more features: what is rare is to be counted."""
    settings = belief.settings
    features = max(settings.features, FEATURES_OF_DRAWS)
    parts = tuple(
        draw_posterior(
            jax.random.fold_in(key, i),
            count,
            group.posterior,
            group.centres,
            features,
            settings.estimator,
            belief.precision,
        )
        for i, group in enumerate(belief.groups)
    )
    return GPSamples(belief.model.frame, parts, belief.signals)


def _draw(belief: GPBelief, i: int, group: Group, key: PRNGKey, count: int) -> Stack:
    settings, precision = belief.settings, belief.precision
    if settings.sampler == "particles":
        return draw_particles(key, count, group.mean(precision), group.variance(belief.delicate))
    if settings.sampler == "truncated":
        drawn = draw_prior(key, count, group.posterior, settings.features, settings.estimator, precision)
        return truncate(drawn, _envelope(belief, i))
    return draw_posterior(key, count, group.posterior, group.centres, settings.features, settings.estimator, precision)


def _envelope(belief: GPBelief, i: int) -> Envelope:
    """The confidence sets of group i at all episodes so far."""
    episodes = jnp.arange(belief.beta.shape[1], dtype=jnp.int32)
    before = (belief.episode_of[None, :] < episodes[:, None]).astype(EXACT)
    return Envelope(Moments.of(belief.groups[i].posterior, belief.delicate), before, belief.beta[i], belief.updates)


@eqx.filter_jit
def _empty_intersections(belief: GPBelief) -> Bool[Array, "n E1 dx"]:
    """Where, at which episode and for which output the confidence sets so far have no common point, at the data."""
    posterior = belief.groups[0].posterior
    each = []
    for i in range(len(belief.groups)):
        envelope = _envelope(belief, i)
        each.append(jax.lax.map(envelope.empty, posterior.inputs, batch_size=BLOCK))
    return jnp.concatenate(each, axis=-1) & (posterior.valid > 0)[:, None, None]
