"""Hyper-parameters by marginal likelihood: length scales, kernel variances, noise and scale of the outputs.

    ln p(y) = -1/2 y^T (K + sigma_w^2 I)^-1 y - 1/2 ln det(K + sigma_w^2 I) - N/2 ln 2 pi,

summed over outputs, maximised over the logarithms of all parameters by L-BFGS-B from several starts. The first start is
the model as it is, so the result is never worse. The guarantee of the paper needs parameters that are *not* fitted.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from scipy.optimize import minimize

from ..types import Index, Scalar
from .blocks import valid_rows
from .gp_model import GPModel
from .posterior import padded_gram

__all__ = ["fit", "log_likelihood", "normalised"]

WIDEST = np.log(1e3)
"""In one fit, parameters stay within a factor of 1000 of where they start."""

LEAST_NOISE = 1e-3
"""Noise is not fitted below this, in units of the scale, unless it starts there. Data without noise would drive it to
0, where neither the Gram matrix of more data can be factorised nor a function be evaluated in single precision."""


def log_likelihood(
    model: GPModel, inputs: Float[Array, "n dz"], residuals: Float[Array, "n dx"], count: Index
) -> Scalar:
    """ln p(residuals | model), in units of the state: scaling the outputs is accounted for."""
    frame, valid = model.frame, valid_rows(inputs.shape[0], count)
    targets = (residuals - frame.offset[None, :]) / frame.scale[None, :] * valid[:, None]
    total = -jnp.sum(valid) * (jnp.sum(jnp.log(frame.scale)) + 0.5 * model.outputs * np.log(2 * np.pi))
    for kernel, noise, part in zip(model.kernels, model.noise, model.split(targets), strict=True):
        factor = jnp.linalg.cholesky(padded_gram(kernel, noise, inputs, count))
        whitened = jax.scipy.linalg.solve_triangular(factor, part, lower=True)
        total -= 0.5 * jnp.sum(whitened**2) + part.shape[1] * jnp.sum(jnp.log(jnp.diagonal(factor)))
    return total


def normalised(model: GPModel, residuals: Float[Array, "n dx"], count: Index) -> GPModel:
    """The model in units of the data: offset and scale are mean and deviation of the residuals.

    An output that does not vary keeps its scale. The noise keeps its size in units of the state where each output
    has its own (if it is not below `LEAST_NOISE` then), and in units of the scale where they share one.
    """
    seen = np.asarray(residuals[: int(count)])
    spread = seen.std(axis=0)
    scale = np.where(spread > 1e-9 * (1 + np.abs(seen).max(axis=0)), spread, np.asarray(model.frame.scale))
    noise = np.asarray(model.noise)
    if len(noise) == model.outputs:
        noise = np.clip(noise * np.asarray(model.frame.scale) / scale, LEAST_NOISE, 1e3)
    frame = eqx.tree_at(
        lambda f: (f.offset, f.scale), model.frame, (jnp.asarray(seen.mean(axis=0)), jnp.asarray(scale))
    )
    return eqx.tree_at(lambda m: (m.frame, m.noise), model, (frame, jnp.asarray(noise)))


def fit(
    model: GPModel,
    inputs: Float[Array, "n dz"],
    residuals: Float[Array, "n dx"],
    count: Index,
    restarts: int = 2,
    iterations: int = 60,
    seed: int = 0,
) -> GPModel:
    """The most likely model, from the present one, a normalised one, and `restarts` random ones around that."""
    rng = np.random.default_rng(seed)
    start = normalised(model, residuals, count)
    starts = [model, start] + [_shaken(start, rng) for _ in range(restarts)]
    found = [_climb(candidate, inputs, residuals, count, iterations) for candidate in starts]
    return max(found, key=lambda pair: pair[0])[1]


def _climb(
    model: GPModel, inputs: Float[Array, "n dz"], residuals: Float[Array, "n dx"], count: Index, iterations: int
) -> tuple[float, GPModel]:
    """The best model on the way up from here, and its likelihood."""
    start, rebuild = _log_parameters(model)
    best = (-np.inf, model)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        value, slope = _loss(jnp.asarray(theta), model, inputs, residuals, count)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return 1e25, np.zeros_like(theta)  # the search turns back
        if -value > best[0]:
            best = (-float(value), rebuild(jnp.asarray(theta)))
        return float(value), np.asarray(slope)

    bounds = list(zip(*_bounds(model), strict=True))
    minimize(loss, np.asarray(start), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return best


@eqx.filter_jit
def _loss(
    theta: Float[Array, " p"],
    model: GPModel,
    inputs: Float[Array, "n dz"],
    residuals: Float[Array, "n dx"],
    count: Index,
) -> tuple[Scalar, Float[Array, " p"]]:
    def negative(theta: Float[Array, " p"]) -> Scalar:
        _, rebuild = _log_parameters(model)
        return -log_likelihood(rebuild(theta), inputs, residuals, count)

    return jax.value_and_grad(negative)(theta)


def _log_parameters(model: GPModel) -> tuple[Float[Array, " p"], Callable[[Float[Array, " p"]], GPModel]]:
    """ln of kernels' parameters, noise and scale as a vector, and the way back."""
    positive = (model.kernels, model.noise, model.frame.scale)
    logs, unravel = ravel_pytree(jax.tree.map(jnp.log, positive))

    def rebuild(theta: Float[Array, " p"]) -> GPModel:
        kernels, noise, scale = jax.tree.map(jnp.exp, unravel(theta))
        return eqx.tree_at(lambda m: (m.kernels, m.noise, m.frame.scale), model, (kernels, noise, scale))

    return logs, rebuild


def _bounds(model: GPModel) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest ln of each parameter."""
    centre, _ = _log_parameters(model)
    floor = jnp.minimum(model.noise, LEAST_NOISE) * np.exp(WIDEST)
    low, _ = _log_parameters(eqx.tree_at(lambda m: m.noise, model, jnp.maximum(model.noise, floor)))
    return np.asarray(low - WIDEST), np.asarray(centre + WIDEST)


def _shaken(model: GPModel, rng: np.random.Generator) -> GPModel:
    """A start somewhere around, a factor of e or so away."""
    theta, rebuild = _log_parameters(model)
    return rebuild(jnp.clip(theta + jnp.asarray(rng.normal(size=theta.shape)), *_bounds(model)))
