import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.problem import Evaluation, Only, Penalties, Problem
from sbsrl.solve.icem import ICEM
from sbsrl.solve.protocol import Solution, Solver
from sbsrl.solve.receding import PolicyState, RecedingHorizon, ReplanningSolver

PLANNER = ICEM(low=(-1.0,), high=(1.0,), horizon=5, candidates=64, elites=8, iterations=3)


def problem(threshold):
    return Problem(
        reward=lambda x, a, y: -jnp.sum(y**2),
        nominal=lambda x, a: x + a,
        cost=lambda x, a, y: y[0],
        aggregation="statewise",
        samples=Only(lambda x, a: x + a),
        bound=jnp.array(1.0, jnp.float32),
        uncertainty=lambda x, a: jnp.abs(a[0]),
        threshold=jnp.array(threshold, jnp.float32),
        steps=jnp.array(5, jnp.int32),
        exploring=jnp.array(threshold > 0),
        penalties=Penalties(cost=1000.0, exploration=100.0),
    )


@pytest.mark.parametrize(
    ("step", "gathered", "demand"),
    [
        (0, 0.0, 2.0),  # 5 of 20 steps: a quarter of 8
        (10, 3.0, 2.5),  # 5 of 10 steps: half of what is missing
        (18, 3.0, 5.0),  # the plan reaches the end: all that is missing
        (10, 9.0, 0.0),  # enough was gathered
        (20, 0.0, 8.0),
    ],
)
def test_a_plan_must_gather_its_share_of_what_is_missing(step, gathered, demand):
    policy = RecedingHorizon(PLANNER, problem(8.0), 20)
    state = PolicyState(PLANNER.forget(1), step, jnp.array(gathered, jnp.float32))
    np.testing.assert_allclose(policy.demand(state), demand)


def policy_state():
    return PolicyState(PLANNER.forget(1), 0, jnp.zeros((), jnp.float32))


def test_acting_counts_steps_and_information(getkey):
    policy = RecedingHorizon(PLANNER, problem(4.0), 20)
    state = policy_state()
    decision, after = policy.act(jnp.array([0.0]), state, getkey())
    assert after.step == 1
    np.testing.assert_allclose(after.gathered, np.abs(decision.action[0]))
    assert after.memory.warm


def solution(information):
    policy = RecedingHorizon(PLANNER, problem(8.0), 20)
    evaluation = Evaluation(jnp.array(0.0), jnp.array(0.0), jnp.array(information))
    return Solution(policy, jnp.zeros(1), policy_state(), evaluation, demand=2.0)


@pytest.mark.parametrize(("information", "explores"), [(2.0, True), (1.91, True), (1.89, False)])
def test_exploration_is_infeasible_beyond_the_tolerance(information, explores):
    assert solution(information).explores(tolerance=0.05) is explores


def test_what_cannot_be_gathered_before_the_end_is_not_promised(getkey):
    """Two steps are left of an episode of 20; a plan of 5 steps can gather at most 2 nats in them."""
    policy = RecedingHorizon(PLANNER, problem(8.0), 20)
    decision, _ = policy.act(jnp.array([0.0]), policy_state()._replace(step=18), getkey())
    assert 1.5 < decision.evaluation.information <= 2.0


def test_solving_starts_the_policy_from_the_plan_found(getkey):
    solver = ReplanningSolver(PLANNER, 20)
    assert isinstance(solver, Solver)
    found = solver.solve(problem(8.0), jnp.array([0.5]), getkey())
    assert np.any(found.start.memory.mean != 0)
    assert not found.start.memory.warm
    assert found.demand == 2.0
    assert found.evaluation.information >= 1.9
