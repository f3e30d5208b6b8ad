"""What cannot be asked of pieces of episodes and of a trust region is refused, in words that help."""

from dataclasses import replace

import numpy as np
import pytest
import slider

from sbsrl.errors import UserError
from sbsrl.prior import Prior
from sbsrl.solve.actor_critic.settings import ActorCriticSettings
from sbsrl.solve.gradient.settings import GradientSettings
from sbsrl.transitions import Transitions


def task(count=40, aggregation="sum"):
    x = np.linspace(0, 1, count)[:, None] * np.ones((1, 2))
    data = Transitions(x, 0 * x[:, :1], x, 0 * x[:, 0], 0 * x[:, :1], np.zeros(count, bool))
    made = slider.make(Prior("data", informative=True, data=data if count else None))
    return replace(made, costs=(replace(made.costs[0], aggregation=aggregation),))


BOTH = pytest.mark.parametrize("settings", [ActorCriticSettings, GradientSettings])


@BOTH
def test_what_can_be_done_is_done(settings):
    segment = {"segment": 5} if settings is GradientSettings else {}
    solver = settings(pieces=5, radius=0.1, **segment).create(task())
    assert (solver.choices.pieces, solver.choices.radius) == (5, 0.1)


@pytest.mark.parametrize(("pieces", "segment"), [(10, 10), (100, 25)])
def test_pieces_ask_for_segments(pieces, segment):
    with pytest.raises(UserError, match=f"set segment, say to {segment}, or pieces=0"):
        GradientSettings(pieces=pieces).create(task())


@BOTH
def test_a_radius_asks_for_pieces(settings):
    with pytest.raises(UserError, match=r"radius=0\.1 is measured over visited states.*set pieces, or radius=0"):
        settings(radius=0.1).create(task())


@BOTH
def test_pieces_ask_for_recorded_states(settings):
    segment = {"segment": 5} if settings is GradientSettings else {}
    with pytest.raises(UserError, match="slider has no offline data: give some with data=FILE, or use pieces=0"):
        settings(pieces=5, **segment).create(task(0))


@BOTH
def test_pieces_do_not_tell_of_costs_that_are_not_summed(settings):
    segment = {"segment": 5} if settings is GradientSettings else {}
    with pytest.raises(UserError, match="not summed over the episode"):
        settings(pieces=5, **segment).create(task(aggregation="statewise"))
