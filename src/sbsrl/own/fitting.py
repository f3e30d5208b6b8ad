"""Scale, kernel, length scales and noise of a Gaussian process, from data.

The most likely values under hyper-priors that keep them sane where data say little:

    ln l_i ~ N(ln(s_i sqrt(d)), 0.7^2),  ln scale_j ~ N(ln rms_j, 0.5^2),  ln noise ~ N(ln 0.01, 2^2),

s_i the spread of input i (of actions at least that of their whole range), rms_j the size of residual j. From several
starts, for every family of kernels, with one kernel for all outputs or one for each; the simpler ones are kept unless
the others explain the data clearly better.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from .._jax import EXACT
from ..belief.fit import log_likelihood
from ..belief.functions import Frame
from ..belief.gp_model import GPModel
from ..types import Scalar
from .knowledge import FAMILIES, GPNumbers

__all__ = ["Fitted", "fit_numbers"]

MOST_POINTS = 300
"""Data that the likelihood is computed of, drawn at random."""
STARTS, ITERATIONS = 3, 150
LENGTHS_SPREAD, SCALE_SPREAD, NOISE_CENTRE, NOISE_SPREAD = 0.7, 0.5, 0.01, 2.0
LEAST_NOISE = 2e-3
"""Below it functions cannot be evaluated in single precision."""
FARTHEST = 3.0
"""In one fit, logarithms of length scales stay within this of their hyper-prior's centre."""
WORTH_IT = 0.05
"""Nats per datum and output by which a rougher family, or a kernel for every output, must be better."""


class Fitted(NamedTuple):
    """The numbers, without a mean, and how likely they make the data."""

    scale: tuple[float, ...]
    kernel: str
    length_scales: tuple[tuple[float, ...], ...]
    noise: tuple[float, ...]
    value: float
    """Log posterior, in nats per datum and output."""

    def numbers(self, mean: str) -> GPNumbers:
        return GPNumbers(mean, self.scale, self.kernel, self.length_scales, self.noise)


class _Data(NamedTuple):
    inputs: Float[Array, "n d"]
    residuals: Float[Array, "n k"]
    spread: Float[np.ndarray, " d"]
    size: Float[np.ndarray, " k"]


def fit_numbers(
    inputs: Float[np.ndarray, "n d"],
    residuals: Float[np.ndarray, "n k"],
    least_spread: Float[np.ndarray, " d"],
    seed: int = 0,
) -> Fitted:
    """The best numbers for data of (observation, action) and how far the outcome is from the mean."""
    rng = np.random.default_rng(seed)
    data = _chosen(inputs, residuals, least_spread, rng)
    kinds = [(family, each) for each in (False, True) if not each or residuals.shape[1] > 1 for family in FAMILIES]
    best: Fitted | None = None
    for family, each in kinds:
        found = _fit(data, family, each, rng)
        if best is None or found.value > best.value + WORTH_IT:
            best = found
    assert best is not None
    return best


def _chosen(inputs: np.ndarray, residuals: np.ndarray, least_spread: np.ndarray, rng: np.random.Generator) -> _Data:
    rows = rng.permutation(len(inputs))[:MOST_POINTS]
    size = np.sqrt(np.mean(residuals**2, axis=0))
    still = size <= 1e-12 * (1 + np.abs(residuals).max(initial=0))
    size = np.where(still, max(float(size.max(initial=0)) * 1e-3, 1e-6), size)
    return _Data(
        jnp.asarray(inputs[rows], EXACT),
        jnp.asarray(residuals[rows], EXACT),
        np.maximum(inputs.std(axis=0), least_spread),
        size,
    )


def _fit(data: _Data, family: str, each: bool, rng: np.random.Generator) -> Fitted:
    outputs, d = data.residuals.shape[1], data.inputs.shape[1]
    kernels = outputs if each else 1
    centres = np.concatenate(
        [
            np.tile(np.log(data.spread * np.sqrt(d)), kernels),
            np.log(data.size),
            np.full(kernels, np.log(NOISE_CENTRE)),
        ]
    )
    widths = np.repeat([LENGTHS_SPREAD, SCALE_SPREAD, NOISE_SPREAD], [kernels * d, outputs, kernels])
    reach = np.repeat([FARTHEST, FARTHEST, np.inf], [kernels * d, outputs, kernels])
    low, high = centres - reach, centres + reach
    low[-kernels:], high[-kernels:] = np.log(LEAST_NOISE), 0.0
    loss = _loss(data, family, kernels, jnp.asarray(centres), jnp.asarray(widths))
    best_value, best = np.inf, centres
    for k in range(STARTS):
        shaken = centres if k == 0 else centres + 0.5 * rng.normal(size=len(centres))
        found = minimize(
            loss,
            np.clip(shaken, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": ITERATIONS},
        )
        if found.fun < best_value:
            best_value, best = float(found.fun), found.x
    lengths, scale, noise = np.split(np.exp(best), [kernels * d, kernels * d + outputs])
    return Fitted(
        scale=tuple(scale.tolist()),
        kernel=family,
        length_scales=tuple(tuple(row) for row in lengths.reshape(kernels, d).tolist()),
        noise=tuple(noise.tolist()),
        value=-best_value,
    )


def _loss(
    data: _Data, family: str, kernels: int, centres: Float[Array, " p"], widths: Float[Array, " p"]
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Minus the log posterior per datum and output, and its gradient."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        arguments = (data.inputs, data.residuals, centres, widths)
        value, slope = _negative(jnp.asarray(theta, EXACT), *arguments, family, kernels)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return 1e25, np.zeros_like(theta)  # the search turns back
        return float(value), np.asarray(slope, float)

    return loss


@partial(jax.jit, static_argnums=(5, 6))
@jax.value_and_grad
def _negative(
    theta: Float[Array, " p"],
    inputs: Float[Array, "n d"],
    residuals: Float[Array, "n k"],
    centres: Float[Array, " p"],
    widths: Float[Array, " p"],
    family: str,
    kernels: int,
) -> Scalar:
    (count, outputs), d = residuals.shape, inputs.shape[1]
    lengths, scale, noise = jnp.split(jnp.exp(theta), [kernels * d, kernels * d + outputs])
    made = tuple(FAMILIES[family](row) for row in lengths.reshape(kernels, d))
    model = GPModel(frame=Frame(_nothing, jnp.zeros(outputs, EXACT), scale), kernels=made, noise=noise)
    likelihood = log_likelihood(model, inputs, residuals, jnp.asarray(count))
    hyper = -0.5 * jnp.sum(((theta - centres) / widths) ** 2)
    return -(likelihood + hyper) / (count * outputs)


def _nothing(x: Array, a: Array) -> Array:
    return jnp.zeros_like(x)
