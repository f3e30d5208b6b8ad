"""Exact draws from a Gaussian process, one question at a time (forward sampling, appendix A of the paper).

A function drawn from GP(0, k) has infinitely many values, and a controller asks for few, at inputs that depend on the
answers. Drawing each answer from the process conditioned on all earlier ones gives the law of drawing them jointly
(Beckers and Hirche 2021, property 1). What is known is the factor L L^T = k(Z, Z) of the inputs asked so far and the
whitened answers alpha = L^-1 f(Z). With v = L^-1 k(Z, z), the next answer and the next row are

    f(z) = v . alpha + s eps,   s^2 = k(z, z) - |v|^2,   eps ~ N(0, 1)

    L <- [ L   0 ]     alpha <- [ alpha ]
         [ v^T s ]              [ eps   ]

Noisy data stand above all answers: L then starts as the factor of K + sigma_w^2 I and alpha as the whitened targets,
and the same formula draws from the posterior.

Inputs along a smooth trajectory determine each other beyond the digits of float64, and the plain formula then returns
nonsense of any size. So `NUGGET` k(z, z) is added to s^2: what is drawn, exactly, is f plus a white noise nobody sees.
An answer that is known already is not drawn but computed, as v . alpha.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from .._jax import EXACT
from ..errors import UserError
from ..kernels import Kernel
from ..types import Flag, Index, Input, PRNGKey, Scalar
from .blocks import padded_size
from .particles import key_at
from .posterior import Posterior

__all__ = ["NUGGET", "TOLERANCE", "Remembering", "SequentialSample"]

NUGGET = 1e-13
"""White noise in what is drawn, as a share of k(z, z): small, yet enough for factors of thousands of rows."""

TOLERANCE = 1e-12
"""An answer is known already if its variance, given all others, is below this share of k(z, z)."""

SAME = 1e-15
"""Two inputs are one if the variance of f(u) - f(v) is below this share of k(u, u): k cannot tell them apart."""


class SequentialSample(eqx.Module):
    """One function for each of the k outputs that share a kernel; what was asked goes in and comes out.

    Asked again, an input whose value was drawn has the same value to the last bit. Answers that the earlier ones
    determine take no room; they may move by about sqrt(`TOLERANCE`) standard deviations when neighbours are drawn
    later (`Remembering` keeps those as well).

    A `full` sample remembers no more. It still is a function, and each of its values has the right law given what is
    remembered, but new values do not know of each other: make it with enough room, or give it more (`with_room`).
    """

    kernel: Kernel
    key: PRNGKey
    """All randomness of this function."""
    inputs: Float[Array, "n dz"]
    """Z."""
    factor: Float[Array, "n n"]
    """L, with rows of the identity for padding."""
    alpha: Float[Array, "n k"]
    values: Float[Array, "n k"]
    """f(Z); nothing in the rows of noisy data, which are no values of the function."""
    observed: Index
    """How many rows are noisy data."""
    count: Index
    """How many rows there are: data, then answers."""

    @classmethod
    def from_prior(cls, kernel: Kernel, outputs: int, capacity: int, dz: int, key: PRNGKey) -> "SequentialSample":
        """A draw from GP(0, k), with room for so many answers."""
        prior = Posterior.empty(kernel, jnp.zeros((), EXACT), padded_size(capacity), dz, outputs)
        return cls.from_posterior(prior, 0, key)

    @classmethod
    def from_posterior(cls, posterior: Posterior, extra: int, key: PRNGKey) -> "SequentialSample":
        """A draw from the posterior, with room for so many answers beyond the room that the posterior has for data."""
        sample = cls(
            kernel=posterior.kernel,
            key=key,
            inputs=posterior.inputs,
            factor=posterior.factor,
            alpha=posterior.whitened,
            values=jnp.zeros_like(posterior.whitened),
            observed=posterior.count,
            count=posterior.count,
        )
        return sample.with_room(posterior.capacity + extra)

    @property
    def capacity(self) -> int:
        return self.inputs.shape[0]

    @property
    def full(self) -> Flag:
        """Whether new answers are no longer remembered."""
        return self.count >= self.capacity

    def ask(self, z: Input) -> tuple[Float[Array, " k"], "SequentialSample"]:
        """f(z), and the sample that remembers it."""
        z = z.astype(EXACT)
        k = jax.vmap(lambda row: self.kernel(row, z))(self.inputs)  # from differences: near inputs cost all digits else
        v = solve_triangular(self.factor, jnp.where(self._rows < self.count, k, 0), lower=True)
        own = self.kernel(z, z)
        variance = own - v @ v
        repeated, before = self._same(k, own)
        drawn = (variance > TOLERANCE * own) & ~repeated
        s = jnp.sqrt(jnp.where(drawn, variance + NUGGET * own, 1))  # the root of 0 has no derivative: keep it out
        eps = jax.random.normal(self._key(z), self.alpha.shape[1:], EXACT)
        value = jnp.where(repeated, self.values[before], v @ self.alpha + jnp.where(drawn, s * eps, 0))
        return value, self._append(drawn, z, v, s, eps, value)

    def ask_all(self, inputs: Float[Array, "T dz"]) -> tuple[Float[Array, "T k"], "SequentialSample"]:
        """f at one input after the other, and the sample that remembers them all."""

        def step(sample: SequentialSample, z: Input) -> tuple[SequentialSample, Float[Array, " k"]]:
            value, after = sample.ask(z)
            return after, value

        after, values = jax.lax.scan(step, self, inputs)
        return values, after

    def with_room(self, capacity: int) -> "SequentialSample":
        """The same function with room for so many rows, rounded up to whole blocks; never with less room."""
        size = max(padded_size(capacity), self.capacity)

        def pad(array: Float[Array, "n m"]) -> Float[Array, "N m"]:
            return jnp.pad(array, ((0, size - self.capacity), (0, 0)))

        factor = jnp.eye(size, dtype=EXACT).at[: self.capacity, : self.capacity].set(self.factor)
        return eqx.tree_at(
            lambda s: (s.inputs, s.factor, s.alpha, s.values),
            self,
            (pad(self.inputs), factor, pad(self.alpha), pad(self.values)),
        )

    @property
    def _rows(self) -> Int[Array, " n"]:
        return jnp.arange(self.capacity, dtype=jnp.int32)

    def _key(self, z: Input) -> PRNGKey:
        """Of the next answer: made of their number, and, once that no longer grows, of the input too."""
        key = jax.random.fold_in(self.key, self.count)
        return jnp.where(self.full, key_at(key, z), key)

    def _same(self, k: Float[Array, " n"], own: Scalar) -> tuple[Flag, Index]:
        """Whether an input was drawn before, and which: k(z, z) + k(z_i, z_i) - 2 k(z, z_i) is nil."""
        answers = (self._rows >= self.observed) & (self._rows < self.count)
        apart = own + jax.vmap(lambda row: self.kernel(row, row))(self.inputs) - 2 * k
        apart = jnp.where(answers, apart, jnp.inf)
        nearest = jnp.argmin(apart)
        return apart[nearest] <= SAME * own, nearest

    def _append(
        self,
        drawn: Flag,
        z: Input,
        v: Float[Array, " n"],
        s: Scalar,
        eps: Float[Array, " k"],
        value: Float[Array, " k"],
    ) -> "SequentialSample":
        """One row more, if the answer was drawn and there is room."""
        row = jnp.where(drawn, self.count, self.capacity)  # beyond the end, nothing is written
        parts = (
            self.inputs.at[row].set(z, mode="drop"),
            self.factor.at[row].set(v.at[row].set(s, mode="drop"), mode="drop"),
            self.alpha.at[row].set(eps, mode="drop"),
            self.values.at[row].set(value, mode="drop"),
            jnp.where(drawn & ~self.full, self.count + 1, self.count),
        )
        return eqx.tree_at(lambda s: (s.inputs, s.factor, s.alpha, s.values, s.count), self, parts)


class Remembering:
    """A sampled function as an object that is called: f(z), with a memory that grows as it must.

    The same input has the same output whenever it is asked. It cannot be used inside `jax.jit`, which would not let it
    remember, and refuses to be.
    """

    def __init__(self, sample: SequentialSample) -> None:
        self._sample = sample
        self._answers: dict[tuple[float, ...], Float[Array, " k"]] = {}

    def __call__(self, z: ArrayLike) -> Float[Array, " k"]:
        asked = self._check(z)
        question = tuple(asked.tolist())
        if question not in self._answers:
            if self._sample.full:
                self._sample = self._sample.with_room(2 * self._sample.capacity)
            self._answers[question], self._sample = _ask(self._sample, jnp.asarray(asked))
        return self._answers[question]

    @property
    def sample(self) -> SequentialSample:
        """All that is known of the function so far, for going on in pure form."""
        return self._sample

    def _check(self, z: ArrayLike) -> np.ndarray:
        if isinstance(z, jax.core.Tracer):
            raise UserError(
                "a function that remembers cannot be called inside jit, vmap or grad: nothing would be remembered; "
                "use SequentialSample.ask there, and carry the sample that it returns."
            )
        asked, expected = np.asarray(z, np.float64), self._sample.inputs.shape[1:]
        if asked.shape != expected:
            raise UserError(
                f"the function was asked at an input of shape {asked.shape}; it takes one of shape {expected}."
            )
        if not np.all(np.isfinite(asked)):
            raise UserError(f"the function was asked at {asked.tolist()}, which is not finite.")
        return asked


_ask = eqx.filter_jit(SequentialSample.ask)
