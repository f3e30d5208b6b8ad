"""A task, its costs, limits and prior are checked when they are made: one sentence for what does not fit."""

import math
import subprocess
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError, make_task
from sbsrl.costs import Cost, aggregate, violation
from sbsrl.model import Signals
from sbsrl.prior import Prior
from sbsrl.structure import CostStructure
from sbsrl.task import Limits
from sbsrl.tasks import TASKS, pendulum
from sbsrl.transitions import Episode


def test_aggregation_sums_or_takes_the_worst_step():
    costs = jnp.array([1.0, 3.0, 2.0])
    assert aggregate(costs, "sum") == 6
    assert aggregate(costs, "statewise") == 3


@pytest.mark.parametrize(("cost", "expected"), [(5.0, 0.0), (6.0, 0.0), (6.5, 0.5)])
def test_violation_is_the_excess_over_the_budget(cost, expected):
    assert violation(cost, 6.0) == expected


def test_the_least_cost_of_an_episode_is_that_of_all_its_steps_or_of_one():
    assert Cost("effort", 9.0, "sum", (0.5, 2.0)).least(horizon=4) == 2.0
    assert Cost("speed", 9.0, "statewise", (0.5, 2.0)).least(horizon=4) == 0.5


def episode(ended="horizon", steps=3):
    states = np.arange(2.0 * steps + 2).reshape(steps + 1, 2)
    return Episode(states, np.zeros((steps, 1)), np.arange(1.0 * steps), np.ones((steps, 2)), ended)


def test_transitions_pair_each_state_with_its_successor():
    before, _, after, rewards, costs, terminated = episode().transitions
    assert np.array_equal(before, episode().states[:3])
    assert np.array_equal(after, episode().states[1:])
    assert np.array_equal(rewards, [0, 1, 2])
    assert costs.shape == (3, 2)
    assert not terminated.any()


@pytest.mark.parametrize("ended", ["terminated", "horizon", "truncated", "fault", "interrupted"])
def test_only_a_terminal_state_ends_what_can_be_earned(ended):
    """Of the last transition; where there is none nothing ended."""
    terminated = episode(ended).transitions.terminated
    assert terminated.tolist() == [False, False, ended == "terminated"]
    assert episode(ended, steps=0).transitions.terminated.shape == (0,)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_says_what_the_learner_may_know(name):
    task = make_task(name)
    entry = TASKS[name]
    assert task.name == name
    assert task.state_size == len(task.state_names)
    assert task.input_size == task.state_size + task.action_size
    assert task.safe_action is not None
    assert {"prior", "budget", "tightening", "exploration_threshold"} <= set(entry.presets()["cpu"])
    assert entry.own("prior") in entry.priors()
    assert task.costs[0].budget == entry.own("budget")


def test_the_middle_action_is_in_the_middle():
    task = replace(make_task("pendulum"), action_low=(-1.0, 0.0), action_high=(1.0, 4.0), limits=None, safe_action=None)
    np.testing.assert_array_equal(task.middle_action, [0.0, 2.0])


SPEED = make_task("pendulum").costs[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "the task's name wants a word and got ''."),
        ({"state_names": ()}, "the task's state_names wants one or more words and got ()."),
        ({"state_names": ("a", "", "c")}, "the task's state_names wants a word and got ''."),
        ({"horizon": 0}, "the task's horizon=0 is out of range; it must be between 1 and 1000000."),
        ({"action_low": (1.0,), "action_high": (-1.0,)}, "lie between 1 and -1: swap the limits."),
        ({"action_high": (-1.0,)}, "lie between -1 and -1: swap the limits."),
        ({"action_high": (1.0, 1.0)}, "pendulum has 1 lower and 2 upper limits of actions; give one of each"),
        ({"action_low": (math.nan,)}, "the task's action_low=nan is not a finite number."),
        ({"action_high": (math.inf,)}, "the task's action_high=inf is not a finite number."),
        ({"costs": ()}, "the task's costs wants one or more Costs and got ()."),
        ({"costs": (SPEED, SPEED)}, "two costs of pendulum have the same name; give each its own."),
        ({"costs": (replace(SPEED, budget=-0.5),)}, "no policy can meet budget=-0.5: the cost of pendulum,"),
        ({"safe_action": (2.0,)}, "the safe action [2.0] of pendulum is not within the limits of its actions."),
        ({"safe_action": (0.0, 0.0)}, "the safe action [0.0, 0.0] of pendulum is not within the limits"),
        ({"safe_action": (math.nan,)}, "the task's safe_action=nan is not a finite number."),
        (
            {"limits": Limits((1.0, 1.0, 8.0), (-1.0, 0.0))},
            "the limits of (x, a) of pendulum: 3 numbers were given, and 4",
        ),
        ({"state_names": ("a", "b")}, "the limits of (x, a) of pendulum: 4 numbers were given, and 3 are needed."),
        (
            {"equations": pendulum.EQUATIONS._replace(noise=(0.0,))},
            "the process noise of pendulum: 1 numbers were given, and 3 are needed.",
        ),
        (
            {"prior": Prior("p", informative=True, gp=replace(pendulum.SIMULATOR, scale=(1.0, 1.0)))},
            "the scale of the prior of pendulum: 2 numbers were given, and 3 are needed.",
        ),
    ],
)
def test_a_task_that_cannot_be_is_refused(changes, said):
    with pytest.raises(UserError) as refused:
        replace(make_task("pendulum"), **changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Cost("speed", math.nan), "cost 'speed': budget=nan is not a finite number."),
        (
            lambda: Cost("speed", 1.0, limits=(2.0, 1.0)),
            "the limits of cost 'speed' are (2.0, 1.0); give the lower one",
        ),
        (
            lambda: Cost("speed", 1.0, limits=(1.0, 1.0)),
            "the limits of cost 'speed' are (1.0, 1.0); give the lower one",
        ),
        (lambda: Cost("speed", 1.0, limits=(math.nan, 1.0)), "cost 'speed': limits=nan is not a finite number."),
        (lambda: Cost("", 1.0), "cost '': name wants a word and got ''."),
        (lambda: Limits((1.0, -2.0), (0.0, 1.0)), "the limits of inputs=-2 is out of range; it must be at least 0."),
        (lambda: Limits((1.0,), (1.0, 0.0)), "the limits of the reward are (1.0, 0.0); give the lower one"),
        (lambda: Limits((math.nan,), (0.0, 1.0)), "the limits of inputs=nan is not a finite number."),
        (lambda: Prior("", informative=True), "the prior's name wants a word and got ''."),
        (lambda: prior(scale=(0.1, 0.0, 0.1)), "the prior's scale must be positive, and [0.1, 0.0, 0.1] is not."),
        (lambda: prior(scale=(0.1, math.nan, 0.1)), "the prior's scale=nan is not a finite number."),
        (lambda: prior(noise=0.0), "the prior's noise must be positive, and [0.0] is not."),
        (lambda: prior(noise=-1.0), "the prior's noise=-1 is out of range"),
        (lambda: prior(noise=(0.1, 0.1)), "the prior has 2 noise for 3 outputs; give one for all, or one for each."),
        (lambda: prior(kernel=(pendulum.SIMULATOR.kernel,) * 2), "the prior has 2 kernels for 3 outputs"),
        (lambda: prior(kernel=()), "the prior's kernel must be a kernel, or one for each state, and got ()."),
        (lambda: prior(bound=math.nan), "the prior's bound=nan is not a finite number."),
        (lambda: prior(bound=-1.0), "the prior's bound=-1 is out of range; it must be at least 0."),
    ],
)
def test_costs_limits_and_priors_that_cannot_be_are_refused(make, said):
    with pytest.raises(UserError) as refused:
        make()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def prior(**changes):
    return replace(pendulum.SIMULATOR, **changes)


