"""Trajectories that follow another member at each step (TS1)."""

import jax
import jax.numpy as jnp
import numpy as np
from nets import make_ensemble

from sbsrl.belief.ensemble.model import Combination
from sbsrl.belief.ensemble.switching import Switching
from sbsrl.belief.protocol import Renewable, Rows, SideBySide
from sbsrl.model import Model

M = 4


def test_they_keep_the_protocols(ensemble):
    samples = Switching(ensemble, 3)
    assert isinstance(samples.member(jnp.int32(0)), Model)
    assert samples.member(jnp.int32(0)).stochastic
    assert isinstance(samples, SideBySide)
    assert not isinstance(samples, Renewable)
    assert isinstance(samples.beside(1, 1), Rows)
    assert len(samples) == 3


def test_a_step_is_that_of_the_member_which_was_drawn(ensemble, getkey):
    x, a = jax.random.normal(getkey(), (M, 2), jnp.float32), jax.random.normal(getkey(), (M, 1), jnp.float32)
    noise = jnp.array([[0.01], [0.26], [0.74], [0.99]], jnp.float32)  # of four members: 0, 1, 2, 3
    moved, _ = Switching(ensemble, 1).beside(M, 0).steps(x, a, noise)
    for m in range(M):
        own = Combination(ensemble, jnp.eye(M, dtype=jnp.float32)[m])
        y = own(x[m], a[m])
        np.testing.assert_allclose(moved.states[m], y, rtol=1e-5)
        np.testing.assert_allclose(moved.rewards[m], own.reward(x[m], a[m], y), rtol=1e-4)
        np.testing.assert_allclose(moved.costs[m], own.costs(x[m], a[m], y), rtol=1e-4)


def test_members_are_as_they_were_trained_whatever_the_samples_are(getkey):
    """`state_share` narrows samples, not members."""
    x, a = jax.random.normal(getkey(), (1, 2), jnp.float32), jax.random.normal(getkey(), (1, 1), jnp.float32)
    noise = jnp.zeros((1, 1), jnp.float32)
    wide, narrow = (
        Switching(make_ensemble(state_share=share), 1).beside(1, 0).steps(x, a, noise)[0] for share in (1.0, 0.3)
    )
    np.testing.assert_array_equal(wide.states, narrow.states)


def test_every_member_is_drawn_as_often_and_anew_at_every_step(ensemble, getkey):
    """40,000 draws: shares within 0.01 of a quarter, and consecutive ones independent within 0.01."""
    drawn = np.floor(np.asarray(Switching(ensemble, 1).beside(1, 0).noises(getkey(), 40_000, True))[:, 0, -1] * M)
    np.testing.assert_allclose([np.mean(drawn == m) for m in range(M)], 0.25, atol=0.01)
    np.testing.assert_allclose(np.mean(drawn[1:] == drawn[:-1]), 0.25, atol=0.01)


def test_noise_of_the_members_is_drawn_too(getkey):
    rows = Switching(make_ensemble(noisy="training"), 2).beside(1, 1)
    assert rows.noises(getkey(), 5, training=True).shape == (5, 3, 2)
    np.testing.assert_array_equal(rows.noises(getkey(), 5, training=False)[..., 0], np.zeros((5, 3)))
