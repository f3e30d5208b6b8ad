"""The policy that replans: what it must gather, what it remembers, and where it starts."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError, make_task
from sbsrl.model import KnownModel, Signals
from sbsrl.policy import Controller, Policy
from sbsrl.problem import Evaluation, Only, Penalties, Problem
from sbsrl.solve.icem import ICEM
from sbsrl.solve.protocol import Solution, Solver
from sbsrl.solve.receding import ICEMSettings, PolicyState, RecedingHorizon, ReplanningSolver

WEIGHTS = Penalties(cost=1000.0, exploration=100.0)
PLANNER = ICEM(low=(-1.0,), high=(1.0,), horizon=5, candidates=64, elites=8, iterations=3, penalties=WEIGHTS)
MODEL = KnownModel(lambda x, a: x + a, Signals(lambda x, a, y: -jnp.sum(y**2), lambda x, a, y: y))


def problem(threshold):
    return Problem(
        objective=None,
        nominal=MODEL,
        samples=Only(MODEL),
        bounds=jnp.ones(1, jnp.float32),
        aggregations=("statewise",),
        uncertainty=lambda x, a: jnp.abs(a[0]),
        threshold=jnp.array(threshold, jnp.float32),
        steps=jnp.array(5, jnp.int32),
        exploring=jnp.array(threshold > 0),
        starts=jnp.array([[0.5], [9.0]]),
        key=jax.random.key(0),
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
    state = PolicyState(PLANNER.init(1), jnp.array(step, jnp.int32), jnp.array(gathered, jnp.float32))
    np.testing.assert_allclose(policy.demand(state), demand)


class TestSummedCosts:
    """A plan of 5 steps in an episode of 20 whose first cost is summed, with a budget of 8, and whose second is not."""

    @pytest.fixture
    def policy(self):
        costs = Signals(lambda x, a, y: -jnp.sum(y**2), lambda x, a, y: jnp.concatenate([jnp.abs(a), y]))
        both = eqx.tree_at(lambda p: p.bounds, problem(0.0), jnp.array([8.0, 1.0], jnp.float32))
        model = KnownModel(lambda x, a: x + a, costs)
        both = replace(both, aggregations=("sum", "statewise"), nominal=model, samples=Only(model))
        return RecedingHorizon(PLANNER, both, 20)

    @pytest.mark.parametrize(
        ("step", "spent", "allowed"),
        [
            (0, 0.0, 2.0),  # 5 of 20 steps: a quarter of 8
            (10, 3.0, 2.5),  # 5 of 10 steps: half of what is left
            (18, 3.0, 5.0),  # the plan reaches the end: all that is left
            (15, 9.0, -1.0),  # more than all was spent: no plan is feasible
        ],
    )
    def test_a_plan_may_spend_its_share_of_what_is_left(self, policy, step, spent, allowed):
        state = policy.init()._replace(step=jnp.array(step, jnp.int32), spent=jnp.array([spent, 7.0], jnp.float32))
        np.testing.assert_allclose(policy.allowed(state), [allowed, 1.0])

    def test_it_is_told_what_steps_cost(self, policy):
        state = policy.observe(policy.observe(policy.init(), 0.0, np.array([1.5, 0.2])), 0.0, np.array([2.0, 0.3]))
        np.testing.assert_allclose(state.spent, [3.5, 0.5])

    def test_its_plans_keep_to_it(self, policy, getkey):
        """Moving from 3 to 0 costs 3, and only 0.5 of the budget are left for the 5 steps until the end."""
        state = policy.init()._replace(step=jnp.array(15, jnp.int32), spent=jnp.array([7.5, 0.0], jnp.float32))
        action, _, metrics = policy.act(jnp.array([0.9]), state, getkey())
        assert metrics["violation"] <= 0
        assert abs(float(action[0])) <= 0.5

    def test_steps_beyond_the_end_of_the_episode_cost_nothing(self, policy, getkey):
        """With one step left and 0.5 to spend, the plan may spend them in that step."""
        state = policy.init()._replace(step=jnp.array(19, jnp.int32), spent=jnp.array([7.5, 0.0], jnp.float32))
        action, _, metrics = policy.act(jnp.array([0.9]), state, getkey())
        assert metrics["violation"] <= 0
        assert -0.5 <= float(action[0]) < -0.3


def test_without_summed_costs_there_is_nothing_to_remember():
    policy = RecedingHorizon(PLANNER, problem(0.0), 20)
    state = policy.init()
    assert state.spent is None
    assert policy.observe(state, 1.0, np.array([5.0])) is state
    np.testing.assert_array_equal(policy.allowed(state), [1.0])


def test_acting_counts_steps_and_information(getkey):
    policy = RecedingHorizon(PLANNER, problem(4.0), 20)
    assert isinstance(policy, Policy)
    state = policy.init()
    assert (state.step, float(state.gathered), bool(state.memory.warm)) == (0, 0.0, False)
    action, after, metrics = policy.act(jnp.array([0.0]), state, getkey())
    assert after.step == 1
    np.testing.assert_allclose(after.gathered, np.abs(action[0]))
    assert after.memory.warm
    assert metrics.keys() == {"violation", "evaluated"}


def test_what_it_says_of_a_decision_is_the_violation_of_its_plan(getkey):
    """From 3 nothing stays left of 1: fleeing at full speed is at 2 after the first step."""
    _, _, metrics = RecedingHorizon(PLANNER, problem(0.0), 20).act(jnp.array([3.0]), policy_state(), getkey())
    np.testing.assert_allclose(metrics["violation"], 1.0, atol=0.05)
    assert 0 < metrics["evaluated"] <= 1


def policy_state():
    return PolicyState(PLANNER.init(1), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32))


def solution(information):
    policy = RecedingHorizon(PLANNER, problem(8.0), 20)
    evaluation = Evaluation(jnp.array(0.0), jnp.array(0.0), jnp.array(information))
    return Solution(policy, evaluation, demand=2.0)


@pytest.mark.parametrize(("information", "explores"), [(2.0, True), (1.91, True), (1.89, False)])
def test_exploration_is_infeasible_beyond_the_tolerance(information, explores):
    assert solution(information).explores(tolerance=0.05) is explores


def test_what_cannot_be_gathered_before_the_end_is_not_promised(getkey):
    """Two steps are left of an episode of 20; a plan of 5 steps can gather at most 2 nats in them."""
    policy = RecedingHorizon(PLANNER, problem(8.0), 20)
    plan, _ = policy.plan(jnp.array([0.0]), policy_state()._replace(step=18), getkey())
    assert 1.5 < plan.evaluation.information <= 2.0


def test_solving_starts_the_policy_from_the_plan_found(getkey):
    """It is planned from the first of the initial states; nothing but the plan is remembered."""
    solver = ReplanningSolver(PLANNER, 20)
    assert isinstance(solver, Solver)
    key = getkey()
    assert solver.init(key) == ()
    found, state = solver.solve(problem(8.0), (), key)
    assert state == ()
    start = found.policy.init()
    bare = RecedingHorizon(PLANNER, problem(8.0), 20)
    plan, _ = bare.plan(jnp.array([0.5]), bare.init(), key)
    np.testing.assert_array_equal(start.memory.mean, plan.actions)
    assert np.any(start.memory.mean != 0)
    assert not start.memory.warm
    assert (start.step, float(start.gathered)) == (0, 0.0)
    assert found.demand == 2.0
    assert found.evaluation.information >= 1.9


def test_a_controller_of_it_keeps_memory_and_information_through_an_episode(getkey):
    """Actions are those of acting by hand with the state passed on, and they repeat after a reset."""
    solution, _ = ReplanningSolver(PLANNER, 20).solve(problem(8.0), (), getkey())
    controller = Controller(solution.policy, seed=5)
    observations = [np.array([0.5]), np.array([0.2]), np.array([-0.1])]
    actions = [controller(x) for x in observations]
    key, state = jax.random.key(5), solution.policy.init()
    for x, action in zip(observations, actions, strict=True):
        key, now = jax.random.split(key)
        expected, state, _ = solution.policy.act(jnp.asarray(x), state, now)
        np.testing.assert_array_equal(action, expected)
    controller.reset()
    np.testing.assert_array_equal([controller(x) for x in observations], actions)


class TestSettings:
    """What a run may choose."""

    def test_the_planner_is_that_of_the_settings(self):
        task = make_task("pendulum")
        settings = ICEMSettings(horizon=7, candidates=40, elites=10, iterations=2, cost_penalty=3.0, slack=0.2)
        solver = settings.create(task)
        assert solver.episode_steps == task.horizon
        planner = solver.planner
        assert (planner.horizon, planner.candidates, planner.elites, planner.iterations) == (7, 40, 10, 2)
        assert (planner.low, planner.high) == (task.action_low, task.action_high)
        assert planner.penalties == Penalties(3.0, 10.0, 0.2)

    def test_more_gradient_elites_than_are_kept_are_refused(self):
        settings = ICEMSettings(elites=10, candidates=40, keep=0.3, gradient_elites=4)
        with pytest.raises(UserError, match=r"^gradient_elites=4 are more than the 3 elites that are kept; use fewer"):
            settings.create(make_task("pendulum"))

    def test_too_few_candidates_are_refused(self):
        with pytest.raises(UserError, match=r"^candidates=12 is less than twice elites=10"):
            ICEMSettings(candidates=12, elites=10)
