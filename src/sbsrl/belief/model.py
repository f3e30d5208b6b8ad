"""The Gaussian-process model: prior mean, units, kernels, noise. One kernel for all outputs, or one for each."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import UserError
from ..kernels import Kernel
from ..kernels.base import positive
from ..task import Prior
from .functions import Frame

__all__ = ["Model"]


class Model(eqx.Module):
    """f(z) = mu(z) + offset + scale * g(z), g_j ~ GP(0, k_j), observed with noise sigma_{w,j} in units of the scale."""

    frame: Frame
    kernels: tuple[Kernel, ...]
    """One, shared by all outputs, or one an output."""
    noise: Float[Array, " g"]

    @classmethod
    def of(cls, prior: Prior) -> "Model":
        """The model of a prior. Outputs are treated as one group if they share both kernel and noise."""
        outputs = len(prior.scale)
        noise = np.atleast_1d(np.asarray(prior.noise, float))
        kernels = (prior.kernel,) if isinstance(prior.kernel, Kernel) else tuple(prior.kernel)
        for name, given in (("kernels", len(kernels)), ("noise", len(noise))):
            if given not in (1, outputs):
                raise UserError(
                    f"the prior has {given} {name} for {outputs} outputs; give one for all, or one for each."
                )
        groups = max(len(kernels), len(noise))
        frame = Frame(prior.mean, jnp.zeros(outputs, EXACT), positive("the prior's scale", prior.scale))
        return cls(
            frame=frame,
            kernels=kernels * (groups // len(kernels)),
            noise=positive("the prior's noise", np.broadcast_to(noise, (groups,)).copy()),
        )

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
