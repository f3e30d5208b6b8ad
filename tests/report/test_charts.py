"""What is drawn is what was given, read back from the axes."""

import numpy as np
import pytest

from sbsrl.report.canvas import plt, png
from sbsrl.report.charts import COLOURS, draw_bars, draw_curves, limit

BARS = {"one": np.array([1.0, 3.0]), "two": np.array([5.0, 5.0])}


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_bars_are_means_and_dots_are_seeds(axes):
    draw_bars(axes, BARS)
    assert [bar.get_height() for bar in axes.patches] == [2, 5]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]
    dots = [c.get_offsets()[:, 1].tolist() for c in axes.collections if len(c.get_offsets()) == 2]
    assert [1.0, 3.0] in dots
    assert [5.0, 5.0] in dots


def test_the_error_bar_is_one_deviation_to_both_sides(axes):
    draw_bars(axes, BARS)
    ends = axes.containers[1].lines[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose(ends, [1, 3])


def test_curves_may_keep_the_colours_that_they_have_elsewhere(axes):
    draw_curves(axes, {"one": np.ones((2, 3)), "two": np.zeros((2, 3))}, COLOURS[3:])
    assert [line.get_color() for line in axes.lines] == [COLOURS[3], COLOURS[4]]


def test_curves_are_means_over_episodes_within_a_band(axes):
    values = np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 6.0]])
    draw_curves(axes, {"one": values, "two": values + 1})
    first, second = axes.lines
    np.testing.assert_allclose(first.get_ydata(), [1, 1, 4])
    np.testing.assert_allclose(second.get_ydata(), [2, 2, 5])
    np.testing.assert_array_equal(first.get_xdata(), [0, 1, 2])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose((band.min(), band.max()), (0.05, 5.9))
    assert axes.get_legend_handles_labels()[1] == ["one", "two"]


def test_a_limit_is_a_level_with_its_name(axes):
    limit(axes, 6.0, "budget 6")
    assert set(axes.lines[0].get_ydata()) == {6.0}
    assert axes.texts[0].get_text() == "budget 6"


def test_arms_are_told_apart_by_colour(axes):
    draw_bars(axes, {str(i): np.array([1.0, 2.0]) for i in range(len(COLOURS))})
    assert len({bar.get_facecolor() for bar in axes.patches}) == len(COLOURS)
    assert png(axes.figure).startswith(b"\x89PNG")
