"""The flagship: a small run from end to end. What is drawn is what was played, and what samples of that time say."""

import csv
import io

import jax
import matplotlib.image
import numpy as np
import pytest
from PIL import Image

from sbsrl.prediction import final_costs
from sbsrl.report import flagship
from sbsrl.report.drives import believed_charge, drive_samples, drive_truth
from sbsrl.report.figures import FIGURES, Request
from sbsrl.report.scene import CHARGED, frame_times
from sbsrl.runs.folder import RunFolder
from sbsrl.runs.study import STUDIES, folder_of
from sbsrl.tasks.race_car import NEWEST

REQUEST = Request("flagship", preset="smoke")


class Made:
    """What a small flagship left, and what it was made of."""

    def __init__(self, monkeypatch):
        self.known, self.moments = [], []
        make = flagship.make_moment

        def remembered(title, known, starts, key):
            self.known.append(known)
            self.moments.append(make(title, known, starts, key))
            return self.moments[-1]

        monkeypatch.setattr(flagship, "make_moment", remembered)
        self.files = FIGURES["flagship"].draw(REQUEST)
        self.folder = RunFolder.open(
            folder_of(flagship.compared("smoke"), flagship.FIRST_SEED, "smoke", STUDIES).absolute()
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(tmp_path_factory.mktemp("flagship"))
        yield Made(monkeypatch)


def test_it_leaves_a_picture_a_film_a_page_and_every_episode(made):
    assert set(made.files) == {"README.md", "episodes.csv", "flagship.png", "flagship.gif"}
    pixels = matplotlib.image.imread(io.BytesIO(made.files["flagship.png"]))
    assert pixels.shape[1] >= 1200
    with Image.open(io.BytesIO(made.files["flagship.gif"])) as film:
        assert 2 < film.n_frames <= len(frame_times(250))  # frames that are equal are one
    assert len(made.files["flagship.gif"]) < 2_000_000
    rows = list(csv.DictReader(io.StringIO(made.files["episodes.csv"].decode())))
    assert len(rows) == 2 * (8 + 1) * flagship.FEW
    page = made.files["README.md"].decode()
    assert "`sbsrl reproduce flagship --preset smoke`" in page
    assert "after 3 episodes: cost (J)" in page


def test_the_numbers_of_the_page_are_those_of_the_episodes(made):
    rows = list(csv.DictReader(io.StringIO(made.files["episodes.csv"].decode())))
    page = made.files["README.md"].decode()
    first = {
        model: np.mean(
            [float(row["cost"]) for row in rows if (row["moment"], row["model"]) == ("first episode", model)]
        )
        for model in dict.fromkeys(row["model"] for row in rows)
    }
    dearest = max((name for name in first if name != "truth"), key=lambda name: first[name])
    assert f"| {dearest} | **{first[dearest]:.2f}** |" in page
    assert f"| truth | {first['truth']:.2f} |" in page


def test_the_policies_are_those_that_were_played(made):
    """From where the recorded first and last episodes began the same happens again."""
    last = len(made.folder.records()) - 1
    for known, line in zip(made.known, (0, last), strict=True):
        played = made.folder.trajectory(line).episode
        found = drive_truth(
            known.experiment.task.equations, known.policy, played.states[:1], len(played.actions), jax.random.key(0)
        )
        np.testing.assert_allclose(found.states[0, 0], played.states, atol=1e-4)
    assert not np.allclose(made.moments[0].true.states, made.moments[1].true.states, atol=1e-2)


def test_an_offline_phase_that_was_not_kept_is_done_again(made):
    """The policy of the first episode is the same, to the last digit."""
    first = made.known[0]
    again = flagship.at_first(first.experiment, flagship.FIRST_SEED, made.folder, None)
    for one, other in zip(jax.tree.leaves(again.policy), jax.tree.leaves(first.policy), strict=True):
        np.testing.assert_array_equal(one, other)


def test_samples_forecast_as_the_belief_does(made):
    """The cost of each sample, from the belief's own way to predict it; both draw the same noise."""
    known, start = made.known[0], made.moments[0].true.states[0, 0, 0]
    horizon, key = known.experiment.task.horizon, jax.random.key(7)
    x = jax.numpy.asarray(start, jax.numpy.float32)
    nothing, steps = jax.numpy.zeros(1, jax.numpy.float32), (jax.numpy.int32(0), jax.numpy.int32(horizon))
    memory = known.policy.init()
    expected = final_costs(known.samples, known.policy, memory, x, nothing, *steps, horizon, ("sum",), key)
    noise_key, _ = jax.random.split(key)
    found = drive_samples(known.samples, known.policy, start[None], horizon, noise_key)
    np.testing.assert_allclose(found.totals[:, 0], expected[:, 0], rtol=0.05, atol=0.05)


def test_the_tightened_obstacle_covers_where_contacts_were_recorded(made):
    """And leaves most of the way free that was recorded without a cost."""
    replay = flagship.Learner.create(made.known[0].experiment, 0).belief.replay
    rows = slice(0, int(replay.length.sum()))
    places = np.asarray(replay.states[rows, NEWEST][:, :2], float)
    touched = np.asarray(replay.costs[rows, 0]) > 0
    feared = believed_charge(made.known[0].samples, places).max(axis=0) >= CHARGED
    assert touched.sum() > 20
    assert feared[touched].mean() > 0.9
    assert feared[~touched].mean() < 0.2
