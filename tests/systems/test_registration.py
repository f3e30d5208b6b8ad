"""Own tasks by the names that Gymnasium knows them by."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

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


def test_there_are_no_pictures():
    with pytest.raises(UserError, match="render_mode 'human'"):
        gymnasium.make("sbsrl/Pendulum-v0", render_mode="human")


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
