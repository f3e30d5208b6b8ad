"""Problems with known answers: models that are written down, as samples and as the nominal one."""

import equinox as eqx
import jax
import jax.numpy as jnp

from sbsrl.belief.protocol import Forgetful, Steps
from sbsrl.model import KnownModel, Signals
from sbsrl.problem import Problem
from sbsrl.solve.gradient.choices import GradientChoices
from sbsrl.solve.gradient.settings import improver_of
from sbsrl.solve.network.domain import Domain
from sbsrl.solve.network.episodes import EachAsked
from sbsrl.solve.network.network_policy import Units
from sbsrl.solve.network.solver import NetworkSolver


class Parametric(eqx.Module):
    """Models that differ by a number: `make(number)` is one."""

    numbers: jax.Array
    make: object = eqx.field(static=True)

    def __len__(self):
        return len(self.numbers)

    def member(self, m):
        return self.make(self.numbers[m])


class Beside(Parametric):
    """The same side by side: what the rows of samples and of the nominal model, the first of them, need."""

    uncertain: float = 0.0
    """s_n, everywhere."""

    def beside(self, each, nominal):
        known_ones, said = Parametric(self.numbers, self.make), jnp.float32(self.uncertain)
        first = self.make(self.numbers[0])
        return EachAsked(make_problem(first, known_ones, 1.0, 1, uncertainty=lambda x, a: said), each, nominal)


class SwitchingRows(Forgetful, eqx.Module):
    """Rows that follow another of the models at each step."""

    numbers: jax.Array
    make: object = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def noises(self, key, steps, training):
        return jax.random.randint(key, (steps, self.count, 1), 0, len(self.numbers)).astype(jnp.float32)

    def steps(self, x, a, noise):
        def step(number, x, a):
            model = self.make(number)
            y = model(x, a)
            return y, model.reward(x, a, y), model.costs(x, a, y)

        moved = jax.vmap(step)(self.numbers[noise[:, 0].astype(jnp.int32)], x, a)
        return Steps(*moved), jnp.zeros(len(x), jnp.float32)


class Switching(Parametric):
    """Trajectories that follow another of the models at each step."""

    def beside(self, each, nominal):
        return SwitchingRows(self.numbers, self.make, each * len(self) + nominal)


def two_states(price=1.0):
    """A CMDP of two states, idle and busy: a is how much of the next step is spent busy, which earns and costs."""
    return known(lambda x, a: (1 + a) / 2, lambda x, a, y: y[0], lambda x, a, y: price * y)


class Always(eqx.Module):
    """The same action at all times."""

    action: float

    def init(self):
        return ()

    def act(self, x, state, key):
        return jnp.full(1, self.action), (), {}


def make_problem(model, samples, bound, steps, threshold=0.0, uncertainty=lambda x, a: jnp.float32(0), **options):
    return Problem(
        objective=None,
        nominal=model,
        samples=samples,
        bounds=jnp.array([bound], jnp.float32),
        aggregations=("sum",),
        uncertainty=uncertainty,
        threshold=jnp.float32(threshold),
        steps=jnp.int32(steps),
        exploring=jnp.asarray(threshold > 0),
        starts=jnp.zeros((8, 1)),
        key=jax.random.key(0),
        **options,
    )


def known(dynamics, reward, costs):
    return KnownModel(dynamics, Signals(reward, costs))


def units(dx=1, low=-1.0, high=1.0):
    one = jnp.ones(1, jnp.float32)
    return Units(jnp.zeros(dx, jnp.float32), jnp.ones(dx, jnp.float32), low * one, high * one)


def solver(start, horizon, budget=1.0, return_scale=1.0, data=None, reliable=True, safe_action=None, **choices):
    usual = {"trust": 0.0, "updates": 50, "policy_rate": 1e-2, "unsteadiness": 0.0, "policy_width": 16, "each": 1}
    chosen = GradientChoices(**{**usual, **choices})
    where = domain(start, horizon, budget, return_scale, data, reliable, safe_action)
    return NetworkSolver(where, chosen, improver_of(where, chosen))


def domain(start, horizon, budget=1.0, return_scale=1.0, data=None, reliable=True, safe_action=None):
    return Domain(
        start=start,
        data=data,
        units=units(),
        budgets=(budget,),
        aggregations=("sum",),
        horizon=horizon,
        return_scale=return_scale,
        reliable=reliable,
        safe_action=safe_action,
    )
