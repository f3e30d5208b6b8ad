"""Films are in real time, small, and of a kind that is installed."""

import subprocess
import sys

import numpy as np
import pytest
from made_up_records import make_record
from PIL import Image

from sbsrl.cli import main
from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.report import film
from sbsrl.report.film import FORMATS, check_format, make_films, read_episodes
from sbsrl.runs.replay import Replay, shown_steps
from sbsrl.runs.train import train
from sbsrl.specification import Specification
from sbsrl.transitions import Episode


@pytest.fixture
def replay():
    """A ball that crosses a noisy meadow."""

    def make(steps, rate, kind):
        meadow = np.random.default_rng(0).integers(90, 120, (120, 160, 3), dtype=np.uint8)
        pictures = {}
        for t in shown_steps(steps, rate, FORMATS[kind].most):
            pictures[t] = meadow.copy()
            pictures[t][50:70, int(140 * t / steps) :][:, :20] = (255, 0, 0)
        episode = Episode(np.zeros((steps + 1, 1)), np.zeros((steps, 1)), np.ones(steps), np.ones((steps, 1)))
        costs = (Cost("grass", 0.5 * steps),)
        return Replay("meadow", costs, make_record(0, "explore", 1.0, 1.0), episode, rate, pictures)

    return make


def gif_of(content, tmp_path):
    path = tmp_path / "film.gif"
    path.write_bytes(content)
    return Image.open(path)


@pytest.mark.parametrize(("steps", "rate"), [(30, 10.0), (90, 60.0), (6, 2.0), (25, 12.5)])
def test_a_gif_lasts_as_long_as_the_episode_and_a_second(replay, tmp_path, steps, rate):
    with gif_of(FORMATS["gif"].film(replay(steps, rate, "gif")), tmp_path) as image:
        milliseconds = 0
        for i in range(image.n_frames):
            image.seek(i)
            milliseconds += image.info["duration"]
    assert milliseconds == pytest.approx(1000 * (steps / rate + 1), abs=10)


def test_an_mp4_lasts_as_long_and_shows_the_ball(replay, tmp_path):
    """Read back with the library's own reader."""
    path = tmp_path / "film.mp4"
    path.write_bytes(FORMATS["mp4"].film(replay(50, 25.0, "mp4")))
    import imageio_ffmpeg

    said = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-i", path], capture_output=True, text=True, check=False)
    hours, minutes, seconds = said.stderr.split("Duration: ")[1].split(",")[0].split(":")
    assert float(seconds) == pytest.approx(3.0, abs=0.1)
    assert "h264" in said.stderr
    assert (hours, minutes) == ("00", "00")


def test_the_number_of_an_episode_may_be_a_word():
    assert read_episodes("0, 5,last") == [0, 5, "last"]
    assert read_episodes("-2,first") == [-2, "first"]


@pytest.mark.parametrize("text", ["", "runs/mine", "1;2", "1.5", "all"])
def test_other_words_are_refused(text):
    with pytest.raises(UserError, match="is no episode; give numbers, 'first' and 'last'"):
        read_episodes(text)


def test_mp4_where_it_is_installed_else_gif(monkeypatch):
    assert check_format("") == "mp4"
    assert check_format("gif") == "gif"
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    assert check_format("") == "gif"
    with pytest.raises(UserError, match=r"pip install 'sbsrl\[video\]'"):
        check_format("mp4")
    with pytest.raises(UserError, match="no video format 'mpg4'; did you mean 'mp4'"):
        check_format("mpg4")


def test_films_are_in_the_folder_of_the_run(tmp_path, tiny):
    train(Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "episodes": 1}), tmp_path / "run")
    told = []
    written = make_films(tmp_path / "run", "first,last", "gif", told.append)
    assert written == told == [tmp_path / "run" / "videos" / f"episode-000{i}.gif" for i in (0, 1)]
    with Image.open(written[0]) as image:
        assert image.n_frames == 51


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["train", "pendulum", "--video", "most"], "'most' is no episode"),
        (["train", "pendulum", "--video", "--video-format", "webm"], "no video format 'webm'"),
        (["plot", "nowhere", "--video", "--episode", "3"], "--video 3 for a film of episode 3"),
        (["plot", "nowhere", "--video"], "nowhere holds no run"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_nothing_behind(tmp_path, monkeypatch, capsys, arguments, hint):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert hint in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_cannot_be_filmed_is_complete_and_says_how_to_try_again(tmp_path, monkeypatch, capsys, tiny_flags):
    monkeypatch.chdir(tmp_path)

    def blind(*arguments):
        raise UserError("there is no library to draw with.")

    monkeypatch.setattr(film, "make_films", blind)
    assert main(["train", "pendulum", *tiny_flags, "--out", "run", "--video"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("the run is complete; try once more with 'sbsrl plot run --video first,last'.\n")
    assert (tmp_path / "run" / "learning.png").exists()


def test_training_without_films_loads_nothing_that_draws_them():
    code = """
import sys
import sbsrl.cli
print(*(name for name in sys.modules if name in {"PIL", "imageio_ffmpeg", "mujoco", "OpenGL"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "\n"
