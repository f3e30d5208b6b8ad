"""Episodes of a run are played again as they were, and drawn; a system that does otherwise is refused."""

from pathlib import Path

import numpy as np
import pytest
import rail

import sbsrl
from sbsrl import UserError
from sbsrl.cli import main
from sbsrl.own.plain import PlainEnv
from sbsrl.runs import RunFolder, evaluate, replays
from sbsrl.runs.replay import USUAL_RATE, shown_steps
from sbsrl.runs.train import train
from sbsrl.specification import Specification
from sbsrl.tasks.pictures.pendulum import draw


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A tiny run of the pendulum, with one evaluated episode after it."""
    tiny = {"episodes": 1, "samples": 3, "candidates": 16, "elites": 4, "iterations": 2, "horizon": 6, "features": 16}
    folder = tmp_path_factory.mktemp("run") / "run"
    train(Specification.make("pendulum", "sbsrl", 3, "cpu", tiny), folder)
    evaluate(folder, 1)
    return folder


def test_every_kind_of_episode_is_played_again_as_it_was(run):
    """The comparison with the recorded observations is in the function; here that there are pictures of all."""
    found = list(replays(run, [0, 1, 2], most=1000.0))
    assert [(each.record.episode, each.record.phase) for each in found] == [
        (0, "explore"),
        (1, "final"),
        (2, "evaluate"),
    ]
    for each in found:
        assert list(each.pictures) == list(range(51))
        assert all(picture.shape == (240, 320, 3) for picture in each.pictures.values())
        assert each.rate == 10.0


def test_first_and_last_are_words_for_numbers_and_each_is_shown_once(run):
    assert [each.record.episode for each in replays(run, ["first", "last", 0, 2], most=1.0)] == [0, 2]


def test_an_episode_that_does_not_exist_is_refused(run):
    with pytest.raises(UserError, match="has no episode 7; it has 0 to 2"):
        list(replays(run, [7], most=1.0))


def test_nothing_is_written(run):
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    list(replays(run, ["last"], most=1.0))
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("step", [0, 17])
def test_a_system_that_answers_otherwise_is_refused_with_the_step(run, monkeypatch, step):
    recorded = RunFolder.trajectory

    def other(self, line):
        played = recorded(self, line)
        played.episode.states[step, 2] += 1e-3
        return played

    monkeypatch.setattr(RunFolder, "trajectory", other)
    with pytest.raises(UserError, match=rf"episode 0 cannot be shown: .* after step {step} as number 2"):
        list(replays(run, [0], most=1.0))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run of a user's system, with cautious first episodes."""
    few = {name: value for name, value in rail.SMALL.items() if name != "episodes"}
    return sbsrl.learn(rail, out=tmp_path_factory.mktemp("own") / "run", episodes=1, **few)


def test_a_system_of_the_users_that_does_not_draw_itself_is_refused(own):
    with pytest.raises(UserError, match=r"rail: cannot be drawn: it takes no render_mode='rgb_array'"):
        list(replays(own.folder, ["first"], most=1.0))


def test_one_that_draws_itself_is_shown_as_it_is_also_in_its_first_cautious_episodes(own, monkeypatch):
    """The place on the rail as the colour of the only pixel."""
    monkeypatch.setattr(PlainEnv, "render_mode", "rgb_array")
    monkeypatch.setattr(PlainEnv, "render", lambda self: np.full((1, 1, 3), 100 + 50 * self._x[0]).astype(np.uint8))
    found = list(replays(own.folder, ["first", 0, "last"], most=1000.0))
    assert [each.record.phase for each in found] == ["prior", "explore", "final"]
    for each in found:
        seen = [int(picture[0, 0, 0]) for picture in each.pictures.values()]
        np.testing.assert_array_equal(seen, (100 + 50 * each.episode.states[:, 0]).astype(int))
        assert each.rate == USUAL_RATE


@pytest.mark.parametrize(
    ("steps", "rate", "most", "shown"),
    [(4, 10.0, 25.0, [0, 1, 2, 3, 4]), (4, 50.0, 25.0, [0, 2, 4]), (5, 50.0, 20.0, [0, 3, 5]), (1, 60.0, 10.0, [0, 1])],
)
def test_steps_are_left_out_where_there_are_too_many_and_the_last_is_always_shown(steps, rate, most, shown):
    assert shown_steps(steps, rate, most) == shown


def test_pictures_are_those_of_the_recorded_states(run):
    """The pendulum of the last picture stands where the last recorded state says."""
    (replay,) = replays(run, [0], most=1000.0)
    np.testing.assert_array_equal(replay.pictures[50], draw(replay.episode.states, 6.0))


def test_films_of_a_run_do_not_change_it(tmp_path, tiny_flags, monkeypatch, capsys, left):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "pendulum", *tiny_flags, "--out", "plain"]) == 0
    assert (
        main(["train", "pendulum", *tiny_flags, "--out", "filmed", "--video", "0,last", "--video-format", "gif"]) == 0
    )
    said = capsys.readouterr().out
    assert "video: filmed/videos/episode-0000.gif" in said
    assert "video: filmed/videos/episode-0002.gif" in said
    assert left(tmp_path / "plain") == left(tmp_path / "filmed")
    plain, filmed = ({str(path.relative_to(name)) for path in Path(name).rglob("*")} for name in ("plain", "filmed"))
    assert filmed - plain == {"videos", "videos/episode-0000.gif", "videos/episode-0002.gif"}
    assert main(["plot", "plain", "--video", "1", "--video-format", "gif"]) == 0
    assert capsys.readouterr().out == "plain/videos/episode-0001.gif\n"
