"""The risk dial: what is tried, what passes, what happens to what does not."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.choice import Refused, choose
from sbsrl.learner import Learner, changed, context_of
from sbsrl.policy import Policy
from sbsrl.prior import Prior
from sbsrl.risk import ATTEMPTS, Dial, Verdict, dial_of, tightened, tried
from sbsrl.solve.protocol import Solver, Trying
from sbsrl.specification import Specification, make_experiment
from sbsrl.theory.binomial import upper_bound

SMALL = {
    "episodes": 1,
    "icem.candidates": 32,
    "icem.elites": 4,
    "icem.iterations": 2,
    "gp.features": 32,
    "exploration_threshold": 0.0,
}


@pytest.fixture(scope="module")
def pendulum():
    """With little work: half of all first episodes may violate."""
    return started("pendulum", {**SMALL, "risk": 0.5, "confidence": 0.9})


def started(task, changes, method="sbsrl"):
    return Specification.make(task, method, 0, "cpu", changes).start()


class TestDial:
    def test_none_where_no_risk_was_chosen(self):
        assert dial_of(Specification.make("pendulum", "sbsrl", 0, "cpu", {}).settings) is None

    def test_the_confidence_is_shared_by_all_tests_that_there_can_be(self):
        """Of 4 episodes and the final policy, each with and without exploration."""
        settings = Specification.make("pendulum", "sbsrl", 0, "cpu", {"risk": 0.05, "episodes": 4}).settings
        dial = dial_of(settings)
        assert dial.alpha == pytest.approx(0.05 / (5 * 2 * ATTEMPTS))
        assert upper_bound(dial.admitted, dial.draws, dial.alpha) <= 0.05

    def test_planning_samples_follow_from_the_risk_and_are_never_fewer_than_asked_for(self):
        samples = [
            Specification.make("pendulum", "sbsrl", 0, "cpu", changes).settings.method.samples
            for changes in ({}, {"risk": 0.5}, {"risk": 0.05}, {"risk": 0.01, "samples": 500})
        ]
        assert samples == [30, 30, 60, 500]


class TestVerdict:
    dial = Dial(0.1, 0.01, 200, 9)

    @pytest.mark.parametrize(("draws", "violations", "passed"), [(200, 9, True), (200, 10, False), (100, 0, False)])
    def test_passes_with_all_draws_and_no_more_violations_than_admitted(self, draws, violations, passed):
        assert Verdict(self.dial, draws, violations, np.zeros(1)).passed is passed

    def test_says_what_was_shown(self):
        metrics = Verdict(self.dial, 200, 4, np.zeros(1)).metrics(2, (0.1, 0.4))
        assert metrics["risk/bound"] == upper_bound(4, 200, 0.01)
        assert (metrics["risk/attempts"], metrics["risk/tightening"], metrics["risk/draws"]) == (2, 0.4, 200)


class Spinning:
    """Always accelerates: it violates on every function."""

    def init(self):
        return ()

    def act(self, x, state, key):
        return jnp.where(x[2:] >= 0, 1.0, -1.0), state, {}


class Braking(Spinning):
    """Violates on none."""

    def act(self, x, state, key):
        return jnp.clip(-x[2:], -1.0, 1.0), state, {}


def try_policy(pendulum, policy, seed=0, dial=None):
    experiment, learner = pendulum
    context = context_of(experiment, learner)
    problem = experiment.method.problem(context)
    return tried(experiment, context, problem, policy, dial or dial_of(experiment.settings), jax.random.key(seed))


class TestTried:
    def test_a_policy_that_violates_everywhere_fails_and_one_that_brakes_passes(self, pendulum):
        assert not try_policy(pendulum, Spinning()).passed
        good = try_policy(pendulum, Braking())
        assert good.passed
        assert good.violations == 0
        assert good.excess == 0

    def test_the_excess_is_what_the_cost_exceeds_the_budget_by(self, pendulum):
        """Of the worst eighth of the functions, at a risk of one half."""
        verdict = try_policy(pendulum, Spinning())
        assert 0 < verdict.excess[0] < 6

    def test_the_same_key_gives_the_same_verdict_and_another_one_other_draws(self, pendulum):
        dial = Dial(0.01, 0.01, 200, 0)
        first, again, other = (try_policy(pendulum, Braking(), seed, dial) for seed in (0, 0, 1))
        assert first.violations == again.violations
        np.testing.assert_array_equal(first.excess, again.excess)
        assert other.draws == 200

    def test_it_stops_as_soon_as_too_many_violate(self, pendulum):
        verdict = try_policy(pendulum, Spinning(), dial=Dial(0.001, 0.01, 5000, 0))
        assert verdict.draws == 1024
        assert not verdict.passed

    def test_solvers_that_decide_before_the_episode_can_be_tried(self, pendulum):
        assert isinstance(pendulum[0].solver, Trying)
        assert isinstance(pendulum[0].solver, Solver)
        assert isinstance(Spinning(), Policy)


class TestTightened:
    def test_by_the_excess_but_at_most_half_the_way_to_the_impossible(self, pendulum):
        context = context_of(*pendulum)
        assert tightened(context, np.array([0.5])).settings.method.tightening == (0.6,)
        assert tightened(context, np.array([np.inf])).settings.method.tightening == ((0.1 + 6) / 2,)


class Stubborn:
    """A solver whose policies are given, one after the other; it keeps the problems that it was asked."""

    def __init__(self, like, solution, policies):
        self.like, self.solution, self.policies, self.asked = like, solution, list(policies), []

    def init(self, key):
        return self.like.init(key)

    def solve(self, problem, state, key):
        self.asked.append(problem)
        return self.solution._replace(policy=self.policies[min(len(self.asked), len(self.policies)) - 1]), state

    def costs(self, problem, policy, noise, key):
        return self.like.costs(problem, policy, noise, key)


@pytest.fixture(scope="module")
def solution(pendulum):
    """What the real solver finds."""
    experiment, learner = pendulum
    return choose(experiment, learner, context_of(experiment, learner))


def chosen_by(pendulum, solution, policies, **task):
    experiment, learner = pendulum
    solver = Stubborn(experiment.solver, solution.solution, policies)
    other = replace(experiment, solver=solver, task=replace(experiment.task, **task))
    return choose(other, learner, context_of(other, learner)), solver


class TestChoosing:
    def test_what_fails_is_not_played_and_the_next_is_found_with_a_tighter_budget(self, pendulum, solution):
        chosen, solver = chosen_by(pendulum, solution, [Spinning(), Spinning(), Braking()])
        assert isinstance(chosen.policy, Braking)
        assert chosen.solution.metrics["risk/attempts"] == 3
        bounds = [float(problem.bounds[0]) for problem in solver.asked]
        assert bounds[0] > bounds[1] > bounds[2]

    def test_if_nothing_passes_the_episode_is_refused(self, pendulum, solution):
        with pytest.raises(Refused, match=f"of {ATTEMPTS} policies none passed"):
            chosen_by(pendulum, solution, [Spinning()])

    def test_or_the_prior_policy_is_played_of_which_nothing_is_promised(self, pendulum, solution):
        gp = pendulum[0].task.prior.gp
        prior = Prior("with a policy", informative=True, gp=gp, policy=Braking())
        chosen, _ = chosen_by(pendulum, solution, [Spinning()], prior=prior)
        assert chosen.policy is prior.policy
        assert chosen.phase == "prior"
        assert chosen.solution is None

    def test_where_exploring_is_too_dangerous_there_is_no_exploring(self, pendulum, solution):
        experiment, learner = pendulum
        solver = Stubborn(experiment.solver, solution.solution, [Spinning()])
        other = replace(experiment, solver=solver)
        context = replace(context_of(other, learner), exploring=True)
        chosen = choose(other, learner, context)
        assert chosen.refused
        assert not chosen.explores(0.05)


@pytest.mark.parametrize(
    ("changes", "method", "complaint"),
    [
        ({"risk": 0.1}, "unsafe", "does not keep it on every sample"),
        ({"risk": 0.1, "gradient_elites": 1}, "sbsrl", "without feedback"),
        ({"risk": 0.6}, "sbsrl", "between 0 and 0.5"),
        ({"risk": -0.1}, "sbsrl", "between 0 and 0.5"),
        ({"risk": 0.1, "confidence": 1.0}, "sbsrl", "confidence"),
    ],
)
def test_what_means_nothing_is_refused(changes, method, complaint):
    with pytest.raises(UserError, match=complaint):
        started("pendulum", changes, method)


def test_networks_have_no_posterior_to_draw_from():
    with pytest.raises(UserError, match="use belief=gp"):
        started("rwrl-cartpole", {"risk": 0.1})


@pytest.fixture(scope="module")
def ledge():
    return started("ledge", {"risk": 0.05, "samples": 60, "episodes": 2})


class TestOnTheLedge:
    """The policies of a class: their expected cost is what is counted."""

    def test_the_whole_class_is_searched_and_the_policy_passes(self, ledge):
        experiment, learner = ledge
        chosen = choose(experiment, learner, context_of(experiment, learner))
        assert chosen.verdict.passed
        assert chosen.solution.metrics["risk/bound"] <= 0.05

    def test_costs_are_those_on_functions_that_were_not_planned_with(self, ledge):
        """The largest expected cost on fresh functions is not that on the samples, and near it."""
        experiment, learner = ledge
        chosen = choose(experiment, learner, context_of(experiment, learner))
        fresh = replace(chosen.problem, samples=learner.belief.draws(jax.random.key(3), 60))
        noise, key = learner.belief.noise(), jax.random.key(0)
        costs = experiment.solver.costs(fresh, chosen.policy, noise, key)
        planned = experiment.solver.costs(chosen.problem, chosen.policy, noise, key)
        assert costs.shape == planned.shape == (60, 1)
        assert not np.allclose(np.sort(costs[:, 0]), np.sort(planned[:, 0]))


def test_a_learner_keeps_its_shapes_over_attempts(pendulum, solution):
    """As resuming needs."""
    _, learner = pendulum
    after = changed(learner, solver=solution.memory)
    shapes = [jax.tree.map(jnp.shape, each.solver) for each in (learner, after)]
    assert json.dumps(shapes) == json.dumps([shapes[0]] * 2)
    assert isinstance(after, Learner)


def test_a_task_with_a_risk_can_be_made_of_the_same_settings_again():
    """What config.json has is read again as it was."""
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", {"risk": 0.05})
    plain = spec.settings.plain()
    again = Specification.make("pendulum", "sbsrl", 0, "cpu", {f"method.{k}": v for k, v in plain["method"].items()})
    assert again.settings == spec.settings
    assert make_experiment(spec.make_task(), "sbsrl", again.settings).settings.method.samples == 60
