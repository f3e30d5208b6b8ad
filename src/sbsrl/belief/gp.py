"""The Gaussian-process belief: exact posterior around a prior mean, sampled functions, confidence, uncertainty."""

from collections.abc import Collection
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._jax import EXACT
from ..errors import UserError, unknown
from ..kernels import ESTIMATORS
from ..task import Prior, Transitions
from ..theory import CONVENTIONS, confidence_width
from ..types import Index, PRNGKey
from . import cholesky
from .blocks import BLOCK, padded_size
from .centres import SHARE, Centres, KernelSum, LowRankVariance
from .checks import check_bound, check_sizes, check_transitions, no_common_point
from .fit import fit
from .functions import GPDynamics, GPSamples, Stack, UnitFunction, join
from .model import Model
from .particles import draw_particles
from .pathwise import WeightedFeatures, draw_posterior, draw_prior
from .posterior import Moments, Posterior
from .truncation import Envelope, truncate
from .uncertainty import UNCERTAINTIES, UncertaintyMeasure

__all__ = ["SAMPLERS", "GPBelief", "GPOptions"]

SAMPLERS = {
    "pathwise": "functions drawn anew from the posterior before each episode",
    "truncated": "functions drawn once from the prior, cut to all confidence sets so far (the paper's analysis)",
    "particles": "fresh posterior noise at every step, TS1 (the paper's experiments)",
}


@dataclass(frozen=True)
class GPOptions:
    """How the belief answers; none of it is knowledge about the system."""

    sampler: str = "pathwise"
    features: int = 128
    """Fourier features of a drawn function."""
    estimator: str = "paired"
    uncertainty: str = "information"
    delta: float = 0.1
    """Probability that the confidence sets may miss the truth."""
    convention: str = "corrected"
    """Of the confidence width beta_n."""
    fitted: bool = False
    """Whether kernel, scale and noise are fitted to the data after each episode. Then no guarantee holds."""

    def __post_init__(self) -> None:
        choices: dict[str, Collection[str]] = {
            "sampler": SAMPLERS,
            "estimator": ESTIMATORS,
            "uncertainty": UNCERTAINTIES,
            "convention": CONVENTIONS,
        }
        for kind, known in choices.items():
            if getattr(self, kind) not in known:
                raise unknown(kind, getattr(self, kind), known)
        if self.sampler == "truncated" and self.fitted:
            raise UserError(
                "truncated samples are functions of one prior, kept over all episodes, and a fitted model changes it; "
                "use fitted=false, or another sampler."
            )


DEFAULT_OPTIONS = GPOptions()


class Group(eqx.Module):
    """What is known of the outputs that share a kernel."""

    posterior: Posterior
    centres: Centres

    def mean(self) -> UnitFunction:
        """mu_n, as a sum over the centres, or over the features of a kernel of finite rank."""
        posterior = self.posterior
        weights = posterior.solve(posterior.targets)
        if posterior.kernel.rank is None:
            projected = self.centres.project(posterior.kernel, posterior.inputs, weights)
            return KernelSum.at(self.centres, posterior.kernel, projected)
        return WeightedFeatures.mean_of(posterior, weights)

    def append(self, inputs: Float[Array, "T dz"], targets: Float[Array, "T k"]) -> "Group":
        posterior = self.posterior.append(inputs, targets)
        tolerance = SHARE * posterior.noise**2
        return Group(posterior, self.centres.grow(posterior.kernel, inputs, tolerance, jnp.ones(len(inputs), EXACT)))


class GPBelief(eqx.Module):
    """All that is known after n episodes."""

    prior: Prior = eqx.field(static=True)
    options: GPOptions = eqx.field(static=True)
    model: Model
    residuals: Float[Array, "n dx"]
    """y - mu(z), in units of the state."""
    episode_of: Int[Array, " n"]
    """With which update a point came, counted from 0."""
    updates: Index
    groups: tuple[Group, ...]
    beta: Float[Array, "g E1"]
    """beta_0 .. beta_E of each kernel."""

    @classmethod
    def create(
        cls, prior: Prior, dz: int, points: int, episodes: int, options: GPOptions = DEFAULT_OPTIONS
    ) -> "GPBelief":
        """The prior, with room for so many transitions and episodes; conditioned on the prior's own data, if any.

        dz is the size of an input (x, a).
        """
        model = Model.of(prior)
        check_sizes(model, dz)
        known = 0 if prior.data is None else len(prior.data.actions)
        room = padded_size(points + known)
        check_bound(prior, options.sampler)
        belief = cls(
            prior=prior,
            options=options,
            model=model,
            residuals=jnp.zeros((room, model.outputs), EXACT),
            episode_of=jnp.full(room, np.iinfo(np.int32).max, jnp.int32),
            updates=jnp.zeros((), jnp.int32),
            groups=_no_data(model, room, dz),
            beta=jnp.full((len(model.kernels), episodes + 2), np.inf if prior.bound is None else prior.bound, EXACT),
        )
        return belief if prior.data is None else belief.update(prior.data)

    @property
    def count(self) -> Index:
        return self.groups[0].posterior.count

    def nominal(self) -> GPDynamics:
        return _nominal(self)

    def uncertainty(self) -> UncertaintyMeasure:
        return _uncertainty(self)

    def samples(self, key: PRNGKey, count: int) -> GPSamples:
        return _samples(self, key, count)

    def width(self) -> Float[Array, " dx"]:
        """beta_n of each output."""
        return jnp.broadcast_to(self.beta[:, self.updates], (self.model.outputs,))

    def update(self, data: Transitions) -> "GPBelief":
        """The belief after these transitions; raises rather than return one that is not finite."""
        _check(self, data)
        if not len(data.actions):
            return self
        after = _append(self, *(jnp.asarray(part, EXACT) for part in data))
        _check_factors(after)
        if self.options.fitted:
            after = _rebuild(after, fit(after.model, after.groups[0].posterior.inputs, after.residuals, after.count))
            _check_factors(after)
        return after

    def objection(self) -> str | None:
        """What the data say against the assumptions: that the confidence sets so far have no common point.

        Without a bound, or with a model that is fitted to the data, there is nothing that they could contradict.
        """
        if self.prior.bound is None or self.options.fitted:
            return None
        empty = np.asarray(_empty_intersections(self))
        points, episodes, outputs = np.nonzero(empty)
        if not len(points):
            return None
        first = int(np.argmin(episodes))
        offline = int(self.prior.data is not None and len(self.prior.data.actions) > 0)
        z = np.asarray(self.groups[0].posterior.inputs[points[first]])
        return no_common_point(int(episodes[first]) - offline, z, int(outputs[first]))


