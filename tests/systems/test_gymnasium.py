"""Environments of Gymnasium as systems of a user's own, and this package's as environments for other programs."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_for_sb3

import sbsrl
from sbsrl.own.proposal import LARGEST_GP
from sbsrl.own.wording import in_words
from sbsrl.runs import check
from sbsrl.systems.registration import ENVIRONMENTS


def calm(x, a, y):
    """A cost that any system has."""
    return float(np.abs(a).max())


def continuous():
    """The newest version of every continuous environment of classic control and MuJoCo."""
    newest = {}
    for spec in gymnasium.registry.values():
        if str(spec.entry_point).startswith(("gymnasium.envs.classic_control", "gymnasium.envs.mujoco")):
            newest[spec.name] = max(newest.get(spec.name, (-1, "")), (spec.version or 0, spec.id))
    return sorted(identity for _, identity in newest.values() if identity not in DISCRETE)


DISCRETE = {"CartPole-v1", "MountainCar-v0", "Acrobot-v1"}


def test_all_are_there():
    assert {"Pendulum-v1", "MountainCarContinuous-v0", "Humanoid-v5", "InvertedPendulum-v5", "Ant-v5"} <= set(
        continuous()
    )
    assert len(continuous()) >= 13


@pytest.mark.parametrize("identity", continuous())
def test_every_continuous_environment_passes_the_check(identity):
    found = check(*in_words(f"gymnasium:{identity}", {"cost": calm, "budget": 1e6, "steps": 20}))
    assert [finding.text for finding in found if finding.kind == "wrong"] == []
    assert any("The belief is" in finding.text for finding in found)


@pytest.mark.parametrize("identity", sorted(DISCRETE))
def test_those_with_discrete_actions_are_explained(identity):
    (only,) = check(f"gymnasium:{identity}", {"budget": (1.0,)})
    assert only.kind == "wrong"
    assert "plans with numbers; wrap the system so that its action is a Box" in only.text


SMOKE = {
    "gp": {"candidates": 16, "elites": 4, "iterations": 2, "horizon": 5, "features": 16},
    "ensemble": {
        "offline_updates": 20,
        "online_updates": 5,
        "cloning_updates": 20,
        "offline_blocks": 1,
        "rounds": 1,
        "checks": 1,
    },
}


@pytest.mark.parametrize("identity", continuous())
def test_every_continuous_environment_can_be_learned(identity):
    """A run of one episode and the final policy, with the prior that it makes itself."""
    env = gymnasium.make(identity)
    size = gymnasium.spaces.flatdim(env.observation_space) + gymnasium.spaces.flatdim(env.action_space)
    kind = "gp" if size <= LARGEST_GP else "ensemble"
    small = {"episodes": 1, "method.samples": 3, **SMOKE[kind]}
    run = sbsrl.learn(f"gymnasium:{identity}", cost=calm, budget=1e6, steps=10, preset="smoke", **small)
    assert run.records[-1].phase == "final"
    assert run.experiment.settings.belief.name == kind


@pytest.mark.parametrize("identity", ENVIRONMENTS)
def test_own_tasks_pass_the_checkers_of_gymnasium_and_of_another_library(identity):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both recommend other units, which is no error
        check_env(gymnasium.make(identity).unwrapped, skip_render_check=True)
        check_for_sb3(gymnasium.make(identity), skip_render_check=True)


def test_another_library_can_train_on_them():
    """A few updates of PPO on the pendulum: they end, and the policy's weights have moved."""
    env = gymnasium.make("sbsrl/Pendulum-v0")
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    before = [weights.detach().numpy().copy() for weights in model.policy.parameters()]
    model.learn(128)
    after = [weights.detach().numpy() for weights in model.policy.parameters()]
    assert any(not np.array_equal(a, b) for a, b in zip(after, before, strict=True))
    action, _ = model.predict(env.reset(seed=0)[0])
    assert env.action_space.contains(action)
