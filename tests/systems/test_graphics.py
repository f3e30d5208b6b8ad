"""A library that draws is found by itself, and named by the user if he wants; if there is none, one line says so."""

import os
import subprocess
import sys

import pytest

from sbsrl.errors import UserError
from sbsrl.systems import graphics
from sbsrl.tasks import make_task


@pytest.fixture
def trials(monkeypatch):
    """Which backends were tried, on a machine without display or named backend where those in `broken` fail."""
    tried, broken = [], {}

    def trial(backend):
        tried.append(backend)
        return broken.get(backend, "")

    for name in ("MUJOCO_GL", *graphics.DISPLAYS):
        monkeypatch.setenv(name, "")  # so that what is set is undone
    monkeypatch.setattr(graphics, "_tried", trial)
    graphics._search.cache_clear()
    yield tried, broken
    graphics._search.cache_clear()


def test_egl_comes_first_and_is_tried_once(trials):
    tried, _ = trials
    assert [graphics.settle_backend() for _ in range(3)] == ["egl"] * 3
    assert tried == ["egl"]
    assert os.environ["MUJOCO_GL"] == "egl"


def test_then_osmesa(trials):
    tried, broken = trials
    broken["egl"] = "no driver"
    assert graphics.settle_backend() == "osmesa"
    assert tried == ["egl", "osmesa"]


def test_windows_are_used_where_there_is_a_display_and_nothing_better(trials, monkeypatch):
    tried, broken = trials
    broken |= {"egl": "no driver", "osmesa": "no library"}
    monkeypatch.setenv("DISPLAY", ":0")
    assert graphics.settle_backend() == "glfw"
    assert tried == ["egl", "osmesa", "glfw"]


def test_if_none_works_one_line_says_what_was_seen_and_what_to_install(trials):
    _, broken = trials
    broken |= {"egl": "no driver", "osmesa": "no library"}
    with pytest.raises(UserError) as refused:
        graphics.settle_backend()
    said = str(refused.value)
    assert "\n" not in said
    for part in ("egl: no driver", "osmesa: no library", "apt-get install libegl1 libegl-mesa0", "libosmesa6"):
        assert part in said
    assert not graphics.offer_backend()  # for a system that may do without


def test_a_system_is_not_needed_to_be_drawn_to_be_played(trials):
    _, broken = trials
    broken |= {"egl": "no driver", "osmesa": "no library"}
    task = make_task("rwrl-cartpole")
    env = task.open()
    env.reset(seed=0)
    env.step(task.middle_action)
    env.close()
    drawn = task.connect("rgb_array")
    drawn.reset(seed=0)
    with pytest.raises(UserError, match="no library to draw with"):
        drawn.render()
    drawn.close()


def test_what_the_user_names_is_used_untried(trials, monkeypatch):
    tried, _ = trials
    monkeypatch.setenv("MUJOCO_GL", "OSMesa ")
    assert graphics.settle_backend() == "osmesa"
    assert tried == []


def test_what_the_user_names_and_does_not_work_is_said(trials, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(
        UserError, match=r"MUJOCO_GL=vulkan cannot draw here \(No module named 'mujoco.vulkan'\); unset"
    ):
        graphics.context(8, 8)
    monkeypatch.setenv("MUJOCO_GL", "disabled")
    with pytest.raises(UserError, match="MUJOCO_GL=disabled; unset it"):
        graphics.context(8, 8)


def test_a_trial_tells_what_works_from_what_does_not():
    """In a program of its own; the last line of what it said is the reason."""
    assert graphics._tried("vulkan") == "RuntimeError: invalid value for environment variable MUJOCO_GL: vulkan"
    assert "" in {graphics._tried(backend) for backend in graphics.HEADLESS}


def test_an_environment_that_is_not_closed_ends_without_a_complaint():
    """In a program with no backend named and no display, which also finds one by itself."""
    code = """
import gymnasium, sbsrl.systems
env = gymnasium.make("sbsrl/RWRLCartpole-v0", render_mode="rgb_array")
env.reset(seed=0)
print(env.render().shape)
"""
    bare = {name: value for name, value in os.environ.items() if name not in {"MUJOCO_GL", *graphics.DISPLAYS}}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=bare, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("(240, 320, 3)\n", "")
