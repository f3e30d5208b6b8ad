"""A class of policies: a function, a box, and a lattice in it."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.policies import PolicyClass


def affine(theta, x):
    return theta[:1] + theta[1:] * x


POLICIES = PolicyClass(affine, (-1.0, 0.0), (1.0, 2.0), ("push", "spring"), (3, 2))


def test_it_acts_with_the_parameters():
    np.testing.assert_allclose(POLICIES(jnp.array([0.5, 2.0]), jnp.array([3.0])), [6.5])


def test_the_lattice_has_all_combinations_and_the_last_parameter_changes_fastest():
    expected = [[-1, 0], [-1, 2], [0, 0], [0, 2], [1, 0], [1, 2]]
    np.testing.assert_array_equal(POLICIES.lattice(), expected)


def test_a_finer_lattice_has_the_same_corners():
    fine = POLICIES.lattice((5, 9))
    assert fine.shape == (45, 2)
    np.testing.assert_array_equal(fine[np.array([0, -1])], [[-1, 0], [1, 2]])
    assert {tuple(p) for p in np.asarray(POLICIES.lattice())} <= {tuple(p) for p in np.asarray(fine)}
    assert [len(axis) for axis in POLICIES.axes((5, 9))] == [5, 9]


@pytest.mark.parametrize(
    "changes",
    [
        {"low": (-1.0,)},
        {"high": (1.0, 2.0, 3.0)},
        {"names": ("push",)},
        {"points": (3,)},
        {"points": (3, 0)},
        {"low": (1.0, 0.0)},
        {"high": (1.0, np.nan)},
    ],
)
def test_a_class_that_is_not_complete_is_refused_in_one_line(changes):
    fields = {"low": (-1.0, 0.0), "high": (1.0, 2.0), "names": ("push", "spring"), "points": (3, 2)}
    with pytest.raises(UserError, match=r"a policy class needs limits, .* and got low=.*points=") as error:
        PolicyClass(affine, **{**fields, **changes})
    assert "\n" not in str(error.value)
