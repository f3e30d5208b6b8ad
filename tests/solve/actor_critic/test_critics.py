"""Targets by hand, values that converge to known ones, and the one conversion to the budget of an episode."""

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.solve.actor_critic.critics import MOST, Judged, init_critics, inputs, learn, q_values, targets
from sbsrl.solve.network.network_policy import Units
from sbsrl.solve.network.segments import CODE

UNITS = Units(*(jnp.asarray(v, jnp.float32) for v in ([0.0], [1.0], [-1.0], [1.0])))


def test_a_target_of_one_step_is_that_of_a_hand_computation():
    """gamma = 0.9, alpha = 0.5: 0.1 * 2 + 0.9 (3 - 0.1 * 0.5 * (-4)) for the reward, 0.1 + 0.9 * 2 for the cost."""
    after = jnp.float32([[[3.0, 2.0]]])
    found = targets(jnp.float32([[[2.0, 1.0]]]), after, jnp.float32([[-4.0]]), jnp.float32(0.5), 0.9, 0.0)
    np.testing.assert_allclose(found, [[[0.2 + 0.9 * 3.2, 0.1 + 0.9 * 2.0]]], rtol=1e-6)


def test_a_target_follows_the_rollout_before_it_asks_the_critics():
    """Two steps, gamma = 0.9, lambda = 0.5; G_1 = 0.1 * 1 + 0.9 * 2, G_0 = 0.1 * 3 + 0.9 (0.5 * 1 + 0.5 G_1)."""
    signals = jnp.float32([[[0.0, 3.0]], [[0.0, 1.0]]])
    after = jnp.float32([[[0.0, 1.0]], [[0.0, 2.0]]])
    found = targets(signals, after, jnp.zeros((2, 1), jnp.float32), jnp.float32(0.0), 0.9, 0.5)
    last = 0.1 + 0.9 * 2.0
    np.testing.assert_allclose(found[:, 0, 1], [0.3 + 0.9 * (0.5 + 0.5 * last), last], rtol=1e-6)


def test_costs_are_no_gain_and_not_worse_than_the_worst():
    signals, after = jnp.float32([[[-9.0, -9.0, 900.0]]]), jnp.zeros((1, 1, 3), jnp.float32)
    found = targets(signals, after, jnp.zeros((1, 1), jnp.float32), jnp.float32(0.0), 0.9, 0.0)
    np.testing.assert_allclose(found[0, 0], [-0.9, 0.0, MOST], rtol=1e-6)


def chain(costs, discount):
    """The discounted mean per step from every state of a chain, the last of which repeats itself."""
    values = [costs[-1]]
    for cost in costs[-2::-1]:
        values.insert(0, (1 - discount) * cost + discount * values[0])
    return np.array(values)


def code(number):
    return jnp.zeros((1, CODE), jnp.float32).at[0, number].set(1.0)


def test_values_of_a_chain_are_learned_for_every_model():
    """Four states in a row that cost 0, 0, 1, 0.5 on one model and twice that on another; gamma = 0.8. To 0.03."""
    x = jnp.float32([[-1.0], [-0.3], [0.3], [1.0]])
    costs, n = np.array([0.0, 0.0, 1.0, 0.5]), 4
    codes = jnp.concatenate([jnp.tile(code(0), (n, 1)), jnp.tile(code(1), (n, 1))])
    signals = jnp.float32(np.concatenate([costs, 2 * costs])[:, None] * np.ones((1, 2)))
    states, after = jnp.tile(x, (2, 1)), jnp.tile(jnp.concatenate([x[1:], x[-1:]]), (2, 1))
    still = jnp.zeros((2 * n, 1), jnp.float32)

    def update(critics, _):
        ahead = jnp.mean(q_values(critics.followers, inputs(UNITS, after, still, codes)), axis=0)
        zero = jnp.zeros((1, 2 * n), jnp.float32)
        wanted = targets(signals[None], ahead[None], zero, jnp.float32(0.0), 0.8, 0.0)[0]
        return learn(critics, UNITS, Judged(states, still, codes, wanted), 1e-3)

    critics, _ = jax.jit(lambda c: jax.lax.scan(update, c, None, length=3000))(
        init_critics(jax.random.key(0), 1, 1, 2, 32)
    )
    found = np.mean(q_values(critics.networks, inputs(UNITS, states, still, codes)), axis=0)[:, 1]
    np.testing.assert_allclose(found[:n], chain(costs, 0.8), atol=0.03)
    np.testing.assert_allclose(found[n:], 2 * chain(costs, 0.8), atol=0.03)


def test_the_conversion_is_exact_for_a_cost_that_is_the_same_in_every_step():
    """T = 50 steps of 0.4 cost 20; in units of d = 10 per episode a step is 0.4 / (10 / 50) = 2, and q * d = 20."""
    q = chain(np.full(50, 0.4 / (10 / 50)), 0.99)[0]
    np.testing.assert_allclose(q * 10, 50 * 0.4, rtol=1e-12)


def test_early_costs_count_more_than_late_ones():
    """The same 10 of cost in the first or in the last ten of 50 steps, gamma = 0.95."""
    early, late = np.zeros(51), np.zeros(51)
    early[:10], late[40:50] = 1.0, 1.0
    found = [50 * chain(each, 0.95)[0] for each in (early, late)]
    assert found[0] > 10 > found[1]
    weights = 0.05 * 0.95 ** np.arange(50)
    np.testing.assert_allclose(found, [50 * weights[:10].sum(), 50 * weights[40:].sum()], rtol=1e-12)
