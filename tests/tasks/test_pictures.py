"""Drawings of tasks show the state, and in red what the task forbids."""

import numpy as np
import pytest

from sbsrl.tasks.pictures import canal, cartpole, ledge, pendulum, race_car

WATER = canal.Water(-20.0, 20.0, 25.0, 1.5)
TRACK = race_car.Track(((0.75, 0.0),), 0.25, 0.35)


def red(picture):
    """How many pixels are as red as what is forbidden."""
    values = picture.astype(int)
    return int(np.sum((values[..., 0] > 180) & (values[..., 1] < 60) & (values[..., 2] < 80)))


def blue(picture):
    """The middle of the body that moves, as shares of the picture's width, and of its height from below."""
    values = picture.astype(int)
    rows, columns = np.nonzero((values[..., 2] - values[..., 0] > 80) & (values[..., 0] < 80))
    return columns.mean() / picture.shape[1], 1 - rows.mean() / picture.shape[0]


def test_the_pendulum_hangs_below_and_stands_above():
    assert blue(pendulum.draw(np.array([[-1.0, 0.0, 0.0]]), 6.0))[1] < 0.25
    assert blue(pendulum.draw(np.array([[1.0, 0.0, 0.0]]), 6.0))[1] > 0.75


def test_a_pendulum_that_is_too_fast_has_a_red_arc():
    assert red(pendulum.draw(np.array([[0.0, 1.0, 5.9]]), 6.0)) == 0
    assert red(pendulum.draw(np.array([[0.0, 1.0, 6.1]]), 6.0)) > 50


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_cart_beyond_the_limit_is_red_and_stays_in_sight(side):
    inside, outside, far = (
        red(cartpole.draw(np.array([[side * p, 1.0, 0.0, 0.0, 0.0]]), 1.5)) for p in (1.4, 1.6, 9.0)
    )
    assert outside > inside + 100
    assert far > 100


def test_the_pole_leans_to_the_side_that_its_sine_says():
    left, right = (cartpole.draw(np.array([[0.0, 0.0, s, 0.0, 0.0]]), 1.5) for s in (-1.0, 1.0))
    np.testing.assert_allclose(left[:, ::-1].astype(int), right.astype(int), atol=80)
    assert (left != right).any()


def test_a_sled_beyond_the_ledge_is_red_and_stays_in_sight():
    before, after, far = (red(ledge.draw(np.array([[0.0], [x]]), 1.0)) for x in (0.9, 1.1, 8.0))
    assert after > before + 200
    assert far > 200


def test_the_boat_is_where_it_is_and_red_ashore():
    """The sheet shows 84 metres, half as many from below, and the middle of basin and canal in its middle."""
    way = [[-10.0, 4.0], [-9.0, 5.0]]
    assert blue(canal.draw(np.array(way), WATER)) == (
        pytest.approx((-9 + 49.5) / 84, abs=0.02),
        pytest.approx(26 / 42, abs=0.04),
    )
    assert red(canal.draw(np.array(way), WATER)) == 0
    assert red(canal.draw(np.array([[10.0, 1.4]]), WATER)) == 0
    assert red(canal.draw(np.array([[10.0, 1.6]]), WATER)) > 50


def test_the_car_is_where_it_is_and_red_in_an_obstacle():
    free = np.array([[1.4, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    picture = race_car.draw(free, TRACK)
    assert blue(picture) == (pytest.approx(0.62 / 2.34, abs=0.05), pytest.approx(0.4 / 2.34, abs=0.05))
    assert red(picture) == 0
    inside = np.array([[0.75, 0.1, 0.0, 1.0, 0.0, 0.0, 0.0]])
    assert red(race_car.draw(inside, TRACK)) > 50
