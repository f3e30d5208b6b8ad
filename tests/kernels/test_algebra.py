import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.kernels import Clip, Linear, Matern, On, Product, Scaled, SquaredExponential, Sum, Tanh, gram
from sbsrl.kernels.base import cast

SE, MATERN, LINEAR = SquaredExponential((0.5, 2.0)), Matern((1.0, 0.7), nu=0.5), Linear((1.5, 1.0))
BOX = Clip((1.0, 0.5))
jitted_gram = eqx.filter_jit(gram)


def se(u, v):
    return np.exp(-0.5 * np.sum(((u - v) / [0.5, 2.0]) ** 2))


def matern(u, v):
    return np.exp(-np.sqrt(np.sum(((u - v) / [1.0, 0.7]) ** 2)))


def linear(u, v):
    return np.sum(u * v / np.array([1.5, 1.0]) ** 2)


def box(z):
    return np.clip(z, [-1.0, -0.5], [1.0, 0.5])


FORMULAS = {
    "sum": (SE + MATERN, Sum, lambda u, v: se(u, v) + matern(u, v)),
    "product": (SE * MATERN, Product, lambda u, v: se(u, v) * matern(u, v)),
    "scaled": (2.5 * MATERN, Scaled, lambda u, v: 2.5 * matern(u, v)),
    "on": (LINEAR.on(BOX), On, lambda u, v: linear(box(u), box(v))),
    "nested": (
        (3 * (SE + LINEAR) * MATERN).on(BOX) + LINEAR,
        Sum,
        lambda u, v: 3 * (se(box(u), box(v)) + linear(box(u), box(v))) * matern(box(u), box(v)) + linear(u, v),
    ),
}


@pytest.mark.parametrize(("kernel", "kind", "formula"), FORMULAS.values(), ids=FORMULAS)
def test_composite_kernels_are_their_formulas(kernel, kind, formula):
    points = np.random.default_rng(0).normal(size=(12, 2))
    found = jitted_gram(kernel, jnp.asarray(points), jnp.asarray(points))
    assert isinstance(kernel, kind)
    np.testing.assert_allclose(found, [[formula(u, v) for v in points] for u in points], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("variance", [2, np.float64(2), jnp.asarray(2.0)])
def test_a_variance_may_be_any_number(variance):
    kernel = variance * SE
    assert isinstance(kernel, Scaled)
    assert kernel.describe() == "2 * SquaredExponential([0.5, 2])"


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_a_variance_that_is_not_positive_and_finite_is_refused(variance):
    with pytest.raises(UserError, match="variance must be positive and finite"):
        variance * SE


@pytest.mark.parametrize(
    ("kernel", "supremum"),
    [
        (SE + MATERN, 2),
        (2 * SE * MATERN, 2),
        (2 * SE + LINEAR.on(BOX), 2 + 1 / 1.5**2 + 0.5**2),
        (LINEAR.on(BOX) * LINEAR.on(BOX), (1 / 1.5**2 + 0.5**2) ** 2),
        (SE + LINEAR, np.inf),
        (LINEAR.on(Tanh((1.0, np.inf))), np.inf),
    ],
)
def test_suprema_add_and_multiply_and_need_a_bounded_map_where_the_kernel_grows(kernel, supremum):
    corner = jnp.asarray([[1.0, 0.5]])
    np.testing.assert_allclose(kernel.supremum(), supremum, rtol=1e-14)
    np.testing.assert_allclose(kernel.supremum((1.0, 0.5)), jitted_gram(kernel, corner, corner)[0, 0], rtol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "count"),
    [
        (SE, 64),
        (SE + MATERN, 128),
        (SE * MATERN, 64),
        (SE * MATERN.on(BOX), 64),
        (SE * LINEAR, 128),
        (SE * LINEAR * MATERN, 128),
        ((2 * SE).on(BOX) * MATERN, 64),
        ((SE + LINEAR) * (2 * MATERN), 64 + 128),
        (((SE + MATERN) * LINEAR).on(BOX) * (SE * LINEAR), 2 * 4 * 64),
    ],
)
def test_a_product_has_one_set_of_frequencies_whatever_its_form(kernel, count):
    """64 for each term of the kernel multiplied out, times the ranks of its factors."""
    features = jax.eval_shape(lambda key, z: kernel.features(key, 64)(z), jax.random.key(0), jnp.ones(2))
    assert features.shape == (count,)


def test_only_products_and_maps_of_spectral_kernels_have_phases():
    key = jax.random.key(0)
    phases = jax.eval_shape(lambda key, z: (SE * MATERN.on(BOX)).phases(key, 5, "paired")(z), key, jnp.ones(2))
    assert phases.shape == (5,)
    for kernel in (SE + MATERN, 2 * SE, SE * LINEAR, LINEAR.on(BOX)):
        assert not kernel.spectral
        with pytest.raises(UserError, match="no spectral density"):
            kernel.phases(key, 5, "paired")


def test_a_rank_is_finite_if_that_of_all_parts_is():
    assert (LINEAR + LINEAR * LINEAR.on(BOX)).rank == 6
    assert (SE + LINEAR).rank is (SE * LINEAR).rank is (2 * SE).rank is SE.on(BOX).rank is None


def test_descriptions_tell_different_kernels_apart():
    products = [SE * MATERN.on(BOX), (SE * MATERN).on(BOX), SE.on(BOX) * MATERN]
    sums = [SE + MATERN.on(BOX), (SE + MATERN).on(BOX), SE.on(BOX) + MATERN]
    assert len({kernel.describe() for kernel in products + sums}) == 6
    assert products[0].describe() == "SquaredExponential([0.5, 2]) * (Matern([1, 0.7], nu=0.5) on Clip([1.0, 0.5]))"


def test_all_of_it_can_be_cast():
    kernel = cast(FORMULAS["nested"][0], jnp.float32)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(kernel)} == {"float32"}
    assert jax.eval_shape(kernel, jnp.ones(2, jnp.float32), jnp.ones(2, jnp.float32)).dtype == jnp.float32


def test_a_number_may_stand_on_either_side():
    u, v = jnp.array([0.1, 0.2]), jnp.array([0.3, -0.2])
    assert (SE * 2.5)(u, v) == (2.5 * SE)(u, v)
