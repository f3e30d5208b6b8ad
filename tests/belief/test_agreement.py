"""Two ellipsoids have a common point or not: against a search for one."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from sbsrl.belief.agreement import Ellipsoid, disagreement


def drawn(rng, p):
    root = rng.standard_normal((p, p))
    return Ellipsoid(
        jnp.asarray(4 / p * rng.standard_normal(p)), jnp.asarray(root @ root.T + 0.1 * np.eye(p)), jnp.asarray(1.5)
    )


def nearest(one, other):
    """The smallest max of both quadratic forms over all points, by descent on a smooth maximum from both centres."""
    parts = [(np.asarray(each.centre), np.asarray(each.precision) / float(each.radius) ** 2) for each in (one, other)]

    def sizes(w):
        return np.array([(w - m) @ V @ (w - m) for m, V in parts])

    def constraint(i):
        return {"type": "ineq", "fun": lambda v: v[-1] - sizes(v[:-1])[i]}

    start = np.append(np.mean([m for m, _ in parts], axis=0), 100.0)
    found = minimize(lambda v: v[-1], start, constraints=[constraint(0), constraint(1)], method="SLSQP")
    return max(sizes(found.x[:-1]))


@pytest.mark.parametrize("p", [1, 2, 5])
def test_it_is_the_size_at_which_both_first_touch(p):
    """Of 20 pairs; the grid of shares makes it up to 1 % smaller, never larger (1e-6)."""
    rng = np.random.default_rng(p)
    touching = set()
    for _ in range(20):
        one, other = drawn(rng, p), drawn(rng, p)
        found, exact = float(disagreement(one, other)), nearest(one, other)
        assert 0.99 * exact - 1e-6 <= found <= exact * (1 + 1e-6)
        touching.add(exact <= 1)
    assert touching == {True, False}


def test_the_same_data_agree():
    one = drawn(np.random.default_rng(0), 3)
    assert float(disagreement(one, one)) == 0
