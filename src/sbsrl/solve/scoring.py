"""What iCEM asks about its candidates, be they sequences of actions or parameters of policies."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..policies import Parameters, PolicyClass
from ..problem import Candidates, Excess, Penalties, Problem, Trajectories, excess, information, nominal_returns
from ..types import Index, Scalar, State
from .expectation import Expectation, policy_excess, policy_returns

__all__ = [
    "NOMINAL_BLOCK",
    "ClosedLoop",
    "OpenLoop",
    "Pool",
    "Scores",
    "Scoring",
    "counted",
    "nominal_in_blocks",
]

Pool = Float[Array, "P H da"]


class Scores(NamedTuple):
    """What can be asked about the candidates of a pool."""

    problem: Problem
    """The problem in whose units the answers are."""
    nominal: Float[Array, " P"]
    """J_r on the nominal model."""
    gather: Callable[[Int[Array, " C"]], Float[Array, " C"]]
    """J_s of some candidates."""
    hinge: Callable[[Int[Array, " C"], Index], Excess]
    """The excess of some candidates under safety constraint m."""


@runtime_checkable
class Scoring(Protocol):
    """What a candidate means, and hence how it is scored."""

    def score(self, problem: Problem, weights: Penalties, x: State, pool: Pool, alive: Bool[Array, " P"]) -> Scores:
        """All that can be said of the pool; candidates that are not alive do not matter."""
        ...


NOMINAL_BLOCK = 128
"""Candidates whose nominal trajectories are computed at once."""


def counted(alive: Bool[Array, " P"]) -> Index:
    """How many candidates there are up to the last one that matters."""
    return jnp.max(jnp.where(alive, jnp.arange(len(alive), dtype=jnp.int32), 0)) + 1


def nominal_in_blocks(
    problem: Problem, x: State, actions: Candidates, count: Index
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


class OpenLoop(eqx.Module):
    """A candidate is a sequence of actions from x."""

    def score(self, problem: Problem, weights: Penalties, x: State, pool: Pool, alive: Bool[Array, " P"]) -> Scores:
        actions = jnp.moveaxis(pool, 0, -1)
        returns, states = nominal_in_blocks(problem, x, actions, counted(alive))

        def hinge(rows: Int[Array, " C"], m: Index) -> Excess:
            return excess(problem, m, x, actions[:, :, rows], weights.slack)

        def gather(rows: Int[Array, " C"]) -> Float[Array, " C"]:
            return information(problem, states[:, :, rows], actions[:, :, rows])

        return Scores(problem, returns, gather, hinge)


class ClosedLoop(eqx.Module):
    """A candidate is the parameters of a policy, [1, p], scored over whole episodes.

    Information is counted in hundredths of what is demanded, so that the weight of what is missing does not depend on
    its unit; the problem's threshold is then 100.
    """

    policies: PolicyClass
    expectation: Expectation

    def score(self, problem: Problem, weights: Penalties, x: State, pool: Pool, alive: Bool[Array, " P"]) -> Scores:
        thetas = pool[:, 0]
        unit = jnp.maximum(problem.threshold, jnp.finfo(thetas.dtype).tiny) / 100
        in_hundredths = problem.demanding(jnp.where(problem.threshold > 0, 100, 0).astype(thetas.dtype), 1)

        def nominal(theta: Parameters) -> tuple[Scalar, Scalar]:
            return policy_returns(problem, self.expectation, self.policies, theta)

        rewards, gathered = jax.lax.map(nominal, thetas, batch_size=min(NOMINAL_BLOCK, len(thetas)))

        def hinge(rows: Int[Array, " C"], m: Index) -> Excess:
            one = lambda theta: policy_excess(problem, self.expectation, self.policies, theta, m)  # noqa: E731
            return jax.vmap(one)(thetas[rows])

        return Scores(in_hundredths, rewards, lambda rows: gathered[rows] / unit, hinge)