WITHOUT_TYPE_CHECKS = """
from dataclasses import replace
from sbsrl import UserError, make_task
from sbsrl.costs import Cost
from sbsrl.tasks import pendulum

task = make_task("pendulum")
for make in (
    lambda: Cost("speed", 1.0, "summ"),
    lambda: Cost("speed", "1.0"),
    lambda: replace(task, horizon="50"),
    lambda: replace(task, state_names="xyz"),
    lambda: replace(task, costs=("speed",)),
    lambda: replace(task, open="sbsrl/Pendulum-v0"),
    lambda: replace(pendulum.SIMULATOR, mean=0.0),
    lambda: replace(pendulum.SIMULATOR, kernel="rbf"),
    lambda: replace(pendulum.SIMULATOR, noise="small"),
):
    try:
        make()
    except UserError as error:
        print(error)
    else:
        print("accepted")
"""


def test_values_of_a_wrong_type_are_refused_where_types_are_not_checked():
    """As in a user's own program."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TYPE_CHECKS], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines() == [
        "there is no cost 'speed': aggregation 'summ'; did you mean 'sum'?",
        "cost 'speed': budget wants a number and got '1.0'.",
        "the task's horizon wants a whole number and got '50'.",
        "the task's state_names wants one or more words and got 'xyz'.",
        "the task's costs wants one or more Costs and got ('speed',).",
        "the task's open wants a function and got 'sbsrl/Pendulum-v0'.",
        "the prior's mean wants a function and got 0.0.",
        "the prior's kernel must be a kernel, or one for each state, and got 'rbf'.",
        "the prior's noise wants a number and got 'small'.",
    ]


def test_infinite_limits_are_allowed_where_nothing_bounds_a_state():
    assert Limits((1.0, math.inf), (-math.inf, 0.0)).inputs == (1.0, math.inf)
    assert Cost("speed", 1.0).limits == (0.0, math.inf)


def test_unknown_priors_are_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"^there is no prior of pendulum 'simulater'; did you mean 'simulator'\?$"):
        make_task("pendulum", "simulater")


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        (
            Signals(lambda x, a, y: x[0], lambda x, a, y: jnp.abs(y[:2])),
            r"its costs \(2,\); give a number, and an array",
        ),
        (Signals(lambda x, a, y: x[:1], lambda x, a, y: jnp.abs(y[:1])), r"has shape \(1,\)"),
        (Signals(lambda x, a, y: float(x[0]), lambda x, a, y: jnp.abs(y[:1])), "that JAX can trace"),
    ],
)
def test_known_signals_must_be_a_number_and_one_number_for_each_cost(signals, said):
    """JAX would silently take one cost for another."""
    with pytest.raises(UserError, match=said):
        replace(make_task("pendulum"), signals=signals)


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        (lambda: CostStructure((0, 4)), "to depend on input 4; of .x, a. there are 4, counted from 0"),
        (lambda: CostStructure(()), "name indices of .x, a., each once"),
        (lambda: CostStructure((1, 1)), "name indices of .x, a., each once"),
        (lambda: CostStructure((0,), lambda x: x[:2]), r"has shape \(2,\); give an array with one number for each"),
        (lambda: CostStructure((0,), lambda x: x[0]), r"has shape \(\); give an array with one number for each"),
        (lambda: CostStructure((0,), features=lambda z: z[0]), r"decide the costs .* have shape \(\); give an array"),
    ],
)
def test_what_decides_costs_must_exist_and_limit_each_of_them(structure, said):
    """The pendulum has three states, one action and one cost."""
    with pytest.raises(UserError, match=said):
        replace(make_task("pendulum"), cost_structure=structure())
