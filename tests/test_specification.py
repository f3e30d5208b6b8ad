"""From names to parts that fit, and the ledge learned with each of its solvers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError, learn, make_task
from sbsrl.belief.checks import MOST_POINTS
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.weights import WeightBelief
from sbsrl.costs import Cost
from sbsrl.learner import Learner, context_of
from sbsrl.settings import MethodSettings, make_settings
from sbsrl.solve.expectation import Quadrature
from sbsrl.solve.policy_search import EvolutionSearch, ExactSearch
from sbsrl.solve.receding import ReplanningSolver
from sbsrl.solve.slsqp import SequentialSearch
from sbsrl.specification import Specification, make_experiment, resolve

FEW = {"prior": "motor", "episodes": 2, "samples": 30}
EVOLUTION = {"solver": "evolution", "candidates": 32, "elites": 4, "iterations": 2}


def spec(task, method="sbsrl", **settings):
    return Specification.make(task, method, 0, "cpu", settings)


@pytest.mark.parametrize(
    ("task", "solver", "kind"),
    [
        ("pendulum", "icem", ReplanningSolver),
        ("ledge", "exact", ExactSearch),
        ("ledge", "slsqp", SequentialSearch),
        ("ledge", "evolution", EvolutionSearch),
    ],
)
def test_a_solver_is_chosen_by_its_name(task, solver, kind):
    chosen = spec(task, solver=solver, episodes=2).start()[0].solver
    assert isinstance(chosen, kind)
    if task == "ledge":
        assert isinstance(chosen.expectation, Quadrature)


def test_evolution_has_the_settings_of_the_run():
    planner = spec("ledge", **EVOLUTION).start()[0].solver.planner
    assert (planner.candidates, planner.elites, planner.iterations, planner.horizon) == (32, 4, 2, 1)
    assert (planner.low, planner.high) == ((-1.0, -1.0), (1.5, 1.0))


@pytest.mark.parametrize(
    ("task", "settings", "kind"),
    [
        ("ledge", {}, WeightBelief),
        ("ledge", {"sampler": "particles"}, GPBelief),
        ("ledge", {"sampler": "pathwise", "fitted": True}, GPBelief),
        ("pendulum", {}, GPBelief),
    ],
)
def test_beliefs_are_of_weights_where_that_is_possible(task, settings, kind):
    assert isinstance(spec(task, episodes=2, **settings).start()[1].belief, kind)


def test_only_a_belief_that_remembers_points_limits_their_number():
    episodes = MOST_POINTS // 3 + 1
    assert isinstance(spec("ledge", episodes=episodes).start()[1].belief, WeightBelief)
    with pytest.raises(UserError, match=rf"^episodes={episodes} would give .* use at most {MOST_POINTS // 3} episodes"):
        spec("ledge", episodes=episodes, sampler="particles").start()


def test_the_number_of_points_includes_offline_data():
    """100 recorded transitions of cartpole, 50 steps an episode: (10000 - 100) / 50."""
    with pytest.raises(UserError, match=r"^episodes=199 would give .* 10050 points, .* use at most 198 episodes"):
        spec("cartpole", episodes=199).start()


@pytest.mark.parametrize(
    ("task", "settings", "said"),
    [
        ("pendulum", {"solver": "exact"}, r"^pendulum has no class of policies to search; use solver=icem"),
        ("pendulum", {"solver": "slsqp"}, r"^pendulum has no class of policies"),
        ("pendulum", {"solver": "evolution"}, r"^pendulum has no class of policies"),
        ("ledge", {"solver": "exat"}, r"^there is no solver 'exat'; did you mean 'exact'\?$"),
        ("ledge", {"tightening": 1.7}, r"^no policy can meet the tightened budget 1\.6 - 1\.7"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(task, settings, said):
    with pytest.raises(UserError, match=said) as refused:
        learn(task, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("prior", ["simulator", "none"])
def test_a_threshold_above_all_that_an_episode_can_teach_is_refused(prior):
    """Three outputs, 50 steps of at most ln(1 + 1 / sigma_w^2) nats each."""
    noise = make_task("pendulum", prior).prior.gp.noise
    most = float(50 * 3 * np.log1p(1 / noise**2))
    spec("pendulum", prior=prior, exploration_threshold=0.999 * most).experiment()
    with pytest.raises(UserError, match=rf"^no episode can meet exploration_threshold=.*at most {most:.4g}") as refused:
        spec("pendulum", prior=prior, exploration_threshold=1.001 * most).experiment()
    assert "\n" not in str(refused.value)


def test_that_threshold_is_in_the_units_of_the_uncertainty():
    """As a deviation, a step teaches at most the length of the scale."""
    most = float(50 * np.linalg.norm(make_task("pendulum").prior.gp.scale))
    spec("pendulum", uncertainty="deviation", exploration_threshold=0.999 * most).experiment()
    with pytest.raises(UserError, match=f"at most {most:.4g}, even where nothing is known"):
        spec("pendulum", uncertainty="deviation", exploration_threshold=1.001 * most).experiment()


@pytest.mark.parametrize("method", ["greedy", "actsafe", "unsafe", "oracle"])
def test_who_does_not_use_the_threshold_may_have_any(method):
    spec("pendulum", method, exploration_threshold=1e6).experiment()


def test_actsafe_must_be_given_the_time_to_exploit_what_it_explored():
    spec("pendulum", "actsafe", episodes=5, actsafe_episodes=5).experiment()
    with pytest.raises(UserError, match=r"^actsafe would explore for 5 episodes and the run has 4; use at least 5"):
        spec("pendulum", "actsafe", episodes=4, actsafe_episodes=5).experiment()


def test_the_planner_has_the_patience_and_the_slack_of_the_run():
    solver = spec("pendulum", patience=7, slack=0.3).experiment().solver
    assert solver.planner.patience == 7
    assert solver.planner.penalties.slack == 0.3


def final_solution(result):
    """What the solver says of the policy that is returned."""
    context = context_of(result.experiment, result.learner, final=True)
    problem = result.experiment.method.problem(context)
    solution, _ = result.experiment.solver.solve(problem, result.learner.solver, jax.random.key(0))
    return problem, solution


@pytest.mark.parametrize("solver", [{"solver": "exact"}, {"solver": "slsqp"}, EVOLUTION], ids=lambda s: s["solver"])
def test_the_ledge_is_learned_with_every_solver(solver):
    """Two episodes that explore and a final one, all policies safe on all samples; the policy is of the class."""
    result = learn("ledge", **FEW, **solver)
    assert [(r.episode, r.phase) for r in result.records] == [(0, "explore"), (1, "explore"), (2, "final")]
    assert all(r.feasible and r.samples == 30 and r.worst_plan == 0 for r in result.records)
    assert all(r.calibration_warning is None for r in result.records)
    if solver["solver"] != "slsqp":  # which looks at every sample
        assert all(0 < r.metrics["evaluated"] <= 1 for r in result.records)
    assert all(0 <= r.cost <= 3 and 0 <= r.reward <= 3 for r in result.records)
    _, solution = final_solution(result)
    policies, theta = result.experiment.task.policies, np.asarray(result.policy.policy.theta, float)
    assert np.all((theta >= policies.low) & (theta <= policies.high))
    assert solution.evaluation.violation == 0
    assert int(result.learner.belief.groups[0].now) == 2


def test_when_no_policy_sees_enough_the_greedy_one_is_returned_at_once():
    """An accuracy that asks for more than there is to see."""
    records = learn("ledge", solver="exact", **FEW, accuracy=1e4).records
    assert [(r.episode, r.phase) for r in records] == [(0, "final")]


def test_without_safety_more_is_earned_on_the_nominal_dynamics():
    (problem, free), (_, safe) = (final_solution(learn("ledge", method, **FEW)) for method in ("unsafe", "sbsrl"))
    assert free.evaluation.violation == 0
    assert float(free.evaluation.value) > float(safe.evaluation.value) + 0.1
    assert problem.samples is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pendulm", "sbsrl", 0, "cpu"), "^there is no task 'pendulm'; did you mean 'pendulum'"),
        (("pendulum", "sbrsl", 0, "cpu"), "^there is no method 'sbrsl'; did you mean 'sbsrl'"),
        (("pendulum", "sbsrl", 0, "smok"), "^there is no preset 'smok'; did you mean 'smoke'"),
        (("pendulum", "sbsrl", -1, "cpu"), "^seed=-1 is out of range; it must be between 0 and 4294967295"),
        (("pendulum", "sbsrl", 2**32, "cpu"), "^seed=4294967296 is out of range"),
        (("", "sbsrl", 0, "cpu"), "^task wants a word and got ''"),
    ],
)
def test_names_and_seeds_that_do_not_exist_are_refused(arguments, said):
    with pytest.raises(UserError, match=said):
        Specification.make(*arguments, {})


@pytest.mark.parametrize(
    ("budget", "said"),
    [((1.0, 2.0), "^pendulum has 1 cost, and 2 budgets were given"), (-1.0, "^no policy can meet budget=-1")],
)
def test_a_budget_must_fit_the_costs(budget, said):
    with pytest.raises(UserError, match=said):
        spec("pendulum", budget=budget).make_task()


def test_a_tightening_must_fit_the_costs():
    with pytest.raises(UserError, match=r"^tightening has 2 numbers for 1 costs; give one for all, or one per cost\.$"):
        spec("pendulum", tightening=(0.1, 0.2)).experiment()


def test_the_cost_that_the_tightening_eats_up_is_found_among_several():
    """The second of two: the tightening of the second counts for it, or the only one there is."""
    task, settings = resolve("pendulum", changes={"tightening": (0.1, 0.5)})
    low = Cost("effort", 0.4, "statewise", (0.0, 1.0))
    task = dataclasses.replace(task, costs=task.costs, signals=None, equations=None)
    with pytest.raises(UserError, match=r"^no policy can meet the tightened budget 0\.4 - 0\.5"):
        make_experiment(dataclasses.replace(task, costs=(*task.costs, low)), "sbsrl", settings)
    make_experiment(dataclasses.replace(task, costs=(low, *task.costs)), "sbsrl", settings)


def test_the_same_task_is_the_same_object():
    """Programs that were compiled for it serve again."""
    assert spec("pendulum").make_task() is spec("pendulum", samples=3).make_task()
    assert spec("pendulum").make_task() is not spec("pendulum", budget=5.0).make_task()


@pytest.mark.parametrize("lacks", ["gp", "signals"])
def test_a_gaussian_process_says_what_it_needs_of_a_task(lacks):
    task, settings = resolve("pendulum")
    if lacks == "gp":
        task = dataclasses.replace(task, prior=dataclasses.replace(task.prior, gp=None))
    else:
        task = dataclasses.replace(task, signals=None)
    with pytest.raises(UserError, match=r"^belief=gp needs") as refused:
        Learner.create(make_experiment(task, "greedy", settings), 0)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "start",
    [lambda key: jnp.zeros(2), lambda key: jnp.array([jnp.nan, 0.0, 0.0]), lambda key: np.zeros(3) + float(key)],
)
def test_a_task_must_draw_initial_states_before_anything_is_played(start):
    task, settings = resolve("pendulum")
    with pytest.raises(UserError, match=r"^the start of pendulum"):
        make_experiment(dataclasses.replace(task, start=start), "sbsrl", settings)


def test_a_start_that_is_called_fixed_is_the_one_that_is_drawn():
    task, settings = resolve("pendulum")
    with pytest.raises(UserError, match=r"are said to begin at \[1.0, 0.0, 0.0\], and start draws \[-1.0, 0.0, 0.0\]"):
        make_experiment(dataclasses.replace(task, fixed_start=(1.0, 0.0, 0.0)), "sbsrl", settings)


def test_the_names_of_presets_mean_something():
    """A layer may speak of a part that is not chosen, but not of what nothing has."""
    assert resolve("pendulum", preset="paper")[1].solver.candidates == 1000
    assert resolve("ledge", preset="paper")[1].solver.name == "exact"
    with pytest.raises(UserError, match=r"a preset has a setting .icem\.candidats., which nothing has"):
        make_settings(MethodSettings, ({"icem.candidats": 5},), {})


def test_a_preset_of_one_solver_does_not_change_another():
    changes = {"solver": "evolution"}
    _, paper = resolve("ledge", preset="paper", changes=changes)
    assert paper.solver == resolve("ledge", changes=changes)[1].solver
    assert resolve("ledge", preset="smoke", changes=changes)[1].solver.candidates == 124
