"""Predicted costs: of whole episodes, and of pieces of them from states that were visited."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Beside, known
from nets import make_ensemble

from sbsrl.belief.ensemble.model import Samples
from sbsrl.costs import nothing_charged
from sbsrl.prediction import costs_in_pieces, final_costs

SHIFTS = np.array([0.1, 0.3, 0.7])


def drift(s):
    """x grows by s and by the action; a step costs where it leads to."""
    return known(lambda x, a: x + s + a, lambda x, a, y: y[0], lambda x, a, y: y)


DRIFTING = Beside(jnp.asarray(SHIFTS, jnp.float32), drift)


class Growing(eqx.Module):
    """Acts 0, 1, 2, ..., whatever it sees: it remembers how often it did."""

    def init(self):
        return jnp.zeros((), jnp.int32)

    def act(self, x, state, key):
        return jnp.full(1, state, x.dtype), state + 1, {}


class Halving(eqx.Module):
    """Acts -x / 2."""

    def init(self):
        return ()

    def act(self, x, state, key):
        return -0.5 * x, (), {}


def pieces(samples, policy, states, steps, longest, aggregations=("sum",), seed=0):
    states = jnp.asarray(np.asarray(states, np.float32).reshape(len(steps), -1))
    return np.asarray(
        costs_in_pieces(
            samples, policy, states, jnp.asarray(steps, jnp.int32), longest, aggregations, jax.random.key(seed)
        )
    )


def whole(samples, policy, x, steps, seed):
    nothing = nothing_charged(1, ("sum",))[0]
    first, end = jnp.asarray(0, jnp.int32), jnp.asarray(steps, jnp.int32)
    x = jnp.asarray(x, jnp.float32)
    return final_costs(samples, policy, policy.init(), x, nothing, first, end, steps, ("sum",), seed)


def test_one_piece_is_the_whole_episode():
    """Of an ensemble that draws its next states, with the same randomness: exactly."""
    samples = Samples.draw(make_ensemble(noisy="always"), 5, jnp.float32(2.0), False, jax.random.key(1))
    (key,) = jax.random.split(jax.random.key(0), 1)

    class Left(Halving):
        def act(self, x, state, key):
            return -0.5 * x[:1], (), {}

    found = pieces(samples, Left(), [[0.3, -0.2]], [12], 12)
    wanted = np.asarray(whole(samples, Left(), [0.3, -0.2], 12, key))
    assert np.ptp(wanted) > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def by_hand(s, steps, x=1.0):
    """What each step of an episode costs, and where it begins."""
    places, costs = [], []
    for _ in range(steps):
        places.append(x)
        x = x + s - 0.5 * x
        costs.append(x)
    return places, costs


@pytest.mark.parametrize("length", [1, 4, 5, 12])
def test_pieces_of_a_sample_s_own_episode_add_up_to_it(length):
    """Each sample predicts what follows from the states of an episode that it made itself; 12 steps, 1e-5."""
    first = np.arange(0, 12, length)
    for m, s in enumerate(SHIFTS):
        places, costs = by_hand(s, 12)
        lengths = np.minimum(length, 12 - first)
        found = pieces(DRIFTING, Halving(), np.array(places)[first], lengths, length)
        assert found[m, 0] == pytest.approx(sum(costs), rel=1e-5)


def test_pieces_are_predicted_from_the_states_they_begin_at():
    """Two steps from 1 and one from 5, by hand."""
    found = pieces(DRIFTING, Halving(), [1.0, 5.0], [2, 1], 2)
    wanted = [sum(by_hand(s, 2)[1]) + sum(by_hand(s, 1, 5.0)[1]) for s in SHIFTS]
    np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-5)


def test_pieces_of_no_step_add_nothing_wherever_they_begin():
    one = pieces(DRIFTING, Halving(), [1.0], [3], 3)
    padded = pieces(DRIFTING, Halving(), [1.0, 1e6, -7.0], [3, 0, 0], 3)
    np.testing.assert_allclose(padded, one, rtol=1e-6)


def test_a_policy_with_a_memory_begins_anew_in_each_piece():
    """Actions 0, 1 and again 0, 1 from 0: each piece costs s and 2 s + 1."""
    found = pieces(DRIFTING, Growing(), [0.0, 0.0], [2, 2], 2)
    np.testing.assert_allclose(found[:, 0], 2 * (3 * SHIFTS + 1), rtol=1e-5)
