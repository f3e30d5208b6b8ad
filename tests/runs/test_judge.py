"""A policy's true mean cost: the one that a plain simulation gives, and nothing the learner sees."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider

from sbsrl import learn
from sbsrl.errors import UserError
from sbsrl.runs.judge import judge
from sbsrl.systems.equations import EquationsEnv


@pytest.fixture(scope="module", autouse=True)
def known():
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)
        yield


HASTY = {"offline_updates": 50, "offline_blocks": 0, "checks": 1}


def test_it_is_the_mean_of_a_plain_simulation():
    task, policy, key = slider.make(), slider.Pusher(jnp.asarray(0.9)), jax.random.key(3)
    found = judge(task, policy, 5, key)
    returns, costs = [], []
    for each in jax.random.split(key, 5):
        start_key, _, act_key = jax.random.split(each, 3)
        x, total, charged = slider.start(start_key), 0.0, 0.0
        for t in range(slider.HORIZON):
            a, _, _ = policy.act(x, (), jax.random.fold_in(act_key, np.uint32(t)))
            y = slider.dynamics(x, a)
            total, charged, x = total + float(slider.reward(x, a, y)), charged + float(slider.costs(x, a, y)[0]), y
        returns.append(total)
        costs.append(charged)
    np.testing.assert_allclose(found["true_return"], np.mean(returns), rtol=1e-9)
    np.testing.assert_allclose(found["true_cost"], np.mean(costs), rtol=1e-9)
    np.testing.assert_allclose(found["true_violations"], np.mean(np.array(costs) > 1.0))
    assert found["true_cost"] > 0


def test_judging_changes_nothing_but_the_metrics():
    plain, judged = (learn("slider", episodes=1, judged=count, **HASTY).records for count in (0, 4))
    for one, other in zip(plain, judged, strict=True):
        extra = other.metrics.keys() - one.metrics.keys()
        assert extra == {"true_return", "true_cost", "true_violations"}
        assert one.reward == other.reward
        assert {name: other.metrics[name] for name in one.metrics} == dict(one.metrics)


def unwritten(**changes):
    """The slider as it is known from playing it only."""
    return replace(slider.make(), equations=None, **changes)


def test_a_simulation_without_equations_is_judged_by_playing_another_copy_of_it():
    """Five episodes by hand, with the same seeds and keys."""
    policy, key = slider.Pusher(jnp.asarray(0.9)), jax.random.key(3)
    found = judge(unwritten(), policy, 5, key)
    keys = jax.random.split(key, 5)
    returns, costs = [], []
    for seed, each in zip(np.asarray(jax.random.bits(keys[0], (5,))) % 2**31, keys, strict=True):
        env = slider.open_system()
        x, _ = env.reset(seed=int(seed))
        total = charged = 0.0
        for t in range(slider.HORIZON):
            act_key, _ = jax.random.split(jax.random.fold_in(each, np.uint32(t)))
            a, _, _ = policy.act(jnp.asarray(x), (), act_key)
            x, reward, _, _, info = env.step(np.asarray(a))
            total, charged = total + reward, charged + info["cost"]
        returns.append(total)
        costs.append(charged)
    assert found.keys() == {"true_return", "true_cost", "true_violations"}
    np.testing.assert_allclose(found["true_return"], np.mean(returns), rtol=1e-9)
    np.testing.assert_allclose(found["true_cost"], np.mean(costs), rtol=1e-9)
    np.testing.assert_allclose(found["true_violations"], np.mean(np.array(costs) > 1.0))
    assert found["true_cost"] > 0


def test_both_ways_to_judge_agree():
    """Over 100 episodes each, from initial states of their own: 5 %."""
    policy = slider.Pusher(jnp.asarray(0.9))
    written, played = (judge(task, policy, 100, jax.random.key(1)) for task in (slider.make(), unwritten()))
    for name in ("true_return", "true_cost"):
        assert played[name] == pytest.approx(written[name], rel=0.05)


class Broken(EquationsEnv):
    """A simulation that fails in its third step."""

    left = 3

    def step(self, action):
        self.left -= 1
        if not self.left:
            raise RuntimeError("no contact")
        return super().step(action)


def test_a_simulation_that_fails_says_so_and_is_closed():
    """Half an episode is no sample of a return."""
    closed = []

    def open_broken():
        env = Broken(slider.EQUATIONS, slider.LOW, slider.HIGH, slider.HORIZON)
        env.close = lambda: closed.append(True)
        return env

    with pytest.raises(UserError, match=r"the simulation of slider failed while a policy was judged.*no contact"):
        judge(unwritten(open=open_broken), slider.Pusher(jnp.asarray(0.5)), 2, jax.random.key(0))
    assert closed == [True]


def test_what_is_neither_written_down_nor_simulated_cannot_be_judged():
    assert judge(unwritten(simulated=False), slider.Pusher(jnp.asarray(0.5)), 3, jax.random.key(0)) == {}
