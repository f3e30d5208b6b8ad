"""A camera sees what a model shows, from where it was put, until it is closed."""

import numpy as np
import pytest

from sbsrl.systems.camera import SKY, Camera, View
from sbsrl.systems.physics import load_mujoco

BALL = """
<mujoco>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    <camera name="front" pos="0 -3 0" euler="90 0 0"/>
    <body name="ball"><joint type="slide" axis="1 0 0"/><geom size="0.3" rgba="0 1 0 1"/></body>
  </worldbody>
</mujoco>"""


@pytest.fixture
def ball():
    mujoco = load_mujoco("a ball")
    model = mujoco.MjModel.from_xml_string(BALL)
    data = mujoco.MjData(model)

    def put(x):
        data.qpos[0] = x
        mujoco.mj_forward(model, data)
        return data

    return model, put


@pytest.fixture
def camera(ball):
    made = []

    def make(view):
        made.append(Camera(ball[0], view, "a ball"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def column(picture):
    """Where the ball is, as a share of the width."""
    return np.mean(np.nonzero(picture[..., 1] > 200)[1]) / picture.shape[1]


def test_a_fixed_camera_sees_the_ball_move_and_the_sky_behind(ball, camera):
    _, put = ball
    fixed = camera(View("front", size=(160, 120)))
    picture = fixed.picture(put(0.0))
    assert picture.shape == (120, 160, 3)
    assert column(picture) == pytest.approx(0.5, abs=0.02)
    assert column(fixed.picture(put(0.5))) > 0.6
    assert tuple(picture[0, 0]) == SKY


def test_one_that_follows_keeps_it_in_the_middle(ball, camera):
    _, put = ball
    follows = camera(View(body="ball", distance=2.0, azimuth=90.0))
    for x in (0.0, 2.0):
        assert column(follows.picture(put(x))) == pytest.approx(0.5, abs=0.02)


def test_marks_are_red_and_where_they_should_be(ball, camera):
    _, put = ball
    picture = camera(View("front", marks=((0.7, 0.0, 0.0),))).picture(put(0.0))
    red = (picture[..., 0] > 150) & (picture[..., 1] < 60)
    assert np.mean(np.nonzero(red)[1]) / picture.shape[1] > 0.6


def test_two_cameras_do_not_disturb_each_other_and_the_model_stays_as_it_was(ball, camera):
    model, put = ball
    quality, data = model.vis.quality.shadowsize, put(0.2)
    one = camera(View("front"))
    before = one.picture(data)
    camera(View(body="ball", size=(64, 48))).picture(data)
    np.testing.assert_array_equal(one.picture(data), before)
    assert model.vis.quality.shadowsize == quality


def test_closing_twice_is_no_mistake(ball, camera):
    each = camera(View("front"))
    each.close()
    each.close()
