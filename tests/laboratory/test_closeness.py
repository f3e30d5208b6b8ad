"""How often samples are close to the truth, against what is known in closed form."""

import math

import numpy as np
import pytest
from scipy.stats import ncx2, norm

from sbsrl.laboratory.closeness import closeness, feature_table
from sbsrl.laboratory.world import World
from sbsrl.tasks.ledge import GROUNDS


def deviation(p, trials):
    return math.sqrt(p * (1 - p) / trials)


def test_for_rank_one_it_is_what_the_normal_law_says(world):
    """|w - w*| <= zeta / 0.15 with w* = -+1; to four standard deviations."""
    sets, radius = 1500, 0.03 / 0.15
    single = norm.cdf(1 + radius) - norm.cdf(1 - radius)
    some = 1 - (1 - single) ** world.samples
    found = closeness(world, sets, np.random.default_rng(0))
    assert (found.single.trials, found.some.trials) == (sets * world.samples, sets)
    assert found.single.rate == pytest.approx(single, abs=4 * deviation(single, found.single.trials))
    assert found.some.rate == pytest.approx(some, abs=4 * deviation(some, sets))
    assert math.exp(-world.exponent) < single < 1.01 * math.exp(-world.exponent)  # the lemma gives away less than 1 %


def test_for_waves_it_is_what_the_chi_squared_law_says():
    """sup |f - f*| = 0.15 |w - w*|, w* of length 1; to four standard deviations."""
    waves = World("waves", zeta=0.1)
    single = ncx2.cdf((waves.zeta / 0.15) ** 2, 2, 1)
    found = closeness(waves, 400, np.random.default_rng(1)).single
    assert found.rate == pytest.approx(single, abs=4 * deviation(single, found.trials))


def test_half_of_the_samples_do_not_suffice(world):
    """The promise can be broken, and it is seen."""

    class Half(World):
        samples = world.samples // 2

    _, most = closeness(Half("motor"), 1500, np.random.default_rng(0)).some.interval()
    assert most < 1 - world.delta


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_supremum_over_the_box_is_found_at_the_corners_of_the_hull(ground):
    """Of 100 functions, against 20,000 random points of the box: never below by more than 1e-4."""
    kernel, limits = GROUNDS[ground], World(ground).limits
    rng = np.random.default_rng(2)
    z = rng.uniform(-1, 1, (20_000, 2)) * limits
    features = {
        "slope": 0.15 * np.stack([np.tanh(z[:, 0]), z[:, 1]], axis=1),
        "waves": 0.15 * np.stack([np.cos(2 * z[:, 0]), np.sin(2 * z[:, 0])], axis=1),
        "motor": 0.15 * z[:, 1:],
    }[ground]
    weights = rng.standard_normal((100, features.shape[1]))
    found = np.abs(weights @ feature_table(kernel, limits).T).max(axis=1)
    seen = np.abs(weights @ features.T).max(axis=1)
    assert np.all(found >= (1 - 1e-4) * seen)
    assert np.all(found <= 1.05 * seen)
