"""How much is still unknown at (x, a): s_n of the paper, and the measure of its experiments."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..types import Action, Scalar, State
from .centres import LowRankVariance
from .functions import join
from .posterior import root

__all__ = ["UNCERTAINTIES", "Deviation", "Information"]


class _Variances(eqx.Module):
    """One variance for all outputs, or one for each."""

    variances: tuple[LowRankVariance, ...]
    scale: Float[Array, " dx"]
    noise: Float[Array, " dx"]
    """sigma_w of each output, in units of its scale."""

    def __call__(self, x: State, a: Action) -> Scalar:
        return self.many(x[:, None], a[:, None])[0]

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> Float[Array, " C"]:
        """The same at C states and actions, as columns."""
        z = join(x, a)
        each = jnp.stack([variance(z) for variance in self.variances])
        return self.measure(jnp.broadcast_to(each, (self.scale.shape[0], x.shape[1]))).astype(x.dtype)

    @abstractmethod
    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        """From sigma_{n,j}^2, in units of the scale."""


class Information(_Variances):
    """sum_j ln(1 + sigma_{n,j}^2 / sigma_{w,j}^2), in nats a step (appendix F)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return jnp.sum(jnp.log1p(variances / self.noise[:, None] ** 2), axis=0)


class Deviation(_Variances):
    """s_n(z) = |sigma_n(z)|, in units of the state (section 4)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return root(jnp.sum(variances * self.scale[:, None] ** 2, axis=0))


UNCERTAINTIES = {
    "information": Information,
    "deviation": Deviation,
}
