"""In which units policies see states, and what an episode's return is measured in."""

import numpy as np
import pytest
import slider

from sbsrl.prior import Prior
from sbsrl.solve.network.domain import domain_of
from sbsrl.spread import LEAST, SPREADS, middle, spread
from sbsrl.transitions import Transitions


def recorded():
    """A sled that is mostly at 0.3, and sometimes far away."""
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=(500, 1)) < 0.05, 100.0, 0.3) + 0.1 * rng.normal(size=(500, 2))
    return Transitions(x, np.zeros((500, 1)), x, x[:, 0], np.zeros((500, 1)), np.zeros(500, bool))


@pytest.mark.parametrize("kind", SPREADS)
def test_states_are_seen_in_the_units_that_were_chosen(kind):
    data = recorded()
    units = domain_of(slider.make(Prior("data", informative=True, data=data)), kind).units
    np.testing.assert_allclose(units.mean, middle(data.states, kind), rtol=1e-6)
    np.testing.assert_allclose(units.std, spread(data.states, kind), rtol=1e-6)
    assert bool(units.std[0] < 1) == (kind == "quantiles")


@pytest.mark.parametrize("kind", SPREADS)
def test_without_data_states_are_seen_as_they_are(kind):
    domain = domain_of(slider.make(), kind)
    np.testing.assert_array_equal(domain.units.mean, [0, 0])
    np.testing.assert_allclose(domain.units.std, [1 + LEAST] * 2)
    assert (domain.return_scale, domain.reliable) == (slider.HORIZON, False)
