"""Problems with known answers: models that are written down, as samples and as the nominal one."""

import equinox as eqx
import jax
import jax.numpy as jnp

from sbsrl.model import KnownModel, Signals
from sbsrl.problem import Problem
from sbsrl.solve.gradient.choices import GradientChoices
from sbsrl.solve.gradient.settings import improver_of
from sbsrl.solve.network.domain import Domain
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
