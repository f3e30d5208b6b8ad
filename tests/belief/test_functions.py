"""Models of unit functions: what they answer, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.functions import Frame, GPSamples, GPSystem, Stack
from sbsrl.belief.pathwise import WeightedFeatures
from sbsrl.model import Model, Signals

FRAME = Frame(lambda x, a: 0.5 * x, jnp.array([1.0, 0.0]), jnp.array([2.0, 3.0]))
SIGNALS = Signals(lambda x, a, y: x[0] + y[1], lambda x, a, y: y * a[0])
X, A = jnp.array([0.2, -0.4]), jnp.array([0.5])


def plane(weights):
    """g(z) = W z."""
    return WeightedFeatures(lambda z: z, weights)


SYSTEM = GPSystem(FRAME, (plane(jnp.ones((2, 3))),), SIGNALS)


def test_a_system_is_mean_offset_and_scaled_function():
    """To 1e-15; g is 0.3 for both outputs."""
    np.testing.assert_allclose(SYSTEM(X, A), [0.1 + 1 + 0.6, -0.2 + 0.9], atol=1e-15)
    np.testing.assert_array_equal(SYSTEM.many(X[:, None], A[:, None])[:, 0], SYSTEM(X, A))
    np.testing.assert_array_equal(SYSTEM.draw(X, A, jax.random.key(0)), SYSTEM(X, A))


def test_a_system_is_a_model_that_draws_nothing():
    assert isinstance(SYSTEM, Model)
    assert SYSTEM.stochastic is False
    assert SYSTEM.reward(X, A, jnp.array([3.0, 4.0])) == 4.2
    np.testing.assert_array_equal(SYSTEM.costs(X, A, jnp.array([3.0, 4.0])), [1.5, 2.0])


def samples(signals):
    weights = jnp.arange(3.0)[:, None, None] * jnp.ones((3, 2, 3))
    return GPSamples(FRAME, (Stack.varying(plane(jnp.ones((2, 3))), lambda f: f.weights, weights),), signals)


def test_members_have_the_signals_of_the_samples():
    member = samples(SIGNALS).member(jnp.int32(1))
    np.testing.assert_array_equal(member(X, A), SYSTEM(X, A))
    assert member.reward(X, A, X) == SYSTEM.reward(X, A, X)
    assert member.signals is SIGNALS


@pytest.mark.parametrize("signal", ["reward", "costs"])
def test_signals_that_are_not_known_are_refused_with_the_remedy(signal):
    for model in (GPSystem(FRAME, SYSTEM.parts), samples(None).member(jnp.int32(0))):
        assert isinstance(model, Model)
        with pytest.raises(
            UserError, match=r"^reward and costs are not known, and a Gaussian .*, or use another belief.$"
        ):
            getattr(model, signal)(X, A, X)
