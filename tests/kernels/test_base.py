"""What every kernel promises: symmetry, positive definiteness, three views of one function, finite gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbsrl.errors import UserError
from sbsrl.kernels import Angles, Clip, FiniteRank, Linear, Matern, SquaredExponential, Tanh, gram
from sbsrl.kernels.base import cast, positive
from sbsrl.kernels.features import columns

SCALES = (0.7, 1.3, 2.0)
SE, LINEAR = SquaredExponential(SCALES), Linear(SCALES)
QUADRATIC = FiniteRank(lambda z: jnp.concatenate([jnp.ones(1, z.dtype), z, z**2]), 7)
KERNELS = {
    "matern12": Matern(SCALES, nu=0.5),
    "se": SE,
    "matern32": Matern(SCALES),
    "matern52": Matern(SCALES, nu=2.5),
    "matern72": Matern(SCALES, nu=3.5),
    "linear": LINEAR,
    "finite": QUADRATIC,
    "sum": SE + LINEAR,
    "product": SE * Matern(SCALES),
    "scaled": 2.5 * Matern(SCALES, nu=2.5),
    "clip": LINEAR.on(Clip((1.0, 2.0, np.inf))),
    "tanh": SE.on(Tanh((1.0, 2.0, np.inf))),
    "angles": SquaredExponential((1.0, *SCALES)).on(Angles((1,), 3)),
    "nested": (0.5 * (SE + LINEAR) * QUADRATIC + Matern(SCALES)).on(Clip((3.0, 3.0, 3.0))),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
jitted_gram = eqx.filter_jit(gram)
UNOPTIMISED = {"xla_backend_optimization_level": 0}  # for what runs once, and is slower to compile than to run


def cloud(shape, scale, seed):
    """Eight points, or one, in three dimensions."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(8, 3))
    if shape == "duplicates":
        points = points[rng.integers(0, 3, 8)]
    if shape == "line":
        points = np.outer(rng.normal(size=8), points[0]) + points[1]
    return scale * points[: 1 if shape == "one" else 8]


clouds = st.builds(
    cloud,
    st.sampled_from(["spread", "duplicates", "line", "one"]),
    st.sampled_from([1e-6, 1e-2, 1.0, 1e6]),
    st.integers(0, 2**32 - 1),
)


@jax.jit
def linked(kernel, Z, queries):
    return kernel.link(kernel.rows(Z), columns(kernel.query, queries.T))


@every_kernel
@settings(max_examples=30, deadline=None)
@given(points=clouds)
def test_gram_matrices_are_symmetric_and_positive_semi_definite(kernel, points):
    """To rounding: 1e-13 of the trace, for eight points."""
    k = np.asarray(jitted_gram(kernel, jnp.asarray(points), jnp.asarray(points)))
    assert np.array_equal(k, k.T)
    assert np.linalg.eigvalsh(k).min() >= -1e-13 * np.trace(k)


@every_kernel
@pytest.mark.parametrize(("dtype", "tolerance", "rough"), [("float64", 1e-13, 1e-6), ("float32", 3e-5, 3e-3)])
def test_the_link_of_rows_and_query_is_the_kernel(kernel, dtype, tolerance, rough):
    """To a part of sup k. Squared distances lose digits, and in Matern 1/2 their root loses half of the others."""
    for seed in range(20):
        Z = cloud("spread", 2.0, seed)
        found = linked(cast(kernel, dtype), jnp.asarray(Z, dtype), jnp.asarray(Z, dtype))
        exact = np.asarray(jitted_gram(kernel, jnp.asarray(Z), jnp.asarray(Z)))
        assert found.dtype == dtype
        limit = rough if kernel is KERNELS["matern12"] else tolerance
        assert np.abs(np.asarray(found, np.float64) - exact).max() < limit * exact.max()


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [(name, "float64", 1e-8) for name in ("se", "matern32", "matern52", "matern72", "product", "angles")]
    + [(name, "float32", 1e-3) for name in ("se", "matern32")],
)
def test_gradients_are_finite_and_right_everywhere_also_at_a_remembered_input(name, dtype, tolerance):
    """Both views, both modes, against central differences with step 1e-5, whose error is near 1e-10."""
    kernel, Z = KERNELS[name], cloud("duplicates", 1.0, 0)
    shifted = [(Z[:, None] + step * np.eye(3)).reshape(24, 3) for step in (1e-5, -1e-5)]
    up, down = (jitted_gram(kernel, jnp.asarray(points), jnp.asarray(Z)) for points in shifted)
    expected = np.moveaxis(np.asarray(up - down).reshape(8, 3, 8) / 2e-5, 1, 2)
    kernel = cast(kernel, dtype)

    def views(z, v):
        row = jax.tree.map(lambda leaf: leaf[None], kernel.row(v))
        return jnp.append(kernel.link(row, kernel.query(z)), kernel(z, v))

    def slopes(z, v):
        return jnp.concatenate([jax.jacfwd(views)(z, v), jax.jacrev(views)(z, v)])

    found = jax.jit(jax.vmap(jax.vmap(slopes, (None, 0)), (0, None)), compiler_options=UNOPTIMISED)(
        jnp.asarray(Z, dtype), jnp.asarray(Z, dtype)
    )
    assert np.all(np.isfinite(found))
    for i in range(4):
        np.testing.assert_allclose(found[:, :, i], expected, atol=tolerance)


def test_every_parameter_is_a_positive_leaf_and_reaches_the_kernel():
    """What fits a kernel takes the logarithm of all its leaves."""
    kernel = KERNELS["nested"]
    slope = jax.jit(jax.grad(lambda k: k(jnp.ones(3), jnp.full(3, 0.5))))(kernel)
    for leaf, change in zip(jax.tree.leaves(kernel), jax.tree.leaves(slope), strict=True):
        assert np.all(np.asarray(leaf) > 0)
        assert np.all(np.asarray(change) != 0)


@pytest.mark.parametrize("values", [0.0, [1.0, -1.0], [np.nan], (np.inf,), np.zeros(2), jnp.asarray([1.0, -2.0])])
def test_what_is_not_positive_and_finite_is_refused(values):
    with pytest.raises(UserError, match="widgets must be positive and finite"):
        positive("widgets", values)


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1.0, 2.0], np.float32), jnp.asarray([1, 2])])
def test_parameters_become_float64(values):
    assert positive("widgets", values).dtype == jnp.float64


def test_parameters_may_be_traced_and_keep_their_precision():
    found = jax.jit(lambda scales: SquaredExponential(scales).lengthscales)(jnp.asarray(SCALES, jnp.float32))
    assert found.dtype == jnp.float32
