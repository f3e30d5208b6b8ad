"""How much is still unknown at (x, a): s_n of the paper, and the measure of its experiments."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..kernels.features import Inputs
from ..types import Action, Scalar, State
from .functions import join
from .posterior import root

__all__ = ["UNCERTAINTIES", "Deviation", "Information", "UncertaintyMeasure"]


Variance = Callable[[Inputs], Float[Array, "*C"]]
"""sigma_n^2 of the outputs that share a kernel."""


class UncertaintyMeasure(eqx.Module):
    """One variance for all outputs, or one for each."""

    variances: tuple[Variance, ...]
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


class Information(UncertaintyMeasure):
    """sum_j ln(1 + sigma_{n,j}^2 / sigma_{w,j}^2), in nats a step (appendix F)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return jnp.sum(jnp.log1p(variances / self.noise[:, None] ** 2), axis=0)


class Deviation(UncertaintyMeasure):
    """s_n(z) = |sigma_n(z)|, in units of the state (section 4)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return root(jnp.sum(variances * self.scale[:, None] ** 2, axis=0))


UNCERTAINTIES = {
    "information": Information,
    "deviation": Deviation,
}
