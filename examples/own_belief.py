"""A belief of your own: Bayesian linear regression around the prior's mean, whose samples are draws of the weights.

sbsrl train pendulum --set belief=own_belief:LinearSettings
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.model import KnownModel
from sbsrl.validation import Number, declared, validate


class Line(eqx.Module):
    """One dynamics: the prior's mean, and what weights add to it."""

    prior: object = eqx.field(static=True)
    weights: jax.Array

    def __call__(self, x, a):
        scale = jnp.asarray(self.prior.scale, x.dtype)
        return self.prior.mean(x, a) + scale * (features(x, a) @ self.weights.astype(x.dtype))


def features(x, a):
    return jnp.concatenate([x, a, jnp.ones(1, x.dtype)])


class Lines(eqx.Module):
    """M of them."""

    prior: object = eqx.field(static=True)
    signals: object = eqx.field(static=True)
    weights: jax.Array

    def __len__(self):
        return len(self.weights)

    def member(self, m):
        return KnownModel(Line(self.prior, self.weights[m]), self.signals)


class LinearBelief(eqx.Module):
    """Weights ~ N(P^-1 b, noise^2 P^-1), the same covariance for all outputs, in units of the prior's scale."""

    prior: object = eqx.field(static=True)
    signals: object = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    precision: jax.Array
    pull: jax.Array

    def mean(self):
        return jnp.linalg.solve(self.precision, self.pull)

    def nominal(self):
        return KnownModel(Line(self.prior, self.mean()), self.signals)

    def samples(self, key, count):
        root = jnp.linalg.cholesky(jnp.linalg.inv(self.precision))
        drawn = jax.random.normal(key, (count, *self.pull.shape), self.pull.dtype)
        return Lines(self.prior, self.signals, self.mean()[None] + self.noise * root @ drawn)

    def uncertainty(self):
        """The information of a step, 1/2 ln(1 + phi' P^-1 phi) for every output."""
        inverse, outputs = jnp.linalg.inv(self.precision), self.pull.shape[1]
        gain = lambda phi: 0.5 * outputs * jnp.log1p(phi @ inverse.astype(phi.dtype) @ phi)  # noqa: E731
        return lambda x, a: gain(features(x, a))

    def update(self, data, key):
        x, a = jnp.asarray(data.states), jnp.asarray(data.actions)
        phi = jax.vmap(features)(x, a)
        left = (jnp.asarray(data.next_states) - jax.vmap(self.prior.mean)(x, a)) / jnp.asarray(self.prior.scale)[None]
        return replace(self, precision=self.precision + phi.T @ phi, pull=self.pull + phi.T @ left)


@dataclass(frozen=True)
class LinearSettings:
    """Bayesian linear regression."""

    name: ClassVar[str] = "own_belief:LinearSettings"
    calibrated: ClassVar[bool] = False
    noise: float = declared(Number(0), 0.1, "of a step, in units of the prior's scale")
    width: float = declared(Number(0), 1.0, "deviation of a weight before any data")

    def __post_init__(self):
        validate(self, "belief.")

    def create(self, task, episodes, key):
        size = task.input_size + 1
        start = LinearBelief(
            prior=task.prior.gp,
            signals=task.signals,
            noise=self.noise,
            precision=jnp.eye(size) * (self.noise / self.width) ** 2,
            pull=jnp.zeros((size, task.state_size)),
        )
        return start if task.prior.data is None else start.update(task.prior.data, key)

    def largest_uncertainty(self, task):
        return np.inf

    def describe(self, task):
        return {"belief": "linear", "noise": self.noise, "width": self.width}

    def against_safety(self, task):
        yield "the theorem is about Gaussian processes."
