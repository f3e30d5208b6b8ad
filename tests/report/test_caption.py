"""Below each picture stand the episode, the step, the return and each cost against its budget."""

import numpy as np
import pytest
from made_up_records import make_record
from PIL import ImageDraw

from sbsrl.costs import Cost
from sbsrl.report.caption import LEAST, MOST, framed
from sbsrl.runs.replay import Replay
from sbsrl.transitions import Episode

SPEED = Cost("speed", 6.0, "statewise")


@pytest.fixture
def replay():
    def make(size=(60, 320), costs=(SPEED,), charged=(1.0, 7.0, 2.0)):
        steps = len(charged)
        column = np.repeat(np.array(charged)[:, None], len(costs), axis=1)
        episode = Episode(np.zeros((steps + 1, 1)), np.zeros((steps, 1)), np.full(steps, -1.5), column)
        blank = np.full((*size, 3), 255, np.uint8)
        record = make_record(4, "explore", -4.5, 7.0)
        return Replay("toy", costs, record, episode, 10.0, dict.fromkeys(range(steps + 1), blank))

    return make


@pytest.fixture
def words(monkeypatch):
    """All that is written."""
    written, text = [], ImageDraw.ImageDraw.text
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, xy, s, *a: written.append(s) or text(self, xy, s, *a))
    return written


def red(frame):
    values = np.asarray(frame).astype(int)
    return int(np.sum((values[..., 0] > 150) & (values[..., 1] < 60)))


def test_the_words_say_where_the_episode_stands(replay, words):
    framed(replay(), 2)
    assert words == ["toy, episode 4 (explore)", "step 2 of 3", "return -3", "", "speed", "7 of 6"]


def test_what_is_beyond_the_budget_is_red_and_stays_so(replay):
    """A cost of single steps is the largest so far: the first step is within, the second beyond, the third within."""
    before, beyond, after = (red(framed(replay(), t)) for t in (1, 2, 3))
    assert beyond > 5 * before
    assert after == beyond


def test_summed_costs_are_shown_as_their_sum_so_far(replay, words):
    framed(replay(costs=(Cost("heat", 20.0),), charged=(1.0, 7.0, 2.0)), 3)
    assert words[-1] == "10 of 20"


def test_there_is_a_line_and_a_bar_for_every_cost(replay):
    one = framed(replay(), 1)
    two = framed(replay(costs=(SPEED, Cost("heat", 20.0))), 1)
    assert two.height > one.height + 16


@pytest.mark.parametrize("budget", [0.0, -2.0])
def test_budgets_may_be_zero_or_below(replay, budget):
    cost = Cost("drop", budget, "statewise", (-np.inf, np.inf))
    framed(replay(costs=(cost,), charged=(-5.0, -3.0)), 2)


@pytest.mark.parametrize("size", [(31, 33), (240, 321), (900, 1200)])
def test_sizes_are_even_and_moderate(replay, size):
    frame = framed(replay(size=size), 0)
    assert frame.width % 2 == frame.height % 2 == 0
    assert LEAST <= frame.width <= MOST


def test_long_names_are_shortened_and_nothing_is_written_twice_in_a_place(replay, words):
    framed(replay(costs=(Cost("a name that is much too long for the little room that there is " * 2, 6.0),)), 1)
    assert words[-2].endswith("…")
    assert words[-1] == "1 of 6"
