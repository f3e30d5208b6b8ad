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
from ..belief.weights import WeightBelief
from ..kernels import Kernel
from ..learner import Experiment
from ..methods import CONTROL, DEFAULT
from ..model import KnownModel
from ..policies import Parameters
from ..settings import Settings
from ..shape import episode_shape
from ..solve.expectation import Expectation, Quadrature, quadrature_error
from ..solve.policy_search import ExactSearch
from ..solve.robust import worst_costs
from ..specification import Specification, make_experiment
from ..task import Task
from ..tasks import ledge
from ..tasks.ledge import GROUNDS, Sled, prior_of
from ..theory import (
    EpisodeShape,
    closeness_exponent,
    confidence_width,
    episode_bound,
    information_gain,
    sample_count,
    small_ball,
    tightening,
)
from ..types import Action, Scalar, State

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
        return ledge.make(prior_of(self.ground, self.bound), (self.budget,))

    @property
    def limits(self) -> tuple[float, ...]:
        """The box of the inputs (x, a)."""
        assert self.task.limits is not None
        return self.task.limits.inputs

    @property
    def kernel(self) -> Kernel:
        return GROUNDS[self.ground]

    @property
    def shape(self) -> EpisodeShape:
        return episode_shape(self.task)

    @property
    def exponent(self) -> float:
        """x: one sample is zeta-close with probability at least exp(-x)."""
        phi = small_ball(self.kernel, self.limits, self.zeta).value
        return closeness_exponent(self.bound, phi, self.task.state_size)

    @property
    def samples(self) -> int:
        """M (lemma sampling)."""
        return sample_count(self.exponent, self.delta)

    @property
    def closeness_tightening(self) -> float:
        """Delta_zeta."""
        return tightening(self.zeta, self.shape)

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
        limits, noise = self.limits, ledge.NOISE
        gain = information_gain(self.kernel, limits, noise)

        def width(n: float) -> float:
            information = jnp.asarray(gain(n * self.task.horizon))
            return float(confidence_width(information, self.bound, jnp.asarray(noise), 1, self.delta))

        return episode_bound(self.epsilon, self.delta, width, gain, self.kernel.supremum(limits), self.shape)

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
        return Specification.make("ledge", DEFAULT.name, 0, "cpu", derived).settings

    @cached_property
    def experiment(self) -> Experiment:
        return make_experiment(self.task, DEFAULT.name, self.settings)

    @cached_property
    def trusting(self) -> Experiment:
        """The control: the same with safety demanded on the mean dynamics only."""
        return make_experiment(self.task, CONTROL.name, self.settings)

    @property
    def search(self) -> ExactSearch:
        solver = self.experiment.solver
        assert isinstance(solver, ExactSearch)
        return solver

    def belief(self) -> WeightBelief:
        """Before the first episode."""
        belief = self.settings.belief.create(self.task, self.episodes, jax.random.key(0))
        assert isinstance(belief, WeightBelief)
        return belief

    def draw_sled(self, rng: np.random.Generator) -> Sled:
        """A true system of norm exactly B, in a random direction: none is harder."""
        w = rng.standard_normal(self.kernel.rank)
        return Sled(self.kernel, jnp.asarray(self.bound * w / np.linalg.norm(w)))

    def true_returns(self, sled: Sled) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """J_c(pi, f*) and J_r(pi, f*) of every policy, more exactly than Algorithm 1 itself computes returns."""
        finer = dataclasses.replace(self.search, expectation=_finer(self.search.expectation))
        both = np.asarray(_expected(finer, KnownModel(sled.mean, ledge.SIGNALS)))
        return both[:, 0], both[:, 1]

    @cached_property
    def worst_costs(self) -> Float[np.ndarray, " P"]:
        """At least the largest J_c(pi, f) over F_0^B, by robust dynamic programming (assumption prior_knowledge).

        It is the largest where the adversary, who may choose anew at every step, always chooses the same.
        """
        rule = self.search.expectation
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


def _finer(rule: Expectation) -> Quadrature:
    """Nodes half as far apart, twice as far out, in double precision: errors of 1e-9 instead of 1e-4."""
    assert isinstance(rule, Quadrature)
    step = rule.noise / 3
    half = round(2 * float(rule.nodes[-1]) / step)
    places = np.arange(-half, half + 1)  # every episode begins at 0
    return Quadrature(jnp.asarray(step * places), jnp.asarray(places == 0, EXACT), rule.noise, rule.horizon)


@eqx.filter_jit
def _expected(search: ExactSearch, truth: KnownModel) -> Float[Array, "P 2"]:
    """J_c and J_r of every policy."""
    policies = search.policies

    def cost(x: State, a: Action, y: State) -> Scalar:
        return truth.costs(x, a, y)[0]

    def one(theta: Parameters) -> Float[Array, " g"]:
        return search.expectation.expected(truth, lambda x: policies(theta.astype(x.dtype), x), (cost, truth.reward))

    return jax.lax.map(one, policies.lattice(), batch_size=search.block)
