"""The figures of the Gaussian-process experiments: what they compare, and that they can be drawn."""

import csv
import io

import matplotlib.image
import numpy as np
import pytest

from sbsrl.report import comparison, gp_ablation, gp_choices, gp_detour, gp_exploration, gp_margins, gp_safety
from sbsrl.report.canvas import png
from sbsrl.report.figures import FIGURES, Request
from sbsrl.report.gp_arms import GP_TASKS, own
from sbsrl.tasks import make_task

ARMS = {
    "gp-safety": lambda: [arm for task in GP_TASKS for arm in gp_safety.arms(task)],
    "gp-exploration": lambda: [arm for setup in gp_exploration.SETUPS.values() for arm in gp_exploration.arms(setup)],
    "gp-ablation": lambda: [arm for task in GP_TASKS for arm in gp_ablation.arms(task)],
    "gp-margins": gp_margins.arms,
    "gp-choices": gp_choices.arms,
    "gp-detour": gp_detour.arms,
}


@pytest.mark.parametrize("name", ARMS)
def test_a_figure_is_a_picture_a_page_and_every_episode(name, made_up, monkeypatch):
    wanted, asked = ARMS[name](), []

    def compare(request, sections):
        compared = [arm for each in sections.values() for arm in each]
        asked.append((request, list(dict.fromkeys(compared))))
        return made_up(compared)

    monkeypatch.setattr(comparison, "compare", compare)
    request = Request(name, seed=7)
    made = FIGURES[name].draw(request)
    assert asked == [(request, wanted)]
    assert set(made) == {"README.md", "episodes.csv", f"{name}.png"}
    picture = made[f"{name}.png"]
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = matplotlib.image.imread(io.BytesIO(picture))
    assert min(pixels.shape[:2]) > 500
    assert pixels[..., :3].std() > 0.05
    assert len(list(csv.DictReader(io.StringIO(made["episodes.csv"].decode())))) == 9 * len(wanted)
    readme = made["README.md"].decode()
    assert f"({name}.png)" in readme
    assert f"`sbsrl reproduce {name} --seed 7`" in readme
    assert all(f"| {arm.label} |" in readme for arm in wanted)


@pytest.mark.parametrize("name", ARMS)
def test_what_is_compared_can_be_told_apart(name):
    """For each task and prior labels are different, and so are the settings."""
    arms = ARMS[name]()
    assert len({(arm.task, settings(arm).run.prior, arm.label) for arm in arms}) == len(arms)
    assert len({arm.specification(0, "cpu") for arm in arms}) == len(arms)


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_can_be_run(name):
    for arm in ARMS[name]():
        arm.specification(0, "cpu").experiment()


def settings(arm):
    return arm.specification(0, "cpu").settings


def demanded(arm):
    """The exploration threshold that a method really has."""
    return settings(arm).method.exploration_threshold if arm.method == "sbsrl" else 0


@pytest.mark.parametrize("task", ["pendulum", "cartpole"])
def test_safety_compares_all_methods_with_the_same_settings(task):
    assert task in GP_TASKS
    arms = gp_safety.arms(task)
    assert [arm.label for arm in arms] == ["SBSRL", "mean", "ActSafe-3", "ActSafe-5", "greedy", "unsafe"]
    assert [arm.method for arm in arms] == ["sbsrl", "mean", "actsafe", "actsafe", "greedy", "unsafe"]
    assert [settings(arm).method.actsafe_episodes for arm in arms[2:4]] == [3, 5]
    assert all(arm.changes == () for arm in arms if arm.method != "actsafe")


@pytest.mark.parametrize("setup", gp_exploration.SETUPS.values())
def test_exploration_compares_thresholds_from_nothing_on_with_phases(setup):
    arms = gp_exploration.arms(setup)
    usual = own(setup.task, "exploration_threshold")
    thresholds = [demanded(arm) for arm in arms if arm.method != "actsafe"]
    assert thresholds[0] == 0
    assert usual in thresholds
    assert thresholds == sorted(thresholds)
    assert [arm.label for arm in arms if arm.method == "actsafe"] == ["ActSafe-3", "ActSafe-5"]
    assert {(arm.task, settings(arm).run.prior) for arm in arms} == {(setup.task, setup.prior)}


@pytest.mark.parametrize("task", ["pendulum", "cartpole"])
def test_the_ablation_goes_from_no_exploration_to_more_than_usual(task):
    thresholds = [demanded(arm) for arm in gp_ablation.arms(task)]
    assert thresholds[0] == 0
    assert thresholds == sorted(thresholds)
    assert own(task, "exploration_threshold") in thresholds
    assert thresholds[-1] > own(task, "exploration_threshold")


def test_the_detour_compares_a_constraint_with_nothing_phases_bonuses_and_other_thresholds():
    """The weights are a factor of ten apart around what there is to earn for what there is to learn: 80 for 280."""
    arms, threshold = gp_detour.arms(), own("canal", "exploration_threshold")
    assert [arm.method for arm in arms] == ["sbsrl", "greedy", *2 * ["actsafe"], *3 * ["bonus"], *2 * ["sbsrl"]]
    assert [settings(arm).method.actsafe_episodes for arm in arms[2:4]] == [3, 5]
    weights = [settings(arm).method.bonus_weight for arm in arms[4:7]]
    np.testing.assert_allclose(np.array(weights) / (80 / threshold), [0.1, 1, 10], rtol=0.1)
    assert [settings(arm).method.exploration_threshold / threshold for arm in arms[7:]] == [0.1, 2.5]


def test_margins_are_over_samples_and_tightenings():
    usual = own("pendulum", "tightening")
    pairs = [(settings(arm).method.samples, settings(arm).method.tightening) for arm in gp_margins.arms()]
    assert [m for m, tightening in pairs if tightening == (0,)] == [1, 5, 10, 30, 100]
    assert [m for m, tightening in pairs if tightening == (usual,)] == [1, 5, 10, 30, 100]
    over = [tightening for m, tightening in pairs if m == 30]
    assert len(over) == len(set(over)) >= 4


def test_violating_episodes_are_a_share_of_each_run(made_up):
    """Costs of 5, 6 and 7 in the first of three episodes, and a budget of 6."""
    arms = gp_margins.arms()
    np.testing.assert_allclose(gp_margins.violating(made_up(arms), arms[0]), [0, 0, 100 / 3])


def test_choices_are_what_the_samples_are_and_whether_the_threshold_shrinks():
    chosen = [(settings(arm).belief.sampler, settings(arm).method.shrinking) for arm in gp_choices.arms()]
    assert chosen == [("pathwise", False), ("particles", False), ("truncated", False), ("pathwise", True)]


def test_arms_that_two_figures_share_have_equal_settings():
    default = gp_safety.arms("pendulum")[0].specification(0, "cpu")
    for name in ("gp-exploration", "gp-ablation", "gp-margins", "gp-choices"):
        assert default in {arm.specification(0, "cpu") for arm in ARMS[name]() if arm.task == "pendulum"}


def test_the_budget_is_drawn_where_costs_are(made_up):
    sections = {"pendulum": gp_safety.arms("pendulum")}
    figure = gp_safety.draw(made_up(sections["pendulum"]), sections)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert f"budget\n{make_task('pendulum').costs[0].budget:g}" in texts
    png(figure)
