"""What a belief demands, and the words in which it refuses: one line each."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.checks import (
    MOST_POINTS,
    MOST_TRANSITIONS,
    check_points,
    check_sizes,
    check_transitions,
    check_untouched,
    no_common_point,
)
from sbsrl.belief.gp_model import GPModel
from sbsrl.kernels import Linear
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions


def double(x, a):
    return x + jnp.concatenate([a, a])


PRIOR = GPPrior(
    mean=double,
    scale=(1.0, 1.0),
    kernel=Linear((1.0, 1.0, 1.0)),
    noise=0.1,
    bound=None,
    bound_source="",
)


def refused(function, *arguments):
    """The one line with which these are refused."""
    with pytest.raises(UserError) as error:
        function(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_prior_that_fits_is_accepted():
    check_sizes(GPModel.of(PRIOR), 3)
    check_sizes(GPModel.of(dataclasses.replace(PRIOR, kernel=(PRIOR.kernel, 2.0 * PRIOR.kernel))), 3)


@pytest.mark.parametrize(
    ("changes", "dz", "said"),
    [
        ({"mean": lambda x, a: x[:1]}, 3, "the prior's mean has the shape (1,); (2,) was expected, as its scale has."),
        ({"mean": lambda x, a: x + jnp.ones(5)}, 3, "the prior's mean does not take 2 states and 1 actions: "),
        ({"mean": lambda x, a: x}, 4, "Linear([1, 1, 1]) does not take inputs (x, a) of 4 numbers: "),
        ({"kernel": (Linear((1.0, 1.0, 1.0)), Linear((1.0, 1.0)))}, 3, "Linear([1, 1]) does not take inputs (x, a) of"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(changes, dz, said):
    assert refused(check_sizes, GPModel.of(dataclasses.replace(PRIOR, **changes)), dz).startswith(said)


def data(rows=4):
    rest = np.zeros(rows), np.zeros((rows, 1)), np.zeros(rows, bool)
    return Transitions(np.zeros((rows, 2)), np.zeros((rows, 1)), np.zeros((rows, 2)), *rest)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_finite_data_of_the_right_shape_are_accepted(rows):
    check_transitions(data(rows), 2, 1)


@pytest.mark.parametrize("part", ["states", "actions", "next_states"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_data_that_are_not_finite_are_refused(part, bad):
    strange = data()
    getattr(strange, part)[2, 0] = bad
    said = refused(check_transitions, strange, 2, 1)
    assert said == f"the {part} of the data are not all finite; remove or repair those transitions."


@pytest.mark.parametrize(
    ("part", "shape", "expected"),
    [
        ("states", (4, 3), "(4, 2)"),
        ("actions", (4,), "(4, 1)"),
        ("actions", (3, 1), "(3, 2)"),
        ("next_states", (5, 2), "(4, 2)"),
    ],
)
def test_data_of_the_wrong_shape_are_refused(part, shape, expected):
    """The actions say how many rows there are."""
    said = refused(check_transitions, data()._replace(**{part: np.zeros(shape)}), 2, 1)
    assert said.startswith("the states" if shape == (3, 1) else f"the {part}")
    assert said.endswith(f"; {expected} was expected.")


def test_what_a_gaussian_process_does_not_use_is_not_looked_at():
    check_transitions(data()._replace(rewards=np.full(4, np.nan), costs=np.zeros((2, 7))), 2, 1)


@pytest.mark.parametrize("offline", [0, 1])
def test_a_warning_says_when_where_and_of_which_output(offline):
    assert no_common_point(3 + offline, offline, np.array([0.123456, -2.0, 1e-7]), 1) == (
        "the calibration assumption is violated at episode 3: at (x, a) = (0.1235, -2, 1e-07) the confidence sets of "
        "output 1 have no common point"
    )


def test_a_warning_of_offline_data_says_so():
    assert no_common_point(1, 1, np.array([0.5]), 0) == (
        "the calibration assumption is violated in the offline data: at (x, a) = (0.5) the confidence sets of "
        "output 0 have no common point"
    )


def test_as_many_points_as_fit_are_accepted_and_one_more_episode_is_refused():
    check_points(50, (MOST_POINTS - 100) // 50, 100)
    said = refused(check_points, 50, (MOST_POINTS - 100) // 50 + 1, 100)
    assert said == (
        "episodes=199 would give an exact Gaussian process 10050 points, which do not fit into memory; "
        "use at most 198 episodes."
    )


def test_too_many_offline_transitions_are_refused():
    check_points(1, 1, MOST_TRANSITIONS)
    said = refused(check_points, 1, 1, MOST_TRANSITIONS + 1)
    assert said == "5001 offline transitions are too many for an exact Gaussian process; use 5000 or less."


def test_offline_data_after_an_episode_are_refused():
    check_untouched(0)
    assert refused(check_untouched, 2).startswith(
        "offline data come before the first episode, and this belief has seen 2"
    )
