"""From what was played to its line: costs, budgets, what was gathered, and what solver and policy said."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import toys

from sbsrl.costs import Cost
from sbsrl.learner import Learner, context_of
from sbsrl.ledger import Judgement, gathered, make_interruption, make_record
from sbsrl.problem import Evaluation
from sbsrl.solve.protocol import Solution
from sbsrl.specification import Specification
from sbsrl.systems.episode import Played
from sbsrl.transitions import Episode


@pytest.fixture
def experiment(monkeypatch):
    toys.register(monkeypatch.setitem)
    return Specification.make("cart", "sbsrl", 0, "cpu", {}).experiment()


@pytest.fixture
def judgement(experiment):
    """A solution that is 0.5 beyond its bound on a sample and says something."""
    context = replace(context_of(experiment, Learner.create(experiment, 0)), exploring=True)
    evaluation = Evaluation(jnp.float32(1.0), jnp.float32(0.5), jnp.float32(0.75))
    solution = Solution(toys.Pushes(jnp.zeros((12, 1))), evaluation, 1.0, {"loss": jnp.float32(0.25)})
    return Judgement("explore", experiment.method.problem(context), solution, None, 2.0)


def episode(costs, ended="terminated", reason=""):
    costs = np.array(costs, float).reshape(-1, 2)
    steps = len(costs)
    return Episode(np.ones((steps + 1, 2)), np.zeros((steps, 1)), np.arange(1.0 * steps), costs, ended, reason)


def line(experiment, judgement, episode, **metrics):
    return make_record(experiment.task, 6, Played(episode, metrics), judgement)


def test_a_line_has_what_was_played(experiment, judgement):
    record = line(experiment, judgement, episode([(0.1, 1.0), (0.4, 1.0), (0.2, 0.5)]))
    assert (record.episode, record.phase, record.exploring) == (6, "explore", True)
    assert (record.steps, record.ended, record.reason) == (3, "terminated", "")
    assert (record.reward, record.seconds, record.samples) == (3.0, 2.0, 4)


@pytest.mark.parametrize(
    ("costs", "cost", "budget", "violation"),
    [
        ([(0.1, 1.0), (0.4, 1.0)], 0.4, 0.5, 0.0),  # 0.1 below its budget, the other one 2
        ([(0.1, 2.0), (0.1, 1.75)], 3.75, 4.0, 0.0),  # 0.25 below, the other one 0.4
        ([(0.75, 2.0), (0.1, 1.75)], 0.75, 0.5, 0.25),
        ([(0.75, 3.0), (0.1, 3.0)], 6.0, 4.0, 2.0),
    ],
)
def test_of_several_costs_the_one_counts_that_is_worst(experiment, judgement, costs, cost, budget, violation):
    """Aggregated as each of them says: the largest speed, the sum of all effort; both are in the metrics."""
    record = line(experiment, judgement, episode(costs))
    assert (record.cost, record.budget) == (pytest.approx(cost, abs=1e-12), budget)
    assert record.violation == pytest.approx(violation, abs=1e-12)
    assert record.safe == (violation == 0)
    assert record.metrics["cost/speed"] == pytest.approx(max(c for c, _ in costs))
    assert record.metrics["cost/effort"] == pytest.approx(sum(c for _, c in costs))


def test_a_single_cost_is_told_once(experiment, judgement):
    task = replace(experiment.task, costs=experiment.task.costs[:1])
    played = episode([(0.1, 1.0)])
    record = make_record(task, 0, Played(played._replace(costs=played.costs[:, :1]), {}), judgement)
    assert record.cost == 0.1
    assert not [name for name in record.metrics if name.startswith("cost/")]


def test_what_the_policy_said_is_averaged_over_its_steps(experiment, judgement):
    record = line(experiment, judgement, episode([(0.1, 1.0)] * 3), speed=[1.0, 2.0, 6.0], rare=[4.0], never=[])
    assert record.metrics["speed"] == 3.0
    assert record.metrics["rare"] == 4.0
    assert "never" not in record.metrics
    assert record.metrics["loss"] == 0.25
    assert record.metrics["planned_information"] == 0.75


def test_plans_are_counted_where_the_policy_makes_them(experiment, judgement):
    played = episode([(0.1, 1.0)] * 4)
    record = line(experiment, judgement, played, violation=[0.0, 0.25, 0.0, 1.5])
    assert (record.infeasible_plans, record.worst_plan, record.feasible) == (2, 1.5, False)
    assert "violation" not in record.metrics
    safe = line(experiment, judgement, played, violation=[0.0] * 4)
    assert (safe.infeasible_plans, safe.worst_plan, safe.feasible) == (0, 0.0, True)


def test_a_policy_that_says_nothing_has_the_violation_of_its_solution(experiment, judgement):
    record = line(experiment, judgement, episode([(0.1, 1.0)]))
    assert (record.infeasible_plans, record.worst_plan, record.feasible) == (1, 0.5, False)


def test_the_prior_policy_neither_follows_a_plan_nor_explores(experiment, judgement):
    record = line(experiment, judgement._replace(phase="prior", solution=None), episode([(0.1, 1.0)]), effort=[0.5])
    assert not record.feasible
    assert not record.exploring
    assert record.metrics == {"effort": 0.5, "cost/speed": 0.1, "cost/effort": 1.0}


def test_a_warning_and_a_reason_are_written_down(experiment, judgement):
    doubted = judgement._replace(calibration_warning="no common point")
    record = line(experiment, doubted, episode([(0.1, 1.0)], "fault", "a cable"))
    assert (record.calibration_warning, record.ended, record.reason) == ("no common point", "fault", "a cable")


def test_what_was_not_played_costs_nothing(experiment, judgement):
    nothing = episode([], "fault")
    record = line(experiment, judgement, nothing)
    assert (record.steps, record.cost, record.reward, record.uncertainty, record.safe) == (0, 0.0, 0.0, 0.0, True)
    assert np.isfinite([record.metrics["cost/speed"], record.metrics["cost/effort"]]).all()


def test_costs_without_a_lower_limit_are_finite_where_nothing_was_played(experiment, judgement):
    """Else the ledger would not be JSON."""
    free = tuple(Cost(c.name, c.budget, c.aggregation, (-np.inf, np.inf)) for c in experiment.task.costs)
    record = line(replace_task(experiment, costs=free), judgement, episode([], "fault"))
    assert (record.cost, record.safe) == (0.0, True)


def test_what_was_not_played_violates_no_budget_not_even_a_negative_one(experiment, judgement):
    costs = (Cost("debt", -2.0, "sum", (-1.0, 0.0)), Cost("depth", -3.0, "statewise", (-9.0, 0.0)))
    record = line(replace_task(experiment, costs=costs), judgement, episode([], "fault"))
    assert (record.violation, record.safe) == (0.0, True)


def replace_task(experiment, **changes):
    return replace(experiment, task=replace(experiment.task, **changes))


def test_information_is_of_the_inputs_that_were_visited(getkey):
    """Whatever the padding of short episodes adds; to 1e-6."""
    played = Episode(
        np.arange(8.0).reshape(4, 2), np.array([[1.0], [2.0], [3.0]]), np.zeros(3), np.zeros((3, 1)), "truncated"
    )
    found = gathered(lambda x, a: x[0] + 10 * a[0], played, horizon=12)
    assert found == pytest.approx((0 + 2 + 4) + 10 * (1 + 2 + 3), rel=1e-6)
    assert gathered(lambda x, a: x[0] + 10 * a[0], played, horizon=2) == pytest.approx(66, rel=1e-6)


def test_what_the_user_stopped_is_judged_as_an_episode_is(experiment, judgement):
    cut = episode([(0.1, 1.0), (0.75, 1.0)], "interrupted")
    stopped, whole = make_interruption(experiment.task.costs, 6, cut), line(experiment, judgement, cut)
    assert (stopped.episode, stopped.steps, stopped.reward) == (6, 2, whole.reward)
    assert stopped[3:7] == (whole.cost, whole.budget, whole.violation, whole.safe) == (0.75, 0.5, 0.25, False)
