"""MuJoCo and dm-control are there in the right version, or one line says what to do."""

import sys
from importlib.metadata import PackageNotFoundError

import pytest

from sbsrl.errors import UserError
from sbsrl.systems import physics
from sbsrl.tasks import make_task

ON_MUJOCO = ("rwrl-cartpole", "rwrl-humanoid", "rwrl-quadruped", "go-to-goal")


def refusal(task):
    with pytest.raises(UserError) as refused:
        make_task(task).open()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("task", ON_MUJOCO)
def test_without_mujoco_it_says_what_to_install(monkeypatch, task):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(physics, "version", missing)
    assert "pip install 'sbsrl[mujoco]'" in refusal(task)


def test_without_dm_control_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    assert "pip install 'sbsrl[mujoco]'" in refusal("rwrl-humanoid")


@pytest.mark.parametrize("task", ON_MUJOCO)
@pytest.mark.parametrize("found", ["4.0.0", "3.16.1", "2.3.3"])
def test_of_another_version_it_says_which_is_there_which_is_needed_and_how_to_get_it(monkeypatch, task, found):
    monkeypatch.setattr(physics, "version", lambda name: found)
    said = refusal(task)
    assert f"version {found} is installed" in said
    assert "pip install 'mujoco>=3.17,<4'" in said


@pytest.mark.parametrize("found", ["3.17.0", "3.18.2", "3.17.0rc1", "3.99"])
def test_versions_that_fit_are_not_refused(monkeypatch, found):
    monkeypatch.setattr(physics, "version", lambda name: found)
    assert physics.load_mujoco("a task").MjModel is not None


def test_loading_leaves_the_choice_of_a_library_to_whoever_draws(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    physics.load_suite("a task")
    assert "MUJOCO_GL" not in physics.os.environ
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    physics.load_suite("a task")
    assert physics.os.environ["MUJOCO_GL"] == "osmesa"
