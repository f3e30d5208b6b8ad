"""How much is still unknown at (x, a): s_n of the paper, and the measure of its experiments."""

import math
from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..kernels.features import Inputs
from ..prior import GPPrior
from ..types import Action, Scalar, State
from .functions import join
from .gp_model import GPModel
from .posterior import root

__all__ = ["UNCERTAINTIES", "Deviation", "Information", "UncertaintyMeasure", "VarianceOf", "largest_uncertainty"]


VarianceOf = Callable[[Inputs], Float[Array, "*C"]]
"""sigma_n^2 of the outputs that share a kernel."""


class UncertaintyMeasure(eqx.Module):
    """s_n, computed from one variance for all outputs, or one for each."""

    variances: tuple[VarianceOf, ...]
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
    """sum_j ln(1 + sigma_{n,j}^2 / sigma_{w,j}^2), in nats per step (appendix F)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return jnp.sum(jnp.log1p(variances / self.noise[:, None] ** 2), axis=0)


class Deviation(UncertaintyMeasure):
    """s_n(z) = |sigma_n(z)|, in units of the state (section 4)."""

    def measure(self, variances: Float[Array, "dx C"]) -> Float[Array, " C"]:
        return root(jnp.sum(variances * self.scale[:, None] ** 2, axis=0))


UNCERTAINTIES: dict[str, type[UncertaintyMeasure]] = {
    "information": Information,
    "deviation": Deviation,
}


def largest_uncertainty(prior: GPPrior, limits: tuple[float, ...], measure: str) -> float:
    """sup_z s_0(z): what no step can exceed, however little is known; infinite where the kernel has no bound."""
    model = GPModel.of(prior)
    variances = [kernel.supremum(limits) for kernel in model.kernels]
    if not all(variance < math.inf for variance in variances):
        return math.inf
    each = np.broadcast_to(np.asarray(variances, float)[:, None], (model.outputs, 1))
    answer = UNCERTAINTIES[measure]((), model.frame.scale, model.noise_of_each_output())
    return float(answer.measure(jnp.asarray(each))[0])
