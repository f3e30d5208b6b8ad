import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sbsrl.errors import UserError
from sbsrl.kernels import Angles, Clip, Linear, Matern, Tanh

MAPS = {
    "angles": Angles((2, 0), 3),
    "no angles": Angles((), 3),
    "tanh": Tanh((0.5, 3.0, np.inf)),
    "clip": Clip((0.5, 3.0, np.inf)),
}
apply = eqx.filter_jit(lambda phi, z: phi(z))
every_map = pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
inputs = arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)) | arrays(np.float64, 3, elements=st.floats(-4, 4))


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        (MAPS["angles"], lambda z: [np.cos(z[2]), np.cos(z[0]), np.sin(z[2]), np.sin(z[0]), z[1]]),
        (MAPS["no angles"], lambda z: z),
        (MAPS["tanh"], lambda z: [0.5 * np.tanh(z[0] / 0.5), 3 * np.tanh(z[1] / 3), z[2]]),
        (MAPS["clip"], lambda z: [np.clip(z[0], -0.5, 0.5), np.clip(z[1], -3, 3), z[2]]),
    ],
)
@settings(max_examples=30, deadline=None)
@given(z=inputs)
def test_maps_are_their_formulas(phi, expected, z):
    np.testing.assert_allclose(apply(phi, jnp.asarray(z)), expected(z), rtol=1e-14, atol=1e-14)


@every_map
@settings(max_examples=60, deadline=None)
@given(u=inputs, v=inputs)
def test_maps_are_1_lipschitz(phi, u, v):
    """To rounding, which is relative to the inputs."""
    apart = np.linalg.norm(apply(phi, jnp.asarray(u)) - apply(phi, jnp.asarray(v)))
    assert apart <= np.linalg.norm(u - v) + 1e-15 * (1 + np.abs(u).max() + np.abs(v).max())


@every_map
@settings(max_examples=60, deadline=None)
@given(z=inputs, within=st.none() | arrays(np.float64, 3, elements=st.floats(1e-3, 1e3)))
def test_limits_are_not_exceeded(phi, z, within):
    """Whether or not the input is limited."""
    z = z if within is None else np.clip(z, -within, within)
    limits = phi.limits(None if within is None else tuple(within.tolist()))
    assert np.all(np.abs(apply(phi, jnp.asarray(z))) <= np.array(limits) * (1 + 1e-15))


@pytest.mark.parametrize("phi", [MAPS["tanh"], MAPS["clip"]])
@pytest.mark.parametrize("within", [(0.1, 0.1, 0.1), (5.0, 1.0, 7.0), (np.inf, 1.0, np.inf)])
def test_limits_of_tanh_and_clip_are_attained(phi, within):
    np.testing.assert_allclose(apply(phi, jnp.asarray(within)), phi.limits(within), rtol=1e-14)


def test_limits_of_angles_are_those_of_cosines_sines_and_the_other_inputs():
    assert MAPS["angles"].limits((9.0, 2.0, 9.0)) == (1, 1, 1, 1, 2)
    assert MAPS["angles"].limits(None) == (1, 1, 1, 1, np.inf)


@pytest.mark.parametrize("phi", [Clip((0.5, 3.0, 2.0)), Tanh((0.5, 3.0, 2.0)), Angles((0, 1, 2), 3)])
@settings(max_examples=20, deadline=None)
@given(z=inputs)
def test_a_kernel_on_a_bounded_map_has_a_finite_supremum(phi, z):
    """A linear kernel without a map has none."""
    linear = Linear((1.0,) * len(phi.limits(None)))
    phi_z = np.asarray(apply(phi, jnp.asarray(z)))
    assert np.sum(phi_z**2) <= linear.on(phi).supremum() * (1 + 1e-15) < np.inf
    assert linear.supremum() == np.inf


def test_an_angle_and_the_same_angle_a_turn_later_are_one():
    kernel = Matern((1.0, 1.0, 1.0)).on(Angles((0,), 2))
    u, turned = jnp.asarray([0.3, 2.0]), jnp.asarray([0.3 + 2 * np.pi, 2.0])
    np.testing.assert_allclose(kernel(u, turned), 1, rtol=1e-14)


@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
def test_the_precision_stays(phi):
    assert apply(phi, jnp.ones(3, jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize("indices", [(3,), (-1,), (0, 0)])
def test_angles_must_be_different_inputs(indices):
    with pytest.raises(UserError, match="must be different numbers from 0 to 2"):
        Angles(indices, 3)


@pytest.mark.parametrize("kind", [Clip, Tanh])
@pytest.mark.parametrize("widths", [(1.0, 0.0), [-1.0], (np.nan,)])
def test_widths_must_be_positive(kind, widths):
    with pytest.raises(UserError, match="widths must be positive"):
        kind(widths)


@pytest.mark.parametrize("phi", [Angles((0,), 2), Clip((1.0, 1.0)), Tanh((1.0,))])
def test_a_map_refuses_inputs_of_another_size(phi):
    with pytest.raises(UserError, match=r"is made for . inputs, and there are 3"):
        phi(jnp.ones(3))


def test_descriptions_name_the_parameters():
    assert MAPS["angles"].describe() == "Angles([2, 0])"
    assert MAPS["tanh"].describe() == "Tanh([0.5, 3.0, inf])"
    assert Clip([1, 2]).describe() == "Clip([1.0, 2.0])"
