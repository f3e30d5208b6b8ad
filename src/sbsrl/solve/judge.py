"""What the search needs to know of its candidates, found while evaluating as little as possible of each."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..policies import PolicyClass
from ..problem import Candidates, Evaluation, Problem, Trajectories, excess, information, nominal_returns
from ..types import Index, Scalar, State
from .lazy import Search, evaluate_lazily
from .returns import Returns, policy_excess, policy_returns

__all__ = ["ClosedLoop", "Judge", "OpenLoop"]

Pool = Float[Array, "P H da"]


@runtime_checkable
class Judge(Protocol):
    """What a candidate means."""

    def evaluate(
        self,
        problem: Problem,
        x: State,
        pool: Pool,
        alive: Bool[Array, " P"],
        known: Evaluation,
        binding: Float[Array, " M"],
        best: int,
        chunk: int,
    ) -> Search:
        """The value of every candidate that may be among the `best`, or the one to follow."""
        ...


NOMINAL_BLOCK = 128
"""Candidates whose nominal trajectories are computed at once."""


class OpenLoop(eqx.Module):
    """A candidate is a sequence of actions from x."""

    def evaluate(
        self,
        problem: Problem,
        x: State,
        pool: Pool,
        alive: Bool[Array, " P"],
        known: Evaluation,
        binding: Float[Array, " M"],
        best: int,
        chunk: int,
    ) -> Search:
        actions = jnp.moveaxis(pool, 0, -1)
        last = jnp.max(jnp.where(alive, jnp.arange(len(pool), dtype=jnp.int32), 0))
        returns, states = self._nominal(problem, x, actions, last + 1)
        samples = problem.samples

        def hinge(rows: Int[Array, " C"], m: Index) -> Float[Array, " C"]:
            assert samples is not None
            return excess(problem, samples.member(m), x, actions[:, :, rows])

        return evaluate_lazily(
            problem,
            jnp.where(alive, returns, -jnp.inf),
            known,
            lambda rows: information(problem, states[:, :, rows], actions[:, :, rows]),
            hinge,
            jnp.argsort(-binding),
            best,
            chunk,
        )

    def _nominal(
        self, problem: Problem, x: State, actions: Candidates, count: Index
    ) -> tuple[Float[Array, " P"], Trajectories]:
        """Returns and trajectories of the first `count` candidates, in blocks that stay in the cache."""
        size = actions.shape[-1]
        blocks = -(-size // NOMINAL_BLOCK)
        padded = jnp.pad(actions, ((0, 0), (0, 0), (0, blocks * NOMINAL_BLOCK - size)))

        def evaluate(i: Index) -> tuple[Float[Array, " b"], Trajectories]:
            part = jax.lax.dynamic_slice_in_dim(padded, i * NOMINAL_BLOCK, NOMINAL_BLOCK, axis=-1)
            return nominal_returns(problem, x, part)

        def skip(i: Index) -> tuple[Float[Array, " b"], Trajectories]:
            nothing = jnp.zeros((actions.shape[0] + 1, x.shape[0], NOMINAL_BLOCK), x.dtype)
            return jnp.full(NOMINAL_BLOCK, -jnp.inf, x.dtype), nothing

        returns, states = jax.lax.map(
            lambda i: jax.lax.cond(i * NOMINAL_BLOCK < count, evaluate, skip, i), jnp.arange(blocks, dtype=jnp.int32)
        )
        return returns.reshape(-1)[:size], jnp.moveaxis(states, 0, -2).reshape(*states.shape[1:3], -1)[:, :, :size]


class ClosedLoop(eqx.Module):
    """A candidate is the parameters of a policy, [1, k], judged over whole episodes.

    Information is counted in hundredths of what is demanded, so that the weight of what is missing does not depend on
    its unit; the problem's threshold is then 100.
    """

    policies: PolicyClass
    returns: Returns

    def evaluate(
        self,
        problem: Problem,
        x: State,
        pool: Pool,
        alive: Bool[Array, " P"],
        known: Evaluation,
        binding: Float[Array, " M"],
        best: int,
        chunk: int,
    ) -> Search:
        thetas = pool[:, 0]
        unit = jnp.maximum(problem.threshold, jnp.finfo(thetas.dtype).tiny) / 100
        in_hundredths = problem.demanding(jnp.where(problem.threshold > 0, 100, 0).astype(thetas.dtype), 1)

        def nominal(theta: Float[Array, " k"]) -> tuple[Scalar, Scalar]:
            return policy_returns(problem, self.returns, self.policies, theta)

        rewards, gathered = jax.lax.map(nominal, thetas, batch_size=min(NOMINAL_BLOCK, len(thetas)))

        def hinge(rows: Int[Array, " C"], m: Index) -> Float[Array, " C"]:
            return jax.vmap(lambda theta: policy_excess(problem, self.returns, self.policies, theta, m))(thetas[rows])

        return evaluate_lazily(
            in_hundredths,
            jnp.where(alive, rewards, -jnp.inf),
            known,
            lambda rows: gathered[rows] / unit,
            hinge,
            jnp.argsort(-binding),
            best,
            chunk,
        )
