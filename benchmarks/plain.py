"""The same plan without any of the ideas: what the others are compared with.

For each output an exact posterior of its own; for each query a triangular solve for mean and variance; each of the M
particles draws the next state from it; every candidate is rolled out on every particle. float64, as usual.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from sbsrl.belief.gp import GPBelief
from sbsrl.kernels import SquaredExponential
from sbsrl.task import Task


class PlainPosterior(eqx.Module):
    """One Gaussian process per output, with as many points as there are: no padding, nothing shared."""

    inputs: Float[Array, "N dz"]
    factors: Float[Array, "dx N N"]
    whitened: Float[Array, "dx N"]
    lengthscales: Float[Array, " dz"]
    scale: Float[Array, " dx"]

    @classmethod
    def of(cls, belief: GPBelief) -> "PlainPosterior":
        posterior, model = belief.groups[0].posterior, belief.model
        n = int(posterior.count)
        kernel = model.kernels[0]
        assert isinstance(kernel, SquaredExponential)
        z = posterior.inputs[:n] / kernel.lengthscales[None, :]
        k = jnp.exp(-0.5 * jnp.sum((z[:, None] - z[None]) ** 2, axis=-1)) + model.noise[0] ** 2 * jnp.eye(n)
        factor = jnp.linalg.cholesky(k)
        whitened = solve_triangular(factor, posterior.targets[:n], lower=True)
        outputs = model.outputs
        return cls(z, jnp.stack([factor] * outputs), whitened.T, kernel.lengthscales, model.frame.scale)

    def moments(self, z: Float[Array, " dz"]) -> tuple[Float[Array, " dx"], Float[Array, " dx"]]:
        k = jnp.exp(-0.5 * jnp.sum((self.inputs - z[None] / self.lengthscales[None]) ** 2, axis=-1))

        def one(factor: Array, whitened: Array) -> tuple[Array, Array]:
            v = solve_triangular(factor, k, lower=True)
            return v @ whitened, jnp.maximum(1 - v @ v, 0)

        return jax.vmap(one)(self.factors, self.whitened)


@eqx.filter_jit
def evaluate(
    task: Task,
    posterior: PlainPosterior,
    x: Float[Array, " dx"],
    actions: Float[Array, "C H da"],
    noise: Float[Array, "M H dx"],
) -> Float[Array, "M C"]:
    """The cost of every candidate on every particle."""
    assert task.prior.gp is not None
    assert task.signals is not None
    mean_of, costs_of = task.prior.gp.mean, task.signals.costs

    def roll(actions: Array, noise: Array) -> Array:
        def step(x: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            a, e = inputs
            mean, variance = posterior.moments(jnp.concatenate([x, a]))
            y = mean_of(x, a) + posterior.scale * (mean + jnp.sqrt(variance) * e)
            return y, costs_of(x, a, y)[0]

        return jnp.max(jax.lax.scan(step, x, (actions, noise))[1])

    return jax.vmap(lambda e: jax.vmap(lambda a: roll(a, e))(actions))(noise)


def random_actions(candidates: int, horizon: int) -> Float[Array, "C H da"]:
    return jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (candidates, horizon, 1)))
