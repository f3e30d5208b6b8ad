"""Linear clones: found exactly, and with the right gains only if the hand of the behaviour forgets."""

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.networks import Layer, equal
from sbsrl.solve.network.network_policy import Units, act, clone
from sbsrl.tasks.linear_behaviour import MEMORY, Linear, Searched

UNITS = Units(*(jnp.array(part, jnp.float32) for part in ([1.0, -2.0, 0.0], [1.0, 2.0, 0.01], [-1.0, 0.0], [1.0, 4.0])))
FORM = (Layer(jnp.zeros((3, 2), jnp.float32), jnp.zeros(2, jnp.float32)),)


def states(count=500):
    """Within the units' five deviations; the third number hardly varies."""
    return jnp.asarray(np.random.default_rng(0).normal(size=(count, 3)) * [1.0, 2.0, 0.01] + [1.0, -2.0, 0.0])


def test_a_linear_behaviour_is_found_whatever_varies_little():
    """Its actions are those of a network without hidden layers: weights and offsets, 2e-3."""
    weights = jnp.array([[0.5, -0.3], [-0.2, 0.1], [0.01, 0.4]], jnp.float32)
    behaviour = (Layer(weights, jnp.array([0.1, -0.2], jnp.float32)),)
    x = states().astype(jnp.float32)
    found = clone(FORM, UNITS, x, act(behaviour, UNITS, x), 1, jax.random.key(0))
    np.testing.assert_allclose(found[0].weights, behaviour[0].weights, atol=2e-3)
    np.testing.assert_allclose(found[0].bias, behaviour[0].bias, atol=2e-3)


def test_without_updates_nothing_is_cloned():
    x = states().astype(jnp.float32)
    assert equal(clone(FORM, UNITS, x, jnp.ones((500, 2), jnp.float32), 0, jax.random.key(0)), FORM)


def test_actions_at_their_limits_do_not_make_a_clone_infinite():
    x = states().astype(jnp.float32)
    actions = jnp.where(x[:, :1] > 1, UNITS.high[None], UNITS.low[None])
    found = clone(FORM, UNITS, x, actions, 1, jax.random.key(0))
    assert np.all(np.isfinite(found[0].weights))
    assert np.mean((act(found, UNITS, x) > jnp.array([[0.0, 2.0]], jnp.float32)) == (x[:, :1] > 1)) > 0.95


STEPS, GAINS, UNSTEADINESS = 20_000, np.array([-0.3, -0.2]), 0.05


def gains_of_the_clone(memory):
    """Of a behaviour with such a hand that keeps a sled in its place: place and speed, and the push.

    Pushes are small, so that tanh is hardly bent.
    """
    searched = Searched(np.zeros(2), np.ones(2), GAINS[None], np.zeros(1), np.zeros((1, 2)))
    policy = Linear.of(searched, (-1.0,), (1.0,), jnp.ones(()), jnp.asarray(UNSTEADINESS), memory)

    def step(carry, key):
        x, hand = carry
        a, hand, _ = policy.act(x, hand, key)
        y = jnp.stack([x[0] + 0.3 * x[1], 0.9 * x[1] + 0.5 * a[0]])
        return (y, hand), (x, a)

    _, (x, a) = jax.lax.scan(step, (jnp.zeros(2), policy.init()), jax.random.split(jax.random.key(0), STEPS))
    units = Units(*(jnp.array(part, jnp.float32) for part in ([0.0, 0.0], [1.0, 1.0], [-1.0], [1.0])))
    form = (Layer(jnp.zeros((2, 1), jnp.float32), jnp.zeros(1, jnp.float32)),)
    (layer,) = clone(form, units, x.astype(jnp.float32), a.astype(jnp.float32), 1, jax.random.key(0))
    return np.asarray(layer.weights[:, 0])


def test_of_a_hand_that_forgets_the_clone_has_the_gains_of_the_behaviour():
    """20,000 steps: 0.02."""
    np.testing.assert_allclose(gains_of_the_clone(0.0), GAINS, atol=0.02)


def test_of_a_hand_with_a_memory_it_learns_wrong_ones():
    """The speed shows what the hand did, which goes on: pushes seem to follow speed, by more than the true gain."""
    wrong = gains_of_the_clone(MEMORY)
    assert wrong[1] > GAINS[1] + 0.1
