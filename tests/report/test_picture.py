"""A run as a picture, drawn from what its folder has."""

import io

import matplotlib.image
import pytest

from sbsrl.report import canvas, picture
from sbsrl.report.picture import draw_run
from sbsrl.runs.view import Reference, RunView

SPEED = {"name": "speed", "budget": 6.0, "aggregation": "statewise", "least": 0.0}
EFFORT = {"name": "effort", "budget": 2.0, "aggregation": "sum", "least": 0.0}


def make_view(records, costs=(SPEED,), reference=None):
    settings = {"run": {"episodes": 3}, "method": {"samples": 8, "tightening": [0.1]}}
    system = {"horizon": 50, "costs": list(costs)}
    config = {"task": "pendulum", "method": "sbsrl", "settings": settings, "system": system}
    return RunView(config, list(records), reference=reference)


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn: the figure; the size of its file is checked."""

    def draw(view):
        figures = []

        def png(figure):
            figures.append(figure)
            return canvas.png(figure)

        monkeypatch.setattr(picture, "png", png)
        height, width, _ = matplotlib.image.imread(io.BytesIO(draw_run(view))).shape
        assert width > 1000
        assert height > 800
        (figure,) = figures
        return figure

    return draw


def lines_of(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("reference", [None, Reference(-493.0, -187.0)])
def test_a_run_with_and_without_violations_can_be_drawn(record, drawn, reference):
    figure = drawn(make_view([record(cost=7.0), record(1), record(2, "final")], reference=reference))
    returns, costs = figure.axes
    assert figure.get_suptitle() == "pendulum learned by sbsrl: 2 of 3 episodes safe"
    assert lines_of(costs) == ["budget 6"]
    assert lines_of(returns) == (["true dynamics\nknown", "doing\nnothing"] if reference else [])
    (marked,) = (c for c in costs.collections if c.get_label() == "violation")
    assert marked.get_offsets().tolist() == [[0.0, 7.0]]


def test_a_long_run_with_a_bound_on_the_expected_cost_can_be_drawn(record, drawn):
    records = [record(n, cost=n / 50, budget=2.0) for n in range(200)]
    figure = drawn(make_view(records, [EFFORT]))
    assert figure.get_suptitle() == "pendulum learned by sbsrl: mean cost 1.99, expected cost bounded by 2"
    assert lines_of(figure.axes[1]) == ["budget 2\n(expected\ncost)"]
    assert not [c for c in figure.axes[1].collections if c.get_label() == "violation"]


def test_each_cost_has_a_panel_with_its_own_budget_and_values(record, drawn):
    records = [record(n, cost=7.0, metrics={"cost/speed": 7.0 - n, "cost/effort": 1.5}) for n in range(3)]
    _, speed, effort = drawn(make_view(records, [SPEED, EFFORT])).axes
    assert (speed.get_ylabel(), effort.get_ylabel()) == ("speed", "effort")
    assert lines_of(speed) == ["budget 6"]
    assert speed.lines[0].get_ydata().tolist() == [7, 6, 5]
    assert effort.lines[0].get_ydata().tolist() == [1.5, 1.5, 1.5]


def test_a_run_that_has_not_begun_can_be_drawn(drawn):
    assert drawn(make_view([])).get_suptitle() == "pendulum learned by sbsrl: no episode yet"
