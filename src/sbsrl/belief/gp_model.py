"""The Gaussian-process model: prior mean, units, kernels, noise. One kernel for all outputs, or one for each."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..kernels import Kernel
from ..kernels.base import positive
from ..prior import GPPrior
from .functions import Frame

__all__ = ["GPModel", "smallest_noise"]


FINE = 1e-3
"""Share of the scale, or of the kernel's deviation if that is larger: noise so small, or smaller, is too small for
single precision."""

DELICATE = 1e-4
"""The same for variances in double precision, computed by an inverse: at 1e-4 deviations at the data are right to 6 %,
at 1e-5 nothing is left of them."""


def smallest_noise(prior: GPPrior) -> float:
    """The least of all outputs, as a share of its scale, or of its kernel's deviation if that has a bound above 1."""
    sizes = [math.sqrt(most) if (most := kernel.supremum()) < math.inf else 1.0 for kernel in prior.kernels]
    return float(np.min(np.asarray(prior.noise) / np.maximum(1.0, sizes)))


class GPModel(eqx.Module):
    """f(z) = mu(z) + offset + scale * g(z), g_j ~ GP(0, k_j), observed with noise sigma_{w,j} in units of the scale."""

    frame: Frame
    kernels: tuple[Kernel, ...]
    """One, shared by all outputs, or one per output."""
    noise: Float[Array, " g"]
    """sigma_w, one number per kernel."""

    @classmethod
    def of(cls, prior: GPPrior) -> "GPModel":
        """The model of a prior. Outputs are treated as one group if they share both kernel and noise."""
        noise = np.atleast_1d(np.asarray(prior.noise, float))
        groups = max(len(prior.kernels), len(noise))
        offset = jnp.zeros(len(prior.scale), EXACT)
        return cls(
            frame=Frame(prior.mean, offset, positive("the prior's scale", prior.scale)),
            kernels=prior.kernels * (groups // len(prior.kernels)),
            noise=positive("the prior's noise", np.broadcast_to(noise, (groups,)).copy()),
        )

    @staticmethod
    def precision(prior: GPPrior) -> DTypeLike:
        """In which its functions are computed: that of planning, or double where the noise is too small for it.

        Single precision knows functions up to about 3e-4 of the size of the kernel near the data, where the posterior's
        deviation is a fraction of the noise.
        """
        return EXACT if smallest_noise(prior) <= FINE else PLAN

    @staticmethod
    def delicate(prior: GPPrior) -> bool:
        """Whether variances must be solved for: products with an inverse would lose them in rounding."""
        return smallest_noise(prior) < DELICATE

    @property
    def outputs(self) -> int:
        return self.frame.scale.shape[0]

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """How many outputs each kernel has."""
        return (self.outputs,) if len(self.kernels) == 1 else (1,) * len(self.kernels)

    def split(self, targets: Float[Array, "n dx"]) -> list[Float[Array, "n k"]]:
        """The targets of each kernel."""
        return jnp.split(targets, np.cumsum(self.group_sizes)[:-1].tolist(), axis=1)

    def noise_of_each_output(self) -> Float[Array, " dx"]:
        return jnp.broadcast_to(self.noise, (self.outputs,))
