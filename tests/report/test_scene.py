"""The track and the meter show what the numbers say."""

import io

import matplotlib.image
import numpy as np
import pytest
from made_up_drives import make_moment
from matplotlib.colors import to_rgba
from PIL import Image

from sbsrl.report import scene
from sbsrl.report.charts import UNSAFE
from sbsrl.report.scene import car_outlines, draw, film, frame_times
from sbsrl.tasks.pictures import race_car as pictures

COSTS = [[9.0, 0.0], [5.0, 7.0], [0.0, 1.0]]
"""The second sample is the dearest, and more so from the second initial state."""


@pytest.fixture
def moment():
    return make_moment(COSTS)


@pytest.fixture
def stage(moment):
    return scene._Stage([moment, moment], 15.0)


def segments(collection):
    return [path.vertices for path in collection.get_paths()]


def of_colour(axes, colour):
    """The collections of a track that have this colour: faint trajectories, strong ones, cars."""
    wanted = to_rgba(colour)[:3]
    faces = [[*part.get_edgecolor(), *part.get_facecolor()][-1][:3] for part in axes.collections]
    return [part for part, face in zip(axes.collections, faces, strict=True) if np.allclose(face, wanted)]


def test_what_is_red_is_the_dearest_sample_from_where_it_costs_most(stage, moment):
    stage.show(9, 4)
    faint, strong, cars = of_colour(stage.figure.axes[0], UNSAFE)
    np.testing.assert_allclose(segments(strong), moment.told.positions[1, 1:2])
    np.testing.assert_allclose(segments(faint), moment.told.positions[1, :1])
    outline = car_outlines(moment.told.positions[1, 1:2, 4], moment.told.headings[1, 1:2, 4])
    np.testing.assert_allclose(segments(cars)[0][:6], outline[0])


def test_all_other_samples_are_drawn_once_and_so_is_the_truth(stage, moment):
    stage.show(9, 4)
    faint, strong, cars = of_colour(stage.figure.axes[0], scene.SAMPLE)
    np.testing.assert_allclose(segments(strong), moment.told.positions[[0, 2], 1])
    assert (len(segments(faint)), len(segments(cars))) == (2, 2)
    faint, strong, cars = of_colour(stage.figure.axes[0], scene.TRUE)
    np.testing.assert_allclose([*segments(faint), *segments(strong)], moment.true.positions[0])
    assert len(segments(cars)) == 1


def test_trajectories_grow_with_the_film(stage):
    stage.show(3, 3)
    for collection in of_colour(stage.figure.axes[0], scene.TRUE)[:2]:
        assert [len(path) for path in segments(collection)] == [4]


def test_a_meter_shows_mean_costs_so_far(stage):
    """After three of nine steps the dearest sample has a third of its mean cost of 6."""
    stage.show(3, 3)
    meter = stage.figure.axes[1]
    numbers = {text.get_text(): text.get_position()[0] for text in meter.texts if text.get_text() != "budget"}
    assert numbers == {"2.0": pytest.approx(2.0), "0.0": 0.0}
    samples, dearest, truth = (part.get_offsets()[:, 0] for part in meter.collections)
    np.testing.assert_allclose(samples, [1.5, 2.0, 1 / 6])
    assert (dearest, truth) == (pytest.approx(2.0), 0.0)
    assert meter.lines[0].get_xdata()[0] == 15.0
    assert meter.get_xlim()[1] > 15.0


def test_a_meter_has_room_for_what_exceeds_the_budget():
    dear = make_moment([[50.0], [1.0], [2.0]])
    assert scene._Stage([dear, dear], 15.0).figure.axes[3].get_xlim()[1] > 50


def test_feared_is_what_any_sample_charges(moment):
    p_x = scene.places()[..., 0]
    np.testing.assert_array_equal(moment.feared, (p_x > 0.5).astype(float))


@pytest.mark.parametrize("heading", [0.0, np.pi / 2, 2.5])
def test_a_car_lies_about_its_place_and_points_ahead(heading):
    place, ahead = np.array([0.3, -0.7]), np.array([np.cos(heading), np.sin(heading)])
    outline = car_outlines(place[None], np.array([heading]))[0] - place
    along, across = outline @ ahead, outline @ np.array([-ahead[1], ahead[0]])
    assert (along.max(), along.min()) == (pytest.approx(pictures.LENGTH / 2), pytest.approx(-pictures.LENGTH / 2))
    front, back = across[along > 0.9 * along.max()], across[along < 0.9 * along.min()]
    assert np.ptp(front) < np.ptp(back) == pytest.approx(pictures.BREADTH)
    np.testing.assert_allclose(across.mean(), 0, atol=1e-12)


def test_the_picture_is_large_enough_to_read(moment):
    pixels = matplotlib.image.imread(io.BytesIO(draw([moment, moment], 15.0)))
    assert pixels.shape[1] >= 1200
    assert pixels[..., :3].std() > 0.05


def test_a_film_begins_at_the_start_ends_at_the_end_and_waits():
    assert frame_times(9) == [0, 4, 8, 9]
    assert frame_times(8) == [0, 4, 8]
    moments = [make_moment(COSTS, steps=21)] * 2
    with Image.open(io.BytesIO(film(moments, 15.0))) as made:
        assert made.n_frames == len(frame_times(21)) == 7
        durations = []
        for i in range(made.n_frames):
            made.seek(i)
            durations.append(made.info["duration"])
        assert durations == [scene.FRAME] * 6 + [scene.HOLD]
        assert made.info["loop"] == 0
        assert made.size[0] == 900


def test_a_film_of_an_episode_takes_less_than_twelve_seconds():
    assert scene.FRAME * (len(frame_times(250)) - 1) + scene.HOLD < 12_000
