"""The running intersection of all confidence sets, and prior samples cut to it (eq. truncated of the paper).

    f_n^m(z) = clip(f_{n-1}^m(z), mu_n(z) - beta_n sigma_n(z), mu_n(z) + beta_n sigma_n(z)),   f_{-1}^m the prior draw,

with mu_0 = mu, sigma_0 = sqrt(k(z, z)), beta_0 = B. As long as the intervals of all episodes have a common point, the
recursion is one clip to [max_i lo_i, min_i hi_i]. If they have none, the confidence sets do not all contain the truth:
the calibration assumption is violated.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..kernels.features import Inputs, columns
from ..types import Index
from .functions import Stack, UnitFunction, blank
from .posterior import Moments, root

__all__ = ["Envelope", "Interval", "Truncated", "is_empty", "truncate"]


class Interval(NamedTuple):
    """What is left for each output."""

    low: Float[Array, "..."]
    high: Float[Array, "..."]


class Envelope(eqx.Module):
    """The intersection of the confidence sets of episodes 0 .. n, of the outputs that share a kernel."""

    moments: Moments
    before: Float[Array, "E1 n"]
    """before[i, q] is 1 if point q was known at episode i."""
    beta: Float[Array, " E1"]
    """beta_0 .. beta_n, then anything."""
    episode: Index
    """n."""

    def intervals(self, z: Inputs, rounding: float = 0.0) -> Interval:
        """mu_i -+ beta_i sigma_i for every episode; what lies in the future is the whole line.

        `rounding` is a share of k(z, z) by which sigma_i^2 is taken to be larger than computed.
        """
        z = z.astype(EXACT)
        mean, variance = self.moments.prefixes(z, self.before)
        one_each = (-1, *(1,) * (mean.ndim - 1))
        deviation = root(variance + rounding * columns(lambda z: self.moments.kernel(z, z), z)[None])
        width = self.beta.reshape(one_each) * deviation[:, None]
        past = (jnp.arange(self.beta.shape[0], dtype=jnp.int32) <= self.episode).reshape(one_each)
        return Interval(jnp.where(past, mean - width, -jnp.inf), jnp.where(past, mean + width, jnp.inf))

    def __call__(self, z: Inputs) -> Interval:
        """[max_i lo_i, min_i hi_i]."""
        each = self.intervals(z)
        return Interval(jnp.max(each.low, axis=0), jnp.min(each.high, axis=0))

    def empty(self, z: Inputs) -> Bool[Array, "E1 k *C"]:
        """Whether the intersection of the confidence sets up to each episode is empty at z."""
        # With little noise sigma_i^2 is a difference of rounded numbers, up to 1e-11 off: that is no violation.
        each = self.intervals(z, rounding=1e-10)
        return is_empty(Interval(jax.lax.cummax(each.low), jax.lax.cummin(each.high)))


def is_empty(interval: Interval) -> Bool[Array, "..."]:
    """Whether nothing lies between the ends, beyond rounding."""
    return interval.low > interval.high + 1e-9 * (1 + jnp.abs(interval.low))


class Truncated(eqx.Module):
    """A function, cut to the envelope."""

    function: UnitFunction
    envelope: Callable[[Inputs], Interval]

    def __call__(self, z: Inputs) -> Float[Array, "k *C"]:
        value = self.function(z)
        interval = self.envelope(z)
        return jnp.clip(value.astype(EXACT), *interval).astype(value.dtype)


def truncate(stack: Stack, envelope: Callable[[Inputs], Interval]) -> Stack:
    """The same functions, all cut to one envelope."""
    return Stack(own=Truncated(stack.own, blank(envelope)), shared=Truncated(stack.shared, envelope))
