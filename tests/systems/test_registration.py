"""Own tasks by the names that Gymnasium knows them by."""

import subprocess
import sys
import warnings
from contextlib import closing

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_sb3

from sbsrl.errors import UserError
from sbsrl.systems.registration import ENVIRONMENTS, register


@pytest.fixture(params=ENVIRONMENTS)
def env(request):
    env = gymnasium.make(request.param)
    yield env
    env.close()


def test_it_passes_the_checker_of_gymnasium(env):
    """Warnings are errors, but for limits of states that are infinite, and of actions that the suite has unequal."""
    unequal = not np.array_equal(env.action_space.high, -env.action_space.low)
    infinite = np.isinf(env.observation_space.high).any()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    wanted = ["minimum value is -infinity", "maximum value is infinity"] if infinite else []
    wanted = [*(["symmetric and normalized"] if unequal else []), *wanted]
    assert len(caught) == len(wanted)
    assert all(part in str(warning.message) for part, warning in zip(wanted, caught, strict=True))


def test_the_same_seed_and_actions_give_the_same_episode(env):
    def play():
        env.action_space.seed(1)
        return [env.reset(seed=3)[0], *(env.step(env.action_space.sample())[0] for _ in range(5))]

    np.testing.assert_array_equal(play(), play())


@pytest.fixture(params=ENVIRONMENTS)
def drawn(request):
    env = gymnasium.make(request.param, render_mode="rgb_array")
    yield env
    env.close()


def test_every_task_can_be_drawn(drawn):
    """As Gymnasium wants it, and the picture of a later step is another one."""
    assert drawn.metadata["render_modes"] == ["rgb_array"]
    assert drawn.metadata["render_fps"] > 0
    drawn.reset(seed=3)
    first = drawn.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    assert first.std() > 5  # something is in it
    for _ in range(3):
        drawn.step(drawn.action_space.high)
    assert not np.array_equal(drawn.render(), first)


def test_drawing_changes_nothing(drawn):
    """Observations, rewards and costs are those of an environment that is not drawn."""

    def play(env, look):
        found = [env.reset(seed=5)[0]]
        for i in range(4):
            look(env)
            observation, reward, *_, info = env.step(env.action_space.low * (-1) ** i)
            found.append(np.array([*observation, reward, *np.atleast_1d(info["cost"])]))
        return found

    with closing(gymnasium.make(drawn.spec.id)) as plain:
        expected = play(plain, lambda env: None)
    for a, b in zip(play(drawn, lambda env: env.render()), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_with_a_mode_it_passes_the_checkers_too(drawn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test above tells which warnings there are
        check_env(drawn.unwrapped)
        check_for_sb3(drawn.unwrapped)


def test_other_modes_are_refused():
    with pytest.raises(UserError, match="no render_mode 'human' of this system; it has rgb_array"):
        gymnasium.make("sbsrl/Pendulum-v0", render_mode="human")


def test_without_a_mode_nothing_is_drawn_and_before_a_reset_there_is_nothing_to_draw(env):
    with closing(gymnasium.make(env.spec.id, render_mode="rgb_array")) as drawn, pytest.raises(ResetNeeded):
        drawn.unwrapped.render()
    env.reset(seed=0)
    assert env.unwrapped.render() is None


def test_registering_again_changes_nothing():
    before = [gymnasium.spec(name) for name in ENVIRONMENTS]
    register()  # a warning would be an error
    assert all(gymnasium.spec(name) is spec for name, spec in zip(ENVIRONMENTS, before, strict=True))


def _program(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_name_may_say_what_to_import():
    code = """
import gymnasium
assert "sbsrl/Ledge-v0" not in gymnasium.registry
print(gymnasium.make("sbsrl.systems:sbsrl/Ledge-v0").spec.id)
"""
    assert _program(code) == ["sbsrl/Ledge-v0"]


def test_registering_loads_neither_jax_nor_a_task():
    code = """
import sys
import sbsrl
before = set(sys.modules)
import sbsrl.systems
print(*(name for name in set(sys.modules) - before if name.startswith(("sbsrl", "jax"))))
"""
    assert set(_program(code)) - {"sbsrl.errors"} == {"sbsrl.systems", "sbsrl.systems.registration"}
