"""The sets of the figure: those that Algorithm 1 has, on a finer lattice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.laboratory.expansion import FINE, SNAPSHOTS, expansion
from sbsrl.laboratory.trial import run_trial

SEED = 5


@pytest.fixture(scope="module")
def weak(world, sled_of):
    """A motor that is weaker than expected, where more is safe than one thinks."""
    return expansion(world, sled_of(world, -1.0), SEED)


def trial(world, sled, most):
    return run_trial(world.experiment, world.belief(), sled, jax.random.key(SEED), jnp.asarray(most, jnp.int32))


def common(mask):
    """What the two lattices share: every fourth push, and the springs -1, 0 and 1."""
    rows, columns = mask.shape
    return mask[:: (rows - 1) // 10, :: (columns - 1) // 2]


def test_where_the_lattices_meet_the_sets_are_those_of_algorithm_1(world, weak, sled_of):
    sled = sled_of(world, -1.0)
    for n, mask in zip(weak.episodes, weak.safe, strict=True):
        safe = np.asarray(trial(world, sled, n).final_violations).reshape(11, 9) <= 0
        assert np.array_equal(common(mask), common(safe))
    costs, _ = world.true_returns(sled)
    np.testing.assert_allclose(common(weak.costs), common(costs.reshape(11, 9)), atol=1e-9)


def test_snapshots_are_taken_up_to_the_end(world, weak, sled_of):
    end = int(trial(world, sled_of(world, -1.0), world.episodes).episodes)
    assert weak.episodes == [*(n for n in SNAPSHOTS if n < end), end]
    assert len(weak.safe) == len(weak.episodes)


def test_the_safe_set_grows_and_stays_within_what_is_safe(world, weak):
    assert weak.safe[-1].sum() > weak.safe[0].sum() > 0
    assert np.array_equal(weak.truly_safe, weak.costs <= world.budget)
    for mask in weak.safe:
        assert mask.shape == FINE
        assert not np.any(mask & ~weak.truly_safe)


def test_policies_are_named_by_their_parameters(weak):
    places = {tuple(theta) for theta in weak.played}
    assert len(places) == len(weak.played) > 0
    for push, spring in (*places, weak.final):
        assert np.isclose(weak.push, push).any()
        assert -1 <= spring <= 1
