"""A user's controller as a policy: it sees the observation alone, and stays within the limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.own.fallback import Fallback
from sbsrl.policy import Controller, Policy

KEY = jax.random.key(0)


def asked(function, x=(0.5, 2.0, 9.0), low=(-1.0,), high=(1.0,), states=2):
    policy = Fallback(function, low, high, states)
    action, state, metrics = policy.act(jnp.asarray(x), policy.init(), KEY)
    assert (state, metrics) == ((), {})
    return action


def test_it_is_a_policy():
    policy = Fallback(lambda x: -x[0], (-1.0,), (1.0,), 1)
    assert isinstance(policy, Policy)
    assert Controller(policy)(np.array([0.25])) == [-0.25]


def test_the_function_sees_the_observation_alone_as_plain_numbers():
    """Learned signals come after it in the state."""
    seen = []
    asked(lambda x: seen.append(x) or 0.0)
    assert isinstance(seen[0], np.ndarray)
    assert (seen[0].tolist(), seen[0].dtype) == ([0.5, 2.0], np.float64)


def test_a_function_that_changes_its_argument_changes_nothing_else():
    x = np.array([0.5, 2.0])
    Fallback(lambda x: x.fill(7.0) or 0.0, (-1.0,), (1.0,), 2).act(x, (), KEY)
    assert x.tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("given", "sent"),
    [(0.5, [0.5]), ([0.5], [0.5]), (np.array([[7.0]]), [1.0]), (-7, [-1.0]), (jnp.asarray(0.25), [0.25])],
)
def test_its_action_is_a_vector_within_the_limits(given, sent):
    assert asked(lambda x: given).tolist() == sent


def test_each_action_has_its_own_limits():
    assert asked(lambda x: (9.0, -9.0), low=(-1.0, -2.0), high=(1.0, 2.0)).tolist() == [1.0, -2.0]


def test_what_is_no_action_is_passed_on_for_others_to_refuse():
    assert asked(lambda x: [1.0, 2.0, 3.0]).tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(asked(lambda x: np.nan)).all()
