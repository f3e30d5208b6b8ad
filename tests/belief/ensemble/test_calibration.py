"""kappa: from ensembles whose error is known, and as a rule that keeps a promised rate."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets import make_ensemble

from sbsrl.belief.ensemble.calibration import adapted, calibrate, ratio


@cache
def silent_ensemble(members):
    """Members that predict no change."""
    ensemble = make_ensemble(members=members)
    silent = jax.tree.map(jnp.zeros_like, ensemble.nets.members)
    scales = eqx.tree_at(lambda s: s.change_mean, ensemble.scales, jnp.zeros(1, jnp.float32))
    return eqx.tree_at(lambda e: (e.nets.members, e.scales), ensemble, (silent, scales))


def constant_ensemble(offsets):
    """Members that predict a change of the second state by an offset of their own, whatever the input."""
    ensemble = silent_ensemble(len(offsets))
    bias = np.array(ensemble.nets.members.motion[-1].bias)
    bias[:, 0] = offsets
    return eqx.tree_at(lambda e: e.nets.members.motion[-1].bias, ensemble, jnp.asarray(bias))


def drifting_episode(change, steps=100):
    """The second state grows by the same amount in every step; nothing costs."""
    place = change * np.arange(steps + 1.0)
    states = np.stack([np.concatenate([[0.0], place[:-1]]), place], axis=1)[:-1]
    return [jnp.asarray(part, jnp.float32) for part in (states, np.zeros((steps, 1)), np.zeros((steps, 1)))]


@pytest.mark.parametrize("error", [0.5, 1.0, 2.5])
def test_the_ratio_of_a_known_error_is_found(error):
    """Members at +-1 deviation about 0, and a truth that is `error` predictive deviations away."""
    offsets = np.array([-1.0, 1.0, -1.0, 1.0]) * 0.01
    deviation = np.sqrt(np.var(offsets, ddof=1) * (1 + 1 / 4))
    states, actions, costs = drifting_episode(0.5 * error * deviation)  # the unit of changes is 0.5
    test = calibrate(constant_ensemble(offsets), states, actions, costs, jnp.ones(100, bool))
    np.testing.assert_allclose(ratio(test.state_error, test.state_variance), error, rtol=1e-3)


def test_truths_drawn_like_members_give_one():
    """100 truths, each an independent draw of what the members are draws of: 1 up to 15 %."""
    rng = np.random.default_rng(0)
    total = None
    for _ in range(100):
        draws = 0.01 * rng.normal(size=6)
        states, actions, costs = drifting_episode(0.5 * draws[0])
        test = calibrate(constant_ensemble(draws[1:]), states, actions, costs, jnp.ones(100, bool))
        total = test if total is None else total + test
    np.testing.assert_allclose(ratio(total.state_error, total.state_variance), 1.0, rtol=0.15)


def test_segments_that_were_not_played_do_not_count():
    offsets = np.array([-1.0, 1.0, -1.0, 1.0]) * 0.01
    states, actions, costs = drifting_episode(0.02)
    wrong = states.at[50:].set(1e3)
    valid = jnp.arange(100) < 50
    one, other = (calibrate(constant_ensemble(offsets), x, actions, costs, valid) for x in (states, wrong))
    np.testing.assert_allclose(one, other)
    assert float(one.state_error) > 0


def test_without_variance_nothing_is_said():
    assert ratio(1.0, 0.0) == 0.0


def test_kappa_rises_after_a_miss_and_falls_slowly_otherwise():
    before = jnp.log(jnp.float32(2.0))
    after_miss = adapted(before, True, 0.2, 0.1, (1.0, 5.0))
    after_hit = adapted(before, False, 0.2, 0.1, (1.0, 5.0))
    np.testing.assert_allclose(after_miss - before, 0.18, rtol=1e-4)
    np.testing.assert_allclose(after_hit - before, -0.02, rtol=1e-3)


@pytest.mark.parametrize("missed", [True, False])
def test_kappa_stays_within_its_limits(missed):
    value = jnp.log(jnp.float32(2.0))
    for _ in range(200):
        value = adapted(value, missed, 0.2, 0.1, (1.25, 3.0))
    np.testing.assert_allclose(jnp.exp(value), 3.0 if missed else 1.25, rtol=1e-5)


@pytest.mark.parametrize("scale", [0.7, 1.5, 3.0])
def test_in_the_long_run_the_promised_share_is_missed(scale):
    """However wide the truth is spread: real costs are `scale` |N(0, 1)|, predicted ones kappa. 3000 tests: 0.02."""
    rng = np.random.default_rng(1)
    value, misses = jnp.log(jnp.float32(2.0)), []
    for real in scale * np.abs(rng.normal(size=3000)):
        misses.append(bool(real > float(jnp.exp(value))))
        value = adapted(value, misses[-1], 0.2, 0.1, (0.01, 100.0))
    np.testing.assert_allclose(np.mean(misses[200:]), 0.1, atol=0.02)
