"""The picture of an episode shows what happened, what was foretold, and the budget."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.foresight import Forecast
from sbsrl.record import Record
from sbsrl.report import trajectory
from sbsrl.report.trajectory import draw_episode
from sbsrl.runs.look import Look
from sbsrl.specification import Specification
from sbsrl.transitions import Episode

RECORD = Record(3, "explore", -12.5, 7.0, 6.0, 1.0, False, True, True, 1.0, 4, 0.1)


@pytest.fixture
def look():
    experiment = Specification.make("pendulum", "sbsrl", 0, "smoke", {}).experiment()
    rng, steps = np.random.default_rng(0), 12
    states, actions = rng.normal(size=(steps + 1, experiment.task.state_size)), rng.uniform(-1, 1, (steps, 1))
    costs = np.linspace(0, 7, steps)[:, None]
    forecast = Forecast(rng.normal(size=(4, steps, experiment.task.state_size)), rng.normal(size=(4, steps, 1)), 5)
    return Look(experiment, RECORD, Episode(states, actions, np.zeros(steps), costs), forecast)


@pytest.fixture
def figure(monkeypatch):
    """The figure instead of its file."""
    drawn = []
    monkeypatch.setattr(trajectory, "png", lambda figure: drawn.append(figure) or b"")
    yield lambda look: draw_episode(look) or drawn[-1]
    plt.close("all")


def panels(figure):
    return {axes.get_ylabel(): axes for axes in figure.axes if axes.get_visible()}


def test_it_is_a_png(look):
    assert draw_episode(look).startswith(b"\x89PNG")


def test_there_is_a_panel_for_every_state_action_and_cost(look, figure):
    found = panels(figure(look))
    task = look.experiment.task
    assert set(found) == {*task.state_names, "action", task.costs[0].name}
    state = found[task.state_names[0]]
    np.testing.assert_array_equal(state.lines[-1].get_ydata(), look.episode.states[:, 0])
    assert len(state.lines) == 1 + 4 * 3  # the truth, and four samples in three windows


def test_every_step_beyond_the_budget_is_marked(look, figure):
    cost = panels(figure(look))[look.experiment.task.costs[0].name]
    marked = cost.collections[0].get_offsets()
    assert len(marked) == np.sum(look.episode.costs[:, 0] > 6.0) > 0


def test_summed_costs_are_shown_as_their_sum_so_far(look, figure):
    task = replace(look.experiment.task, costs=(Cost("effort", 50.0, "sum"),))
    cost = panels(figure(look._replace(experiment=replace(look.experiment, task=task))))["effort, summed"]
    np.testing.assert_allclose(cost.lines[-2].get_ydata(), np.cumsum(look.episode.costs[:, 0]))


def test_the_title_says_which_episode_and_what_came_of_it(look, figure):
    said = figure(look)._suptitle.get_text()
    assert "pendulum, episode 3 (explore): return -12.5, exceeds the budget by 1" in said
    assert "4 samples, asked anew every 5 steps" in said


def test_an_episode_without_forecast_is_drawn_alone(look, figure):
    found = panels(figure(look._replace(forecast=None)))
    assert len(found[look.experiment.task.state_names[0]].lines) == 1
