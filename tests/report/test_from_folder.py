"""Terminal, tables and pictures are made from a run folder alone: no task is built, nothing is planned."""

import io
import shutil
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from rich.console import Console

from sbsrl import RunFolder, UserError, learn, make_task
from sbsrl.report.picture import draw_run
from sbsrl.report.terminal import Terminal, summary_table
from sbsrl.specification import Specification

NAMES = ("sbsrl.tasks.find_task", "sbsrl.tasks.make_task", "sbsrl.specification.make_task", "sbsrl.learner.Experiment")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two episodes, in its folder; made once."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    small = {"episodes": 2, "samples": 3, "candidates": 16, "elites": 4, "iterations": 2, "horizon": 6, "features": 16}
    learn("pendulum", out=folder, **small)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def nothing_is_built(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a folder is enough")

    for name in NAMES:
        monkeypatch.setattr(name, refuse)


def seen(path):
    """Everything that is shown of a run, from a folder that was opened just now."""
    view = RunFolder.open(path).view()
    console = Console(file=io.StringIO(), width=200)
    with Terminal(console) as terminal:
        terminal.started(view, path)
    console.print(summary_table(view))
    assert draw_run(view).startswith(b"\x89PNG")
    return console.file.getvalue()


def test_the_check_is_one(nothing_is_built):
    with pytest.raises(AssertionError, match="a folder is enough"):
        learn("pendulum")


@pytest.mark.usefixtures("nothing_is_built")
def test_a_whole_run_is_shown(folder):
    RunFolder.open(folder).write_json("reference.json", {"idle": -500.0, "oracle": -200.0})
    text = seen(folder)
    assert "pendulum by sbsrl: 2 episodes, 3 samples, fastest turn |omega| (rad/s) <= 6" in text
    for word in ("final return", "normalised", "largest cost", "violating episodes", "guarantee             none: "):
        assert word in text
    assert text.count("done before") == 3


@pytest.mark.usefixtures("nothing_is_built")
def test_without_certificate_and_reference_nothing_is_claimed(folder):
    (folder / "certificate.json").unlink()
    text = seen(folder)
    assert "not known: there is no certificate.json" in text
    assert "normalised" not in text


@pytest.mark.usefixtures("nothing_is_built")
def test_a_run_that_has_not_begun_is_shown(folder):
    (folder / "episodes.jsonl").write_text("")
    (folder / "certificate.json").unlink()
    assert "none yet: no episode is finished" in seen(folder)


class Failing(gymnasium.Wrapper):
    """A pendulum whose sensor fails in its second episode: at this step, or at once if it is 0."""

    def __init__(self, env, at):
        super().__init__(env)
        self.at, self.episode, self.steps = at, -1, 0

    def reset(self, **options):
        self.episode, self.steps = self.episode + 1, 0
        x, info = super().reset(**options)
        return self._read(x), info

    def step(self, action):
        self.steps += 1
        x, *rest = super().step(action)
        return self._read(x), *rest

    def _read(self, x):
        return x * np.nan if self.episode == 1 and self.steps == self.at else x


@pytest.mark.parametrize("at", [0, 8])
def test_a_run_whose_last_episode_was_cut_short_is_shown(monkeypatch, tmp_path, tiny, at):
    task = make_task("pendulum")
    broken = replace(task, open=lambda: Failing(task.open(), at))
    monkeypatch.setattr(Specification, "make_task", lambda self: broken)
    with pytest.raises(UserError, match="episode 1 was cut short: the observation"):
        learn("pendulum", out=tmp_path / "run", **tiny)
    monkeypatch.undo()
    for name in NAMES:
        monkeypatch.setattr(name, lambda *_: pytest.fail("a folder is enough"))
    text = " ".join(seen(tmp_path / "run").split())
    played = max(at - 1, 0)
    assert f"fault after {played} steps" in text
    assert f"cut short episode 1, after {played} steps: the observation" in text
    assert "'cos th' is nan" in text
    assert "the safe action was sent" in text
    assert "violating episodes none" in text