def _no_data(model: Model, room: int, dz: int) -> tuple[Group, ...]:
    return tuple(
        Group(Posterior.none(kernel, noise, room, dz, outputs), Centres.none(room, dz))
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
        if jnp.all(jnp.isfinite(group.posterior.factor)):
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
def _append(belief: GPBelief, x: Float[Array, "T dx"], a: Float[Array, "T da"], y: Float[Array, "T dx"]) -> GPBelief:
    model = belief.model
    inputs = jax.vmap(join)(x, a)
    residuals = y - jax.vmap(model.frame.mean)(x, a)
    targets = jax.vmap(model.frame.drop)(x, a, y)
    groups = tuple(group.append(inputs, part) for group, part in zip(belief.groups, model.split(targets), strict=True))
    came = jnp.broadcast_to(belief.updates, (len(inputs),))
    return _with_confidence(
        belief,
        model,
        groups,
        jax.lax.dynamic_update_slice_in_dim(belief.residuals, residuals, belief.count, 0),
        jax.lax.dynamic_update_slice_in_dim(belief.episode_of, came, belief.count, 0),
        belief.updates + 1,
    )


@eqx.filter_jit
def _rebuild(belief: GPBelief, model: Model) -> GPBelief:
    """The same data seen with another model."""
    inputs, count = belief.groups[0].posterior.inputs, belief.count
    valid = belief.groups[0].posterior.valid
    targets = (belief.residuals - model.frame.offset[None, :]) / model.frame.scale[None, :] * valid[:, None]
    groups = []
    for kernel, noise, part in zip(model.kernels, model.noise, model.split(targets), strict=True):
        posterior = Posterior.given(kernel, noise, inputs, part, count)
        centres = Centres.none(*inputs.shape).grow(kernel, inputs, SHARE * noise**2, valid)
        groups.append(Group(posterior, centres))
    return _with_confidence(belief, model, tuple(groups), belief.residuals, belief.episode_of, belief.updates)


def _with_confidence(
    belief: GPBelief,
    model: Model,
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
            gained, belief.prior.bound, model.noise, model.outputs, belief.options.delta, belief.options.convention
        )
        beta = jax.lax.dynamic_update_slice_in_dim(beta, width[:, None], updates, axis=1)
    return GPBelief(belief.prior, belief.options, model, residuals, episode_of, updates, groups, beta)


@eqx.filter_jit
def _nominal(belief: GPBelief) -> GPDynamics:
    return GPDynamics(belief.model.frame, tuple(group.mean() for group in belief.groups))


@eqx.filter_jit
def _uncertainty(belief: GPBelief) -> UncertaintyMeasure:
    variances = tuple(LowRankVariance.of(group.posterior, group.centres) for group in belief.groups)
    measure = UNCERTAINTIES[belief.options.uncertainty]
    return measure(variances, belief.model.frame.scale, belief.model.noise_of_each_output())


@eqx.filter_jit
def _samples(belief: GPBelief, key: PRNGKey, count: int) -> GPSamples:
    """Truncated samples use the run's key and stay the same functions; the others are of this episode."""
    options = belief.options
    if options.sampler != "truncated":
        key = jax.random.fold_in(key, belief.updates)
    parts = []
    for i, group in enumerate(belief.groups):
        parts.append(_draw(belief, i, group, jax.random.fold_in(key, i), count))
    return GPSamples(belief.model.frame, tuple(parts))


def _draw(belief: GPBelief, i: int, group: Group, key: PRNGKey, count: int) -> Stack:
    options = belief.options
    if options.sampler == "particles":
        return draw_particles(key, count, group.mean(), LowRankVariance.of(group.posterior, group.centres))
    if options.sampler == "truncated":
        drawn = draw_prior(key, count, group.posterior, options.features, options.estimator)
        return truncate(drawn, _envelope(belief, i))
    return draw_posterior(key, count, group.posterior, group.centres, options.features, options.estimator)


def _envelope(belief: GPBelief, i: int) -> Envelope:
    """The confidence sets of group i at all episodes so far."""
    episodes = jnp.arange(belief.beta.shape[1], dtype=jnp.int32)
    before = (belief.episode_of[None, :] < episodes[:, None]).astype(EXACT)
    return Envelope(Moments.of(belief.groups[i].posterior), before, belief.beta[i], belief.updates)


@eqx.filter_jit
def _empty_intersections(belief: GPBelief) -> Bool[Array, "n E1 dx"]:
    """Where, at which episode and for which output the confidence sets so far have no common point, at the data."""
    posterior = belief.groups[0].posterior
    each = []
    for i in range(len(belief.groups)):
        envelope = _envelope(belief, i)
        each.append(jax.lax.map(envelope.empty, posterior.inputs, batch_size=BLOCK))
    return jnp.concatenate(each, axis=-1) & (posterior.valid > 0)[:, None, None]
