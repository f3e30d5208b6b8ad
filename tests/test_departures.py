"""What an episode shows that a task says cannot be."""

import dataclasses

import numpy as np
import pytest

from sbsrl import make_task
from sbsrl.departures import departure
from sbsrl.kernels import FiniteRank
from sbsrl.tasks import ledge
from sbsrl.transitions import Episode, nothing_played

LEDGE = make_task("ledge")


def played(states=(0.0, 0.5, 0.2, 0.1), actions=(0.1, -0.2, 1.0), costs=(0.0, 1.0, 0.5)):
    column = lambda values: np.asarray(values, float)[:, None]  # noqa: E731
    return Episode(column(states), column(actions), np.zeros(len(actions)), column(costs))


def test_an_episode_like_any_other_shows_nothing():
    assert departure(LEDGE, played()) == ""
    assert departure(LEDGE, nothing_played(1, 1, 1, "it hung")) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"states": (0.1, 0.5, 0.2, 0.1)}, "it began at 0.1, and ledge is said to begin at 0."),
        (
            {"costs": (0.0, 1.2, 3.0)},
            "step 2 cost 1.2 (steps beyond the ledge), and costs are said to lie between 0 and 1.",
        ),
        (
            {"costs": (0.0, 0.2, -0.1)},
            "step 3 cost -0.1 (steps beyond the ledge), and costs are said to lie between 0 and 1.",
        ),
        (
            {"states": (0.0, 0.5, -3.1, 0.1)},
            "step 3 was taken at (x, a) = -3.1, 1, outside of the limits 3, 1.",
        ),
        (
            {"actions": (0.1, 1.1, 1.0)},
            "step 2 was taken at (x, a) = 0.5, 1.1, outside of the limits 3, 1.",
        ),
    ],
)
def test_the_first_thing_that_is_not_as_said_is_told(changes, said):
    assert departure(LEDGE, played(**changes)) == said


def test_the_last_state_may_be_anywhere_since_no_step_begins_there():
    assert departure(LEDGE, played(states=(0.0, 0.5, 0.2, 30.0))) == ""


def test_rounding_is_no_departure():
    assert departure(LEDGE, played(actions=(0.1, 1 + 1e-7, 1.0), costs=(0.0, 1 + 1e-7, 0.0))) == ""


def test_a_kernel_that_is_larger_than_said_is_told():
    kernel = FiniteRank(ledge.waves, 2, ledge.SIZE**2 / 2)
    prior = dataclasses.replace(LEDGE.prior, gp=dataclasses.replace(LEDGE.prior.gp, kernel=kernel))
    told = departure(dataclasses.replace(LEDGE, prior=prior), played())
    assert (
        told == "k(z, z) = 0.0225 at (x, a) = 0, 0.1 in step 1, and FiniteRank(waves, 2) is said to be at most 0.01125."
    )


def test_of_a_task_that_says_nothing_nothing_is_told():
    silent = dataclasses.replace(LEDGE, limits=None, fixed_start=None)
    assert departure(silent, played(states=(9.0, 9.0, 9.0, 9.0))) == ""
