"""TS1 particles (appendix F of the paper): x_{t+1} ~ N(mu_n(z), sigma_n^2(z)), with fresh noise at every step.

A particle is not a function drawn from the posterior: nearby inputs have independent noise. It is written as a function
all the same, of white noise: the noise at z is drawn with a key made of the particle's own and of the digits of z. So
every particle, candidate and step has noise of its own, and the same question always has the same answer.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import PLAN
from ..kernels.features import Inputs, columns
from ..types import Input, PRNGKey
from .functions import Stack, UnitFunction
from .posterior import root
from .uncertainty import VarianceOf

__all__ = ["Particle", "draw_particles"]


class Particle(eqx.Module):
    """mu_n(z) + width sigma_n(z) eps(z)."""

    mean: UnitFunction
    variance: VarianceOf
    key: PRNGKey
    width: float = eqx.field(static=True, default=1.0)
    """Factor on sigma_n: 1 in the paper, 3 in its public code."""

    def __call__(self, z: Inputs) -> Float[Array, "k *C"]:
        mean = self.mean(z)
        outputs = mean.shape[0]
        noise = columns(lambda z: jax.random.normal(key_at(self.key, z), (outputs,), mean.dtype), z)
        return mean + self.width * root(self.variance(z)).astype(mean.dtype)[None] * noise


def key_at(key: PRNGKey, z: Input) -> PRNGKey:
    """A key that belongs to this input; minus zero is zero."""
    z = jnp.where(z == 0, 0, z).astype(PLAN)
    for word in jax.lax.bitcast_convert_type(z, jnp.uint32):
        key = jax.random.fold_in(key, word)
    return key


def draw_particles(key: PRNGKey, size: int, mean: UnitFunction, variance: VarianceOf) -> Stack:
    """M particles."""
    return Stack.varying(Particle(mean, variance, key), lambda p: p.key, jax.random.split(key, size))
