"""How the set of safe policies grows over a run (figure safe_set_expansion of the paper), from the real sets.

The sets are computed on a finer lattice of the two parameters than the one that is searched.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..belief.weights import WeightBelief
from ..problem import Problem
from ..solve.policy_search import ExactSearch
from ..tasks.ledge import Sled
from ..types import PRNGKey
from .trial import problem_of, run_trial
from .world import World

__all__ = ["Expansion", "expansion"]

FINE = (41, 31)
SNAPSHOTS = (0, 1, 3, 10, 30, 100, 300)


class Expansion(NamedTuple):
    """The sets, as masks over the fine lattice."""

    push: Float[np.ndarray, " a"]
    spring: Float[np.ndarray, " b"]
    episodes: list[int]
    """n of each snapshot; the last one is n*."""
    safe: list[Bool[np.ndarray, "a b"]]
    """Pi_safe^n."""
    costs: Float[np.ndarray, "a b"]
    """J_c(pi, f*)."""
    budget: float
    """d: Pi_0^* are the policies that cost no more."""
    margin: float
    """xi."""
    reachable: Bool[np.ndarray, "a b"]
    """Pi_xi^{*,c}."""
    played: list[list[float]]
    """Parameters of the policies that were played."""
    final: list[float]

    @property
    def truly_safe(self) -> Bool[np.ndarray, "a b"]:
        """Pi_0^*."""
        return self.costs <= self.budget


def expansion(world: World, sled: Sled, seed: int) -> Expansion:
    """One run, looked at after more and more episodes."""
    fine = FineWorld(**dataclasses.asdict(world))
    key = jax.random.key(seed)
    run = lambda most: run_trial(world.experiment, world.belief(), sled, key, jnp.asarray(most, jnp.int32))  # noqa: E731
    end = run(world.episodes)
    beliefs = {n: run(n).belief for n in SNAPSHOTS if n < end.episodes} | {int(end.episodes): end.belief}
    costs, _ = fine.true_returns(sled)
    push, spring = fine.search.policies.axes()
    lattice = np.asarray(world.search.policies.lattice())
    return Expansion(
        push=push,
        spring=spring,
        episodes=list(beliefs),
        safe=[_safe_set(fine, belief, key) for belief in beliefs.values()],
        costs=costs.reshape(FINE),
        budget=world.budget,
        margin=world.xi,
        reachable=fine.reachable(costs).reshape(FINE),
        played=lattice[np.asarray(end.played) > 0].tolist(),
        final=lattice[int(end.final)].tolist(),
    )


class FineWorld(World):
    """The same world with more policies."""

    @property
    def search(self) -> ExactSearch:
        coarse = super().search
        return dataclasses.replace(coarse, policies=dataclasses.replace(coarse.policies, points=FINE))


def _safe_set(world: World, belief: WeightBelief, key: PRNGKey) -> Bool[np.ndarray, "a b"]:
    """Pi_safe^n = {pi: J_c(pi, f_n^m) <= d - Delta_zeta for all m}."""
    problem = problem_of(world.experiment, belief, key, exploring=False)
    return (np.asarray(_violations(world.search, problem)) <= 0).reshape(FINE)


@eqx.filter_jit
def _violations(search: ExactSearch, problem: Problem) -> Float[Array, " P"]:
    return search.violations(problem)
