"""Finding the best K of many candidates while evaluating as little as possible of each. Exact.

The value of a candidate is its nominal return less penalties: one for missing information, then one for each sample.
Penalties only lower it, so what is known of a candidate at any stage is an upper bound,

    stage 0      J_r
    stage 1      J_r - lambda_sigma max(d_sigma - J_s, 0)
    stage 1 + j  ... - lambda_c (hinges of j samples, those that were violated most often first)

and after all samples it is the value. A candidate among the K highest *bounds* has to be evaluated further, since no
other bound can rise; once the K highest are all values, they are the elites. Whoever violates the first sample clearly
is out after one.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..problem import Evaluation, Excess, Penalties, Problem, explored, penalised, penalties
from ..types import Flag, Index

__all__ = ["Search", "evaluate_lazily"]


class Search(NamedTuple):
    """What is known of P candidates."""

    bound: Float[Array, " P"]
    """An upper bound of the value; the value itself after the last stage; -inf for what does not count."""
    explored: Float[Array, " P"]
    """The value but for the cost; from stage 1 on."""
    gathered: Float[Array, " P"]
    """J_s; from stage 1 on, 0 where no exploration is demanded."""
    penalties: Float[Array, "P M"]
    """Of each sample; 0 where not known."""
    worst: Float[Array, " P"]
    """The largest violation known."""
    stage: Int[Array, " P"]
    asked: Int[Array, " M"]
    """For how many candidates each sample was evaluated."""

    @property
    def complete(self) -> Bool[Array, " P"]:
        return self.stage > self.penalties.shape[1]

    def violated_share(self, otherwise: Float[Array, " M"]) -> Float[Array, " M"]:
        """The share of the candidates that reached a sample which violate it, and `otherwise` if none reached it."""
        share = jnp.sum(self.penalties > 0, axis=0, dtype=jnp.int32) / jnp.maximum(self.asked, 1)
        return jnp.where(self.asked > 0, share.astype(otherwise.dtype), otherwise)

    def evaluation(self) -> Evaluation:
        """What is known for certain: -inf where a value was not needed."""
        done = self.complete
        return Evaluation(jnp.where(done, self.bound, -jnp.inf), jnp.where(done, self.worst, jnp.inf), self.gathered)


def evaluate_lazily(
    problem: Problem,
    weights: Penalties,
    returns: Float[Array, " P"],
    known: Evaluation,
    gather: Callable[[Int[Array, " C"]], Float[Array, " C"]],
    hinge: Callable[[Int[Array, " C"], Index], Excess],
    order: Int[Array, " M"],
    best: int,
    chunk: int,
) -> Search:
    """Evaluates until the `best` candidates and the one to follow are certain.

    `returns` is -inf for candidates that do not count. `known` holds values known from before, else -inf. `gather`
    gives J_s and `hinge` the excess on sample m, both for a chunk of rows. The one to follow is the most valuable
    feasible candidate, or, if there is none, the one whose worst sample violates least: also that is found exactly.
    """
    chunk = min(chunk, returns.shape[0])

    def advance(state: tuple[Search, _Next]) -> tuple[Search, _Next]:
        search, (_, score, stage) = state
        here = ~search.complete & (search.stage == stage)
        # An open candidate comes before any other, even if its score is -inf: the search always gets on.
        score = jnp.where(here, jnp.maximum(score, jnp.finfo(score.dtype).min), -jnp.inf)
        rows = jax.lax.top_k(score, chunk)[1]
        search = _evaluate(search, rows, here[rows], stage)
        return search, _next(search, best)

    def _evaluate(search: Search, rows: Int[Array, " C"], fresh: Bool[Array, " C"], stage: Index) -> Search:
        explore = lambda: _explore(problem, weights, search, returns, rows, fresh, gather(rows))  # noqa: E731
        if order.shape[0] == 0:
            return explore()
        m = order[jnp.maximum(stage - 1, 0)]
        return jax.lax.cond(stage == 0, explore, lambda: _charge(weights, search, rows, fresh, m, hinge(rows, m)))

    search = _begin(problem, returns, known, order.shape[0])
    return jax.lax.while_loop(lambda state: state[1].more, advance, (search, _next(search, best)))[0]


def _begin(problem: Problem, returns: Float[Array, " P"], known: Evaluation, samples: int) -> Search:
    counts, done = returns > -jnp.inf, jnp.isfinite(known.value)
    nothing = jnp.zeros_like(returns)
    first = jnp.where(problem.threshold > 0, 0, 1)
    return Search(
        bound=jnp.where(done, known.value, returns),
        explored=returns,
        gathered=jnp.where(done, known.information, nothing),
        penalties=jnp.zeros((returns.shape[0], samples), returns.dtype),
        worst=jnp.where(done, known.violation, jnp.where(counts, nothing, jnp.inf)),
        stage=jnp.where(done | ~counts, samples + 1, first).astype(jnp.int32),
        asked=jnp.zeros(samples, jnp.int32),
    )


class _Next(NamedTuple):
    """What is to be done next."""

    more: Flag
    """Whether anything is."""
    score: Float[Array, " P"]
    """The order in which candidates are taken."""
    stage: Index
    """The lowest stage of those that must be evaluated."""


def _next(search: Search, best: int) -> _Next:
    """Who must be evaluated further: first for the elites, then for the best feasible one, or the least violating."""
    unfinished = ~search.complete
    numbers = jnp.arange(unfinished.shape[0])
    among_best = jnp.zeros_like(unfinished).at[jax.lax.top_k(search.bound, best)[1]].set(True)
    hopeful = jnp.where(search.worst <= 0, search.bound, -jnp.inf)
    some_hope = jnp.any(search.worst <= 0)
    elites = unfinished & among_best
    single = unfinished & (numbers == jnp.where(some_hope, jnp.argmax(hopeful), jnp.argmin(search.worst)))
    first = jnp.any(elites)
    needed = jnp.where(first, elites, single)
    score = jnp.where(first, search.bound, jnp.where(some_hope, hopeful, -search.worst))
    return _Next(jnp.any(needed), score, jnp.min(jnp.where(needed, search.stage, search.penalties.shape[1] + 1)))


def _explore(
    problem: Problem,
    weights: Penalties,
    search: Search,
    returns: Float[Array, " P"],
    rows: Int[Array, " C"],
    fresh: Bool[Array, " C"],
    gathered: Float[Array, " C"],
) -> Search:
    """Stage 0 to 1."""
    value = explored(problem, weights, returns[rows], gathered)
    return search._replace(
        bound=_put(search.bound, rows, fresh, value),
        explored=_put(search.explored, rows, fresh, value),
        gathered=_put(search.gathered, rows, fresh, gathered),
        stage=search.stage.at[rows].add(fresh.astype(jnp.int32)),
    )


def _charge(
    weights: Penalties,
    search: Search,
    rows: Int[Array, " C"],
    fresh: Bool[Array, " C"],
    m: Index,
    hinge: Excess,
) -> Search:
    """One sample more. The bound is summed from what is stored, so it does not depend on who was evaluated together."""
    new = jnp.where(fresh, penalties(weights, hinge.charged), search.penalties[rows, m])
    known = search.penalties.at[rows, m].set(new)
    return search._replace(
        bound=_put(search.bound, rows, fresh, penalised(search.explored[rows], known[rows])),
        penalties=known,
        worst=_put(search.worst, rows, fresh, jnp.maximum(search.worst[rows], hinge.beyond)),
        stage=search.stage.at[rows].add(fresh.astype(jnp.int32)),
        asked=search.asked.at[m].add(jnp.sum(fresh, dtype=jnp.int32)),
    )


def _put(
    values: Float[Array, " P"], rows: Int[Array, " C"], fresh: Bool[Array, " C"], new: Float[Array, " C"]
) -> Float[Array, " P"]:
    return values.at[rows].set(jnp.where(fresh, new, values[rows]))
