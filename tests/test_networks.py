"""Networks are what their formula says, one by one or together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.networks import apply, apply_members, cheap_silu, equal, init_network, of_last_inputs


def by_hand(layers, x):
    """In double precision, without JAX."""
    for i, (weights, bias) in enumerate(layers):
        x = x @ np.asarray(weights, float) + np.asarray(bias, float)
        if i < len(layers) - 1:
            x = x * (1 + x / np.sqrt(1 + x**2)) / 2
    return x


def test_a_network_is_its_formula(getkey):
    network = init_network(getkey(), (3, 8, 5, 2))
    x = jax.random.normal(getkey(), (7, 3), jnp.float32)
    np.testing.assert_allclose(apply(network, x), by_hand(network, np.asarray(x, float)), atol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_members_together_are_members_one_by_one(getkey, shared):
    members = init_network(getkey(), (3, 8, 2), members=4)
    x = jax.random.normal(getkey(), (7, 3) if shared else (4, 7, 3), jnp.float32)
    together = apply_members(members, x)
    for m in range(4):
        alone = apply(jax.tree.map(lambda leaf, m=m: leaf[m], members), x if shared else x[m])
        np.testing.assert_allclose(together[m], alone, atol=1e-5)


def test_weights_have_the_variance_of_their_inputs_and_members_differ(getkey):
    first, last = init_network(getkey(), (400, 200, 100), members=2, last=0.1)
    np.testing.assert_allclose(np.std(first.weights), 1 / np.sqrt(400), rtol=0.02)
    np.testing.assert_allclose(np.std(last.weights), 0.1 / np.sqrt(200), rtol=0.03)
    assert not np.allclose(first.weights[0], first.weights[1])
    assert not np.any(np.asarray(first.bias))


def test_the_activation_is_close_to_silu_and_has_slopes_everywhere():
    x = jnp.linspace(-6, 6, 401, dtype=jnp.float32)
    np.testing.assert_allclose(cheap_silu(x), jax.nn.silu(x), atol=0.16)
    assert np.all(np.isfinite(jax.vmap(jax.grad(cheap_silu))(x)))


def test_networks_are_equal_only_if_all_their_numbers_are(getkey):
    network = init_network(getkey(), (3, 4, 2))
    assert equal(network, jax.tree.map(jnp.array, network))
    for i, layer in enumerate(network):
        for name, numbers in layer._asdict().items():
            other = layer._replace(**{name: numbers.at[(0,) * numbers.ndim].add(1e-6)})
            assert not equal(network, (*network[:i], other, *network[i + 1 :]))


@pytest.mark.parametrize("sizes", [(5, 2), (5, 4, 2)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_only_what_is_made_of_the_last_inputs_has_a_slope(getkey, sizes, count):
    slopes = jax.tree.map(jnp.ones_like, init_network(getkey(), sizes))
    (weights, bias), *others = of_last_inputs(slopes, count)
    np.testing.assert_array_equal(weights.sum(axis=1) > 0, np.arange(5) >= 5 - count)
    np.testing.assert_array_equal(weights[5 - count :], slopes[0].weights[5 - count :])
    assert not any(np.any(leaf) for leaf in jax.tree.leaves((bias, others)))
