"""From a prior to a model: who shares what, and what is refused."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.functions import Frame
from sbsrl.belief.gp_model import GPModel
from sbsrl.kernels import Matern, SquaredExponential
from sbsrl.prior import GPPrior

SMOOTH, ROUGH = SquaredExponential((1.0, 1.0)), Matern((1.0, 1.0))
PRIOR = GPPrior(
    mean=lambda x, a: x,
    scale=(0.5, 2.0, 1.0),
    kernel=SMOOTH,
    noise=0.1,
    bound=None,
    bound_source="",
)


def model(**changes):
    return GPModel.of(dataclasses.replace(PRIOR, **changes))


def test_outputs_with_one_kernel_and_one_noise_are_one_group():
    found = model()
    assert found.kernels == (SMOOTH,)
    assert found.group_sizes == (3,)
    np.testing.assert_array_equal(found.noise, [0.1])
    np.testing.assert_array_equal(found.noise_of_each_output(), [0.1, 0.1, 0.1])


@pytest.mark.parametrize(
    ("changes", "kernels", "noise"),
    [
        ({"noise": (0.1, 0.2, 0.3)}, (SMOOTH, SMOOTH, SMOOTH), [0.1, 0.2, 0.3]),
        ({"kernel": (SMOOTH, ROUGH, SMOOTH)}, (SMOOTH, ROUGH, SMOOTH), [0.1, 0.1, 0.1]),
        ({"kernel": (SMOOTH, ROUGH, ROUGH), "noise": (1, 2, 3)}, (SMOOTH, ROUGH, ROUGH), [1, 2, 3]),
    ],
)
def test_outputs_that_differ_in_kernel_or_noise_are_groups_of_their_own(changes, kernels, noise):
    found = model(**changes)
    assert found.kernels == kernels
    assert found.group_sizes == (1, 1, 1)
    np.testing.assert_array_equal(found.noise, noise)
    np.testing.assert_array_equal(found.noise_of_each_output(), noise)


def test_targets_are_split_by_group():
    targets = jnp.arange(6.0).reshape(2, 3)
    (together,) = model().split(targets)
    np.testing.assert_array_equal(together, targets)
    np.testing.assert_array_equal(jnp.concatenate(model(noise=(1, 2, 3)).split(targets), axis=1), targets)
    assert [part.shape for part in model(noise=(1, 2, 3)).split(targets)] == [(2, 1)] * 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kernel": (SMOOTH, ROUGH)}, "2 kernels for 3 outputs; give one for all, or one for each"),
        ({"noise": (0.1, 0.2)}, "2 noise for 3 outputs; give one for all, or one for each"),
        ({"noise": (0.1, 0.0, 0.1)}, "the prior's noise must be positive, and .* is not"),
        ({"noise": -0.1}, "the prior's noise=-0.1 is out of range"),
        ({"scale": (1.0, np.nan, 1.0)}, "the prior's scale=nan is not a finite number"),
        ({"scale": (1.0, -1.0, 1.0)}, "the prior's scale=-1 is out of range"),
    ],
)
def test_what_does_not_fit_is_explained(changes, said):
    with pytest.raises(UserError, match=said):
        model(**changes)


MEANS = {
    "zero": lambda x, a: jnp.zeros_like(x),
    "identity": lambda x, a: x,
    "simulator": lambda x, a: jnp.sin(x) + 0.1 * jnp.stack([x[1] * x[2], a[0], a[0] ** 2]),
}


@pytest.mark.parametrize("name", MEANS)
def test_any_prior_mean_will_do(name):
    """The frame moves values to unit scale and back, to 1e-14, and a unit function of 0 is the mean and the offset."""
    frame = Frame(MEANS[name], jnp.array([0.1, 0.2, -0.3]), jnp.array([0.5, 2.0, 1.0]))
    x, a, y = jnp.array([0.6, 0.8, -1.0]), jnp.array([0.5]), jnp.array([3.0, -1.0, 2.0])
    np.testing.assert_allclose(frame.lift(x, a, frame.drop(x, a, y)), y, atol=1e-14)
    np.testing.assert_allclose(frame.lift(x, a, jnp.zeros(3)), MEANS[name](x, a) + frame.offset, atol=1e-14)
