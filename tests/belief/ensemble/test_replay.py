"""The replay: whole episodes, counted for each member on its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.ensemble.replay import Replay
from sbsrl.transitions import Transitions

MEMBERS = 3


def episode(steps, mark, costly=()):
    """Transitions whose state is (mark, t), with a cost in some steps."""
    t = np.arange(steps + 1.0)
    states = np.stack([np.full(steps + 1, float(mark)), t], axis=1)
    costs = np.zeros((steps, 1))
    costs[list(costly)] = 2.0
    return Transitions(states[:-1], np.full((steps, 1), float(mark)), states[1:], t[:-1], costs, np.zeros(steps, bool))


@pytest.fixture
def replay(getkey):
    """Two old episodes, of 5 and 3 steps, and a new one of 4; room for more."""
    replay = Replay.create(30, 6, (2, 1, 1, 1), MEMBERS)
    for data, new in ((episode(5, 1, costly=[2]), False), (episode(3, 2), False), (episode(4, 3, costly=[0]), True)):
        replay = replay.add(data, (1,), new, getkey())
    return replay


def with_counts(replay, counts):
    padded = np.zeros(replay.counts.shape, np.int32)
    padded[:, : len(counts[0])] = counts
    return Replay(**{**vars(replay), "counts": jnp.asarray(padded)})


def test_everything_is_kept_in_order(replay):
    assert int(replay.rows) == 12
    assert int(replay.episodes) == 3
    np.testing.assert_array_equal(replay.first[:3], [0, 5, 8])
    np.testing.assert_array_equal(replay.length, [5, 3, 4, 0, 0, 0])
    np.testing.assert_array_equal(replay.states[:12, 0], [1] * 5 + [2] * 3 + [3] * 4)
    np.testing.assert_array_equal(replay.changes[:12, 0], 1)
    np.testing.assert_array_equal(replay.costly[:2], [2, 8])
    assert int(replay.costly_rows) == 2


def test_every_episode_counts_for_some_member(getkey):
    replay = Replay.create(200, 100, (2, 1, 1, 1), 2)
    for i in range(100):
        replay = replay.add(episode(2, i), (1,), False, getkey())
    assert np.asarray(replay.counts).sum(axis=0).min() >= 1
    np.testing.assert_allclose(np.asarray(replay.counts).mean(), 1.0, atol=0.3)
    assert not np.array_equal(replay.counts[0], replay.counts[1])


def test_shares_are_those_of_a_hand_computation(replay):
    counted = with_counts(replay, [[2, 1, 1], [0, 1, 3], [1, 0, 0]])
    shares = counted.shares(0.5, jnp.zeros(6, bool))
    np.testing.assert_allclose(shares[0, :3], [0.5 * 10 / 13, 0.5 * 3 / 13, 0.5], rtol=1e-6)
    np.testing.assert_allclose(shares[1, :3], [0, 0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(shares[2, :3], [1, 0, 0], rtol=1e-6)  # it has no new episode
    held = counted.shares(0.5, jnp.array([True, False, False, False, False, False]))
    np.testing.assert_allclose(held[0, :3], [0, 0.5, 0.5], rtol=1e-6)


def test_batches_have_these_shares_and_only_real_rows(replay, getkey):
    counted = with_counts(replay, [[2, 1, 1], [0, 1, 3], [1, 0, 0]])
    shares = counted.shares(0.5, jnp.zeros(6, bool))
    batch = counted.batch(shares, 20_000, 0, getkey())
    marks = np.asarray(batch.states[..., 0])
    for m in range(MEMBERS):
        found = [np.mean(marks[m] == mark) for mark in (1, 2, 3)]
        np.testing.assert_allclose(found, shares[m, :3], atol=0.015)  # 4 standard deviations
    steps = np.asarray(batch.states[0, :, 1])[marks[0] == 1]
    np.testing.assert_allclose([np.mean(steps == t) for t in range(5)], 0.2, atol=0.03)


def test_rows_that_cost_are_drawn_more_often_but_not_by_members_that_lack_them(replay, getkey):
    counted = with_counts(replay, [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    batch = counted.batch(counted.shares(0.5, jnp.zeros(6, bool)), 100, 40, getkey())
    costly = np.asarray(batch.costs[..., 0]) > 0
    assert costly[0, :40].mean() > 0.3  # the other costly row is not its own
    assert not costly[1].any()
    assert costly[2, :40].mean() > 0.3


def test_an_episode_without_steps_changes_nothing(replay, getkey):
    after = replay.add(episode(0, 9), (1,), True, getkey())
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(replay), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_member_whose_bootstrap_is_empty_has_every_episode_once(replay):
    """Member 0 has only the episode that is held out; its batch is of the others, in proportion to their lengths."""
    held = jnp.asarray([True, False, False, False, False, False])
    counted = with_counts(replay, [[2, 0, 0], [1, 1, 1], [0, 3, 1]])
    shares = np.asarray(counted.shares(0.5, held))
    np.testing.assert_allclose(shares[0, :3], [0, 0.5, 0.5])
    batch = counted.batch(jnp.asarray(shares), 200, 0, jax.random.key(0))
    assert set(np.unique(batch.actions[0])) == {2.0, 3.0}
