"""iCEM (Pinneri et al. 2020): the cross-entropy method with coloured noise, memory and a shrinking population.

One call of `ICEM.plan` solves Problem (1) from the current state over a horizon of H steps:

    for each iteration:
        draw N_i coloured-noise sequences around the mean; N_i shrinks by the factor `decay`
        add a share of the elites: of the last control step, shifted by one, or of the last iteration, with their values
        if asked for, add gradient steps from the best of those (`refine.py`)
        from the last iteration on let the mean itself compete
        fit mean and deviation to the K best, with momentum

As long as no sequence is feasible, iterations go on, up to `patience` times as many: an unsafe plan is worth a longer
search. But only while that helps: it ends when as many iterations as a plan normally has lowered the violation of the
best sequence by less than a tenth.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import PLAN
from ..errors import UserError
from ..problem import Evaluation, Penalties, Problem, feasible
from ..types import Actions, Flag, Index, PRNGKey, Scalar, State
from .colour import coloured_basis, coloured_noise
from .lazy import evaluate_lazily
from .refine import Refinement
from .scoring import OpenLoop, Scoring

__all__ = ["ICEM", "Memory", "Plan", "check_population"]


SMALLEST_CHUNK, LARGEST_CHUNK = 16, 128
"""Fewer do not keep the processor busy; more do not stay in its cache, and many would be evaluated in vain. Chunks are
multiples of the smallest: a processor computes with up to 16 numbers at once, and those left over take it as long."""


WORTHWHILE = 0.1
"""By which share a round of iterations must lower the violation for another one to be made."""


class Memory(NamedTuple):
    """What is carried from one control step to the next."""

    mean: Actions
    elites: Float[Array, "keep H da"]
    warm: Flag
    """Whether there was a step before; at the first one the elites are meaningless."""
    binding: Float[Array, " M"]
    """How often each sample was violated lately: the most binding ones are asked first."""


class Plan(NamedTuple):
    """The chosen sequence of actions and what is known of it."""

    actions: Actions
    evaluation: Evaluation
    evaluated: Scalar
    """Share of the pairs of candidate and sample that had to be evaluated."""


class _Search(NamedTuple):
    """What is carried from one iteration to the next."""

    mean: Actions
    std: Actions
    kept: Float[Array, "keep H da"]
    kept_evaluation: Evaluation
    best: Actions
    best_evaluation: Evaluation
    violations: Float[Array, " I1"]
    """Of the best sequence, now and after each of as many iterations before as a plan normally has."""
    binding: Float[Array, " M"]
    pairs: Index


class ICEM(eqx.Module):
    """The planner. Its state between control steps is a `Memory`, passed in and out."""

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    candidates: int = eqx.field(static=True)
    elites: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    penalties: Penalties = eqx.field(static=True)
    decay: float = eqx.field(static=True, default=1.25)
    colour: float = eqx.field(static=True, default=2.0)
    momentum: float = eqx.field(static=True, default=0.1)
    spread: float = eqx.field(static=True, default=0.5)
    """Initial standard deviation, as a share of half the action range."""
    keep: float = eqx.field(static=True, default=0.3)
    """Share of the elites that is carried on."""
    patience: int = eqx.field(static=True, default=1)
    """How many times the iterations may be repeated while no sequence is feasible and that helps."""
    chunk: int | None = eqx.field(static=True, default=None)
    """Candidates evaluated at once on a sample; None takes as many as there are elites, within reason."""
    lazy: bool = eqx.field(static=True, default=True)
    """False evaluates every candidate on every sample: the same plan, slower."""
    receding: bool = eqx.field(static=True, default=True)
    """Whether what is remembered is about one step later when the next plan is made; else it is about the same."""
    scoring: Scoring = OpenLoop()
    """What a candidate is: a sequence of actions, or the parameters of a policy."""
    refinement: Refinement | None = None
    """How the best candidates are improved by gradients, which needs them to be sequences of actions."""

    @property
    def population(self) -> tuple[int, ...]:
        """N_i = max(2 K, N_{i-1} / decay), N_0 = N."""
        sizes = [self.candidates]
        while len(sizes) < self.iterations:
            sizes.append(max(2 * self.elites, int(sizes[-1] / self.decay)))
        return tuple(sizes)

    @property
    def kept_elites(self) -> int:
        return max(1, round(self.keep * self.elites))

    @property
    def _centre(self) -> Float[Array, " da"]:
        return jnp.asarray((np.array(self.high) + np.array(self.low)) / 2, PLAN)

    @property
    def _half_range(self) -> Float[Array, " da"]:
        return jnp.asarray((np.array(self.high) - np.array(self.low)) / 2, PLAN)

    def _clip(self, actions: Float[Array, "... da"]) -> Float[Array, "... da"]:
        low, high = (jnp.broadcast_to(jnp.asarray(end, PLAN), actions.shape) for end in (self.low, self.high))
        return jnp.clip(actions, low, high)

    def init(self, constraints: int) -> Memory:
        """The memory before the first step of an episode, for problems with so many safety constraints."""
        mean = jnp.broadcast_to(self._centre, (self.horizon, len(self.low)))
        elites = jnp.broadcast_to(mean, (self.kept_elites, *mean.shape))
        return Memory(mean, elites, jnp.zeros((), bool), jnp.zeros(constraints, PLAN))

    @eqx.filter_jit
    def plan(self, problem: Problem, x: State, memory: Memory, key: PRNGKey) -> tuple[Plan, Memory]:
        """Solves Problem (1) from x, and remembers what helps at the next step."""
        x = x.astype(PLAN)
        start_key, search_key = jax.random.split(key)
        problem = problem.with_noise(jax.random.fold_in(problem.key, jax.random.bits(key)))
        search = self._start(memory, start_key)

        def iterate(i: Index, search: _Search) -> _Search:
            return self._iterate(problem, x, memory.warm, i, search, jax.random.fold_in(search_key, i))

        done, search = jax.lax.while_loop(
            lambda state: self._goes_on(*state),
            lambda state: (state[0] + 1, iterate(*state)),
            (jnp.zeros((), jnp.int32), search),
        )
        beyond = (done - self.iterations) * self.population[-1]
        proposed = 0 if self.refinement is None else done * self.refinement.count
        all_pairs = max(1, problem.constraint_count) * (sum(self.population) + self.kept_elites + beyond + proposed)
        plan = Plan(search.best, search.best_evaluation, (search.pairs / all_pairs).astype(PLAN))
        # The executed plan leads the remembered elites: a plan that was safe a step ago is the best start for the next.
        elites = jnp.concatenate([search.best[None], search.kept[:-1]])
        return plan, Memory(search.mean, elites, jnp.ones((), bool), search.binding)

    def _goes_on(self, i: Index, search: _Search) -> Flag:
        unsafe = ~feasible(search.best_evaluation)
        helps = search.violations[-1] <= (1 - WORTHWHILE) * search.violations[0]
        return (i < self.iterations) | (unsafe & helps & (i < self.patience * self.iterations))

    def _start(self, memory: Memory, key: PRNGKey) -> _Search:
        """Mean and elites of the last step, shifted by one; the elites' last action is drawn anew."""
        mean, kept = memory.mean, memory.elites
        std = jnp.broadcast_to(self.spread * self._half_range, mean.shape)
        if self.receding:
            mean = jnp.where(memory.warm, jnp.concatenate([mean[1:], mean[-1:]]), mean)
            noise = jax.random.normal(key, kept[:, :1].shape, PLAN)
            last = self._clip(mean[None, -1:] + std[None, -1:] * noise)
            kept = jnp.concatenate([kept[:, 1:], last], axis=1)
        unknown = jnp.full(self.kept_elites, -jnp.inf, PLAN)
        nothing = Evaluation(*(jnp.array(v, PLAN) for v in (-jnp.inf, jnp.inf, 0.0)))
        return _Search(
            mean=mean,
            std=std,
            kept=kept,
            kept_evaluation=Evaluation(unknown, -unknown, jnp.zeros_like(unknown)),
            best=mean,
            best_evaluation=nothing,
            violations=jnp.full(self.iterations + 1, jnp.inf, PLAN),
            binding=memory.binding,
            pairs=jnp.zeros((), jnp.int32),
        )

    def _iterate(self, problem: Problem, x: State, warm: Flag, i: Index, search: _Search, key: PRNGKey) -> _Search:
        steps = self._gradient_steps(problem, x, search)
        pool, alive, known = self._pool(warm, i, search, steps, key)
        wanted = self.elites if self.lazy else len(pool)
        chunk = self.chunk or min(-(-self.elites // SMALLEST_CHUNK) * SMALLEST_CHUNK, LARGEST_CHUNK)
        scores = self.scoring.score(problem, self.penalties, x, pool, alive)
        found = evaluate_lazily(
            scores.problem,
            self.penalties,
            jnp.where(alive, scores.nominal, -jnp.inf),
            known,
            scores.gather,
            scores.hinge,
            jnp.argsort(-search.binding),
            wanted,
            chunk,
        )
        evaluation = found.evaluation()
        order = jax.lax.top_k(evaluation.value, self.elites)[1]
        elites = pool[order]
        kept = order[: self.kept_elites]
        best, best_evaluation = _better(pool, evaluation, search)
        keep = self.momentum
        return _Search(
            mean=(1 - keep) * jnp.mean(elites, axis=0) + keep * search.mean,
            std=(1 - keep) * jnp.std(elites, axis=0) + keep * search.std,
            kept=pool[kept],
            kept_evaluation=Evaluation(*(part[kept] for part in evaluation)),
            best=best,
            best_evaluation=best_evaluation,
            violations=jnp.concatenate([search.violations[1:], best_evaluation.violation[None]]),
            binding=0.5 * (search.binding + found.violated_share(search.binding)),
            pairs=search.pairs + jnp.sum(found.asked, dtype=jnp.int32),
        )

    def _gradient_steps(self, problem: Problem, x: State, search: _Search) -> Float[Array, "G H da"]:
        """Candidates near the best of the kept elites that should be better; none without a refinement."""
        if self.refinement is None:
            return search.kept[:0]
        low, high = (jnp.broadcast_to(jnp.asarray(end, PLAN), search.mean.shape) for end in (self.low, self.high))
        binding = jnp.argsort(-search.binding)[: self.refinement.samples]
        return self.refinement.propose(
            problem, self.penalties, x, search.kept[: self.refinement.parents], (low, high), binding
        )

    def _pool(
        self, warm: Flag, i: Index, search: _Search, steps: Float[Array, "G H da"], key: PRNGKey
    ) -> tuple[Float[Array, "P H da"], Array, Evaluation]:
        """The candidates of iteration i: kept elites, steps from them, fresh ones; which of them count; what is known.

        The pool always has the size of the first iteration, so that one program serves all; fresh candidates
        beyond N_i do not count.
        """
        noise = coloured_noise(key, self.candidates, coloured_basis(self.horizon, self.colour), len(self.low), PLAN)
        fresh = self._clip(search.mean[None] + search.std[None] * noise)
        last = i >= self.iterations - 1
        fresh = fresh.at[0].set(jnp.where(last, self._clip(search.mean), fresh[0]))
        size = jnp.asarray(self.population)[jnp.minimum(i, self.iterations - 1)]
        remembered = jnp.broadcast_to(warm | (i > 0), (self.kept_elites + len(steps),))
        alive = jnp.concatenate([remembered, jnp.arange(self.candidates) < size])
        unknown = jnp.full(len(steps) + self.candidates, -jnp.inf, PLAN)
        known = Evaluation(
            jnp.concatenate([search.kept_evaluation.value, unknown]),
            jnp.concatenate([search.kept_evaluation.violation, -unknown]),
            jnp.concatenate([search.kept_evaluation.information, jnp.zeros_like(unknown)]),
        )
        return jnp.concatenate([search.kept, steps, fresh]), alive, known


def _better(pool: Float[Array, "P H da"], found: Evaluation, search: _Search) -> tuple[Actions, Evaluation]:
    """The best plan seen so far: the most valuable feasible one, or else the one that violates least."""
    safe = feasible(found) & jnp.isfinite(found.value)
    top = jnp.where(
        jnp.any(safe),
        jnp.argmax(jnp.where(safe, found.value, -jnp.inf)),
        jnp.argmin(found.violation),
    )
    candidate = Evaluation(*(part[top] for part in found))
    old = search.best_evaluation
    more_valuable = (
        feasible(candidate) & jnp.isfinite(candidate.value) & (~feasible(old) | (candidate.value > old.value))
    )
    less_violating = ~feasible(candidate) & (candidate.violation < old.violation)
    better = more_valuable | less_violating
    chosen = Evaluation(*(jnp.where(better, new, kept) for new, kept in zip(candidate, old, strict=True)))
    return jnp.where(better, pool[top], search.best), chosen


def check_population(candidates: int, elites: int) -> None:
    """Refuses fewer than two candidates per elite."""
    if candidates < 2 * elites:
        raise UserError(
            f"candidates={candidates} is less than twice elites={elites}; set candidates to at least {2 * elites}, or "
            "fewer elites."
        )
