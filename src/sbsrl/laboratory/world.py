"""A world: a ground for the sled, and all the constants that the theorems ask for, derived and not chosen."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..belief import WeightBelief
from ..experiment import make_experiment, make_learner
from ..kernels import Kernel
from ..loop import Experiment
from ..policies import Parameters
from ..settings import Settings, make_settings
from ..solve import ExactSearch, Quadrature, Returns
from ..solve.returns import quadrature_error
from ..solve.robust import worst_costs
from ..task import Task
from ..tasks import find_task
from ..tasks.ledge import GROUNDS, Sled, ledge, prior_of
from ..theory import (
    Episodes,
    closeness_exponent,
    confidence_width,
    episode_bound,
    information_gain,
    sample_count,
    small_ball,
    tightening,
)
from ..types import Dynamics, TransitionFunction

__all__ = ["World"]


@dataclass(frozen=True)
class World:
    """The choices: how sure, how close, how accurate, how much cost."""

    ground: str = "slope"
    bound: float = 1.0
    """B."""
    delta: float = 0.05
    zeta: float = 0.03
    epsilon: float = 1.2
    budget: float = 1.6
    """d."""
    episodes: int = 1500
    """How many are allowed; the theorem's own bound is far beyond."""

    def __reduce__(self) -> tuple[type["World"], tuple[Any, ...]]:
        """Another process gets the choices, and derives from them what it needs."""
        return type(self), dataclasses.astuple(self)

    @cached_property
    def task(self) -> Task:
        return ledge(prior_of(self.ground, self.bound), self.budget)

    @property
    def kernel(self) -> Kernel:
        return GROUNDS[self.ground]

    @property
    def returns(self) -> Episodes:
        return Episodes.of(self.task)

    @property
    def exponent(self) -> float:
        """x: one sample is zeta-close with probability at least exp(-x)."""
        phi = small_ball(self.kernel, self.task.input_limits, self.zeta).value
        return closeness_exponent(self.bound, phi, self.task.state_size)

    @property
    def samples(self) -> int:
        """M (lemma sampling)."""
        return sample_count(self.exponent, self.delta)

    @property
    def closeness_tightening(self) -> float:
        """Delta_zeta."""
        return tightening(self.zeta, self.returns)

    @property
    def tightening(self) -> float:
        """By how much plans stay below the budget: Delta_zeta, and what the quadrature may be off by."""
        return self.closeness_tightening + quadrature_error(self.task)

    @property
    def xi(self) -> float:
        """xi > epsilon + Delta_zeta."""
        return (self.epsilon + self.tightening) * (1 + 1e-9)

    @property
    def episode_bound(self) -> float:
        """n_bar (theorem complexity), with the largest information gain of any inputs."""
        limits, noise = self.task.input_limits, float(np.ravel(self.task.prior.noise)[0])
        gain = information_gain(self.kernel, limits, noise)

        def width(n: float) -> float:
            information = jnp.asarray(gain(n * self.task.horizon))
            return float(confidence_width(information, self.bound, jnp.asarray(noise), 1, self.delta))

        return episode_bound(self.epsilon, self.delta, width, gain, self.kernel.supremum(limits), self.returns)

    @property
    def settings(self) -> Settings:
        """Algorithm 1 as analysed: the task's own settings, with the constants of this world."""
        derived = {
            "budget": self.budget,
            "tightening": self.tightening,
            "samples": self.samples,
            "delta": self.delta,
            "accuracy": self.epsilon,
            "episodes": self.episodes,
            "prior": self.ground,
        }
        return make_settings(find_task("ledge").settings, "cpu", derived)

    @cached_property
    def experiment(self) -> Experiment:
        return make_experiment(self.task, "sbsrl", self.settings)

    @cached_property
    def trusting(self) -> Experiment:
        """The control: the same with safety demanded on the mean dynamics only."""
        return make_experiment(self.task, "mean", self.settings)

    @property
    def search(self) -> ExactSearch:
        solver = self.experiment.solver
        assert isinstance(solver, ExactSearch)
        return solver

    def belief(self) -> WeightBelief:
        """Before the first episode."""
        belief = make_learner(self.experiment, 0).belief
        assert isinstance(belief, WeightBelief)
        return belief

    def draw_sled(self, rng: np.random.Generator) -> Sled:
        """A true system of norm exactly B, in a random direction: none is harder."""
        w = rng.standard_normal(self.kernel.rank)
        return Sled(self.kernel, jnp.asarray(self.bound * w / np.linalg.norm(w)))

    def true_returns(self, sled: Sled) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """J_c(pi, f*) and J_r(pi, f*) of every policy, more exactly than Algorithm 1 itself computes returns."""
        judge = dataclasses.replace(self.search, returns=_finer(self.search.returns))
        both = np.asarray(_expected(judge, sled.mean, (self.task.cost, self.task.reward)))
        return both[:, 0], both[:, 1]

    @cached_property
    def worst_costs(self) -> Float[np.ndarray, " P"]:
        """At least the largest J_c(pi, f) over F_0^B, by robust dynamic programming (assumption prior_knowledge).

        It is the largest where the adversary, who may choose anew at every step, always chooses the same.
        """
        rule = self.search.returns
        assert isinstance(rule, Quadrature)
        return np.asarray(worst_costs(self.task, rule, self.search.policies.lattice()), float)

    @property
    def prior_safe(self) -> Bool[np.ndarray, " P"]:
        """Pi_prior for the smallest margin Delta that is allowed, Delta_zeta."""
        return self.worst_costs <= self.budget - self.tightening

    def reachable(self, costs: Float[np.ndarray, " P"]) -> Bool[np.ndarray, " P"]:
        """Pi_xi^{*,c}: policies with J_c(pi, f*) <= d - xi that neighbours of their kind connect with Pi_prior."""
        shape = self.search.policies.points
        allowed = (costs <= self.budget - self.xi).reshape(shape)
        reached = self.prior_safe.reshape(shape) & allowed
        while True:
            wider = reached.copy()
            for axis in range(len(shape)):
                for shift in (-1, 1):
                    wider |= _shifted(reached, axis, shift)
            wider &= allowed
            if np.array_equal(wider, reached):
                return reached.ravel()
            reached = wider


def _shifted(mask: Bool[np.ndarray, "..."], axis: int, shift: int) -> Bool[np.ndarray, "..."]:
    """The mask moved by one along an axis; nothing comes in from the other side."""
    moved = np.roll(mask, shift, axis)
    edge = [slice(None)] * mask.ndim
    edge[axis] = slice(0, 1) if shift == 1 else slice(-1, None)
    moved[tuple(edge)] = False
    return moved


def _finer(rule: Returns) -> Quadrature:
    """Nodes half as far apart, twice as far out, in double precision: errors of 1e-9 instead of 1e-4."""
    assert isinstance(rule, Quadrature)
    step = rule.noise / 3
    half = round(2 * float(rule.nodes[-1]) / step)
    places = np.arange(-half, half + 1)  # every episode begins at 0
    return Quadrature(jnp.asarray(step * places), jnp.asarray(places == 0, EXACT), rule.noise, rule.horizon)


@eqx.filter_jit
def _expected(search: ExactSearch, dynamics: Dynamics, gains: tuple[TransitionFunction, ...]) -> Float[Array, "P g"]:
    """J_g of every policy."""
    policies = search.policies

    def one(theta: Parameters) -> Float[Array, " g"]:
        return search.returns.expected(dynamics, lambda x: policies(theta.astype(x.dtype), x), gains)

    return jax.lax.map(one, policies.lattice(), batch_size=search.block)
