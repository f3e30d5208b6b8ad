"""A policy's true mean cost: the one that a plain simulation gives, and nothing the learner sees."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider

from sbsrl import learn
from sbsrl.runs.judge import judge


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


def test_a_system_without_equations_cannot_be_judged():
    assert judge(replace(slider.make(), equations=None), slider.Pusher(jnp.asarray(0.5)), 3, jax.random.key(0)) == {}
