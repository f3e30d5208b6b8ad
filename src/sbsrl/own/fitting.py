"""Scale, kernel, length scales and noise of a Gaussian process, from data.

The most likely values under hyper-priors that keep them sane where data say little:

    ln l_i ~ N(ln(s_i sqrt(d)), 0.7^2),  ln scale_j ~ N(ln rms_j, 0.5^2),  ln noise ~ N(ln 0.01, 2^2),

s_i the spread of input i (of actions at least that of their whole range), rms_j the size of residual j. From several
starts, for every family of kernels, with one kernel for all outputs or one for each; the simpler ones are kept unless
the others explain the data clearly better. With a kernel for each, outputs are independent and fitted one by one.
"""

from collections.abc import Callable, Sequence
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
from ..types import Index, Scalar
from .knowledge import FAMILIES, GPNumbers

__all__ = ["Fitted", "fit_numbers"]

MOST_POINTS, BLOCK = 300, 100
"""Data that the likelihood is computed of, drawn at random, and the block that they are padded to multiples of: a
program is compiled for every number of blocks."""
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
    rows: int
    """How many there are; others are padding."""
    spread: Float[np.ndarray, " d"]
    size: Float[np.ndarray, " k"]

    def output(self, j: int) -> "_Data":
        """The same for one output."""
        return self._replace(residuals=self.residuals[:, j : j + 1], size=self.size[j : j + 1])


def fit_numbers(
    inputs: Float[np.ndarray, "n d"],
    residuals: Float[np.ndarray, "n k"],
    least_spread: Float[np.ndarray, " d"],
    seed: int = 0,
) -> Fitted:
    """The best numbers for data of (observation, action) and how far the outcome is from the mean."""
    rng = np.random.default_rng(seed)
    data = _chosen(inputs, residuals, least_spread, rng)
    shared = {family: _fit(data, family, _beginnings(data, rng)) for family in FAMILIES}
    found = list(shared.values())
    if len(data.size) > 1:
        found += [_fit_each(data, each) for each in shared.values()]
    best = found[0]
    for other in found[1:]:
        best = other if other.value > best.value + WORTH_IT else best
    return best


def _chosen(inputs: np.ndarray, residuals: np.ndarray, least_spread: np.ndarray, rng: np.random.Generator) -> _Data:
    rows = rng.permutation(len(inputs))[:MOST_POINTS]
    size = np.sqrt(np.mean(residuals**2, axis=0))
    still = size <= 1e-12 * (1 + np.abs(residuals).max(initial=0))
    size = np.where(still, max(float(size.max(initial=0)) * 1e-3, 1e-6), size)
    padding = ((0, -len(rows) % BLOCK), (0, 0))
    return _Data(
        jnp.asarray(np.pad(inputs[rows], padding), EXACT),
        jnp.asarray(np.pad(residuals[rows], padding), EXACT),
        len(rows),
        np.maximum(inputs.std(axis=0), least_spread),
        size,
    )


def _centres(data: _Data) -> Float[np.ndarray, " p"]:
    """Of the hyper-priors: logarithms of the length scales, of the outputs' scales, and of the noise."""
    lengths = np.log(data.spread * np.sqrt(len(data.spread)))
    return np.concatenate([lengths, np.log(data.size), [np.log(NOISE_CENTRE)]])


def _beginnings(data: _Data, rng: np.random.Generator) -> list[np.ndarray]:
    """Where searches begin: at the centres, and around them."""
    centres = _centres(data)
    return [centres, *(centres + 0.5 * rng.normal(size=(STARTS - 1, len(centres))))]


def _fit_each(data: _Data, shared: Fitted) -> Fitted:
    """A kernel for each output, searched for from the one that they share, and from the centre."""
    return _together(
        [
            _fit(data.output(j), shared.kernel, [_centres(data.output(j)), _theta(shared, j)])
            for j in range(len(data.size))
        ]
    )


def _theta(shared: Fitted, output: int) -> Float[np.ndarray, " p"]:
    """Logarithms of an output's numbers."""
    return np.log([*shared.length_scales[0], shared.scale[output], shared.noise[0]])


def _together(outputs: list[Fitted]) -> Fitted:
    """Outputs that were fitted one by one."""
    return Fitted(
        scale=tuple(each.scale[0] for each in outputs),
        kernel=outputs[0].kernel,
        length_scales=tuple(each.length_scales[0] for each in outputs),
        noise=tuple(each.noise[0] for each in outputs),
        value=float(np.mean([each.value for each in outputs])),
    )


def _fit(data: _Data, family: str, beginnings: Sequence[Float[np.ndarray, " p"]]) -> Fitted:
    """One kernel for all outputs of the data, the best that searches from these beginnings find."""
    d, outputs = len(data.spread), len(data.size)
    centres = _centres(data)
    reach = np.repeat([FARTHEST, FARTHEST, np.inf], [d, outputs, 1])
    low, high = centres - reach, centres + reach
    low[-1], high[-1] = np.log(LEAST_NOISE), 0.0
    loss = _loss(data, family)
    searched = [
        minimize(
            loss,
            np.clip(begin, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": ITERATIONS},
        )
        for begin in beginnings
    ]
    best = min(searched, key=lambda found: float(found.fun))
    lengths, scale, noise = np.split(np.exp(best.x), [d, d + outputs])
    return Fitted(
        tuple(scale.tolist()), family, (tuple(lengths.tolist()),), tuple(noise.tolist()), value=-float(best.fun)
    )


def _loss(data: _Data, family: str) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Minus the log posterior per datum and output, and its gradient."""
    centres = jnp.asarray(_centres(data), EXACT)
    widths = jnp.asarray(
        np.repeat([LENGTHS_SPREAD, SCALE_SPREAD, NOISE_SPREAD], [len(data.spread), len(data.size), 1]), EXACT
    )

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        arguments = (data.inputs, data.residuals, jnp.asarray(data.rows), centres, widths)
        value, slope = _negative(jnp.asarray(theta, EXACT), *arguments, family)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return 1e25, np.zeros_like(theta)  # the search turns back
        return float(value), np.asarray(slope, float)

    return loss


@partial(jax.jit, static_argnums=6)
@jax.value_and_grad
def _negative(
    theta: Float[Array, " p"],
    inputs: Float[Array, "n d"],
    residuals: Float[Array, "n k"],
    count: Index,
    centres: Float[Array, " p"],
    widths: Float[Array, " p"],
    family: str,
) -> Scalar:
    outputs, d = residuals.shape[1], inputs.shape[1]
    lengths, scale, noise = jnp.split(jnp.exp(theta), [d, d + outputs])
    frame = Frame(_nothing, jnp.zeros(outputs, EXACT), scale)
    model = GPModel(frame=frame, kernels=(FAMILIES[family](lengths),), noise=noise)
    likelihood = log_likelihood(model, inputs, residuals, count)
    hyper = -0.5 * jnp.sum(((theta - centres) / widths) ** 2)
    return -(likelihood + hyper) / (count * outputs)


def _nothing(x: Array, a: Array) -> Array:
    return jnp.zeros_like(x)
