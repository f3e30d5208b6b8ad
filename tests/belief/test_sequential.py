"""Sequential conditioning: the law of a joint draw, and a function in the strictest sense."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.blocks import BLOCK
from sbsrl.belief.posterior import Posterior
from sbsrl.belief.sequential import NUGGET, TOLERANCE, Remembering, SequentialSample
from sbsrl.kernels import Linear, Matern, SquaredExponential, gram

DRAWS = 10_000
POINTS = jnp.array([[0.0, 0.0], [0.4, -0.2], [0.5, 0.9], [-1.0, 0.3]])
DATA = jnp.array([[-0.5, 0.0], [0.6, 0.1], [0.7, 0.8]])
TARGETS = jnp.array([[1.0, -0.5], [0.2, 0.4], [-0.8, 1.5]])
NOISE = 0.3
KERNEL = SquaredExponential([1.0, 0.7])

ask_all = eqx.filter_jit(SequentialSample.ask_all)


def prior(key, kernel=KERNEL, capacity=BLOCK, outputs=2):
    return SequentialSample.from_prior(kernel, outputs, capacity, 2, key)


def observed(noise=NOISE):
    """The three data, in arrays with room for a block."""
    return eqx.filter_jit(Posterior.append)(Posterior.empty(KERNEL, jnp.asarray(noise), BLOCK, 2, 2), DATA, TARGETS)


def posterior(key):
    return SequentialSample.from_posterior(observed(), 8, key)


def analytic(kind):
    """Mean (points x outputs) and covariance of the values at POINTS, by solving with the Gram matrix."""
    prior_covariance = np.asarray(gram(KERNEL, POINTS, POINTS))
    if kind is prior:
        return np.zeros((4, 2)), prior_covariance
    k = np.asarray(gram(KERNEL, POINTS, DATA))
    noisy = np.asarray(gram(KERNEL, DATA, DATA)) + NOISE**2 * np.eye(len(DATA))
    return k @ np.linalg.solve(noisy, TARGETS), prior_covariance - k @ np.linalg.solve(noisy, k.T)


def many(kind, key, points):
    """DRAWS samples asked at the same points: draw x point x output."""
    draw = jax.jit(jax.vmap(lambda key: kind(key).ask_all(points)[0]))
    return np.asarray(draw(jax.random.split(key, DRAWS)))


@pytest.mark.parametrize("kind", [prior, posterior])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_the_law_is_that_of_a_joint_draw_in_any_order(kind, order, getkey):
    """Tolerances are five standard errors of a mean and of a covariance; variances are at most 1."""
    mean, covariance = analytic(kind)
    values = np.empty((DRAWS, 4, 2))
    values[:, order] = many(kind, getkey(), POINTS[jnp.array(order)])
    np.testing.assert_allclose(values.mean(0), mean, atol=5 / np.sqrt(DRAWS))
    for output in range(2):
        found = np.cov(values[:, :, output].T)
        np.testing.assert_allclose(found, covariance, atol=5 * np.sqrt(2 / DRAWS))
    outputs_apart = np.corrcoef(values[:, 2].T)[0, 1]
    assert abs(outputs_apart) < 5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("kernel", [KERNEL, Matern([1.0, 1.0], nu=1.5), Linear([1.0, 2.0])])
def test_the_law_holds_along_a_fine_trajectory(kernel, getkey):
    """150 ordered inputs determine each other far beyond rounding: without the nugget the covariance is off by 400.

    An answer is linear in the noise, so its covariance is known without drawing: outputs are made the unit vectors.
    """
    line = jnp.linspace(0.0, 4.0, 150)[:, None] * jnp.array([[1.0, 0.5]])
    _, asked = ask_all(prior(getkey(), kernel, len(line), 1), line)
    size = int(asked.count)
    unit = eqx.tree_at(lambda s: (s.alpha, s.values), asked, (jnp.eye(asked.capacity), asked.factor))
    answers, after = ask_all(unit, line)
    assert after.count == size
    expected = np.asarray(gram(kernel, line, line))
    np.testing.assert_allclose(answers @ answers.T, expected, atol=3 * np.sqrt(TOLERANCE) * expected.max())


def test_the_same_input_has_the_same_value_whatever_was_asked_in_between(getkey):
    start = prior(getkey())
    first, sample = ask_all(start, POINTS)
    walks = [jax.random.normal(getkey(), (20, 2)), jnp.linspace(0.0, 1.0, 20)[:, None] * jnp.ones((1, 2))]
    for walk in walks:
        _, elsewhere = ask_all(sample, walk)
        again, after = ask_all(elsewhere, POINTS[::-1])
        assert np.array_equal(again[::-1], first)
        assert after.count == elsewhere.count
        near, after = ask_all(elsewhere, POINTS + 1e-9)
        np.testing.assert_allclose(near, first, atol=1e-6)
        assert after.count == elsewhere.count


def test_determined_answers_move_by_no_more_than_the_tolerance(getkey):
    """A fine line leaves many answers undrawn; asked again at the end they may move by 5 sqrt(TOLERANCE)."""
    line = jnp.linspace(0.0, 1.0, 150)[:, None] * jnp.ones((1, 2))
    first, sample = ask_all(prior(getkey(), capacity=150), line)
    again, _ = ask_all(sample, line)
    assert sample.count < 150
    np.testing.assert_allclose(again, first, atol=5 * np.sqrt(TOLERANCE))


@pytest.mark.parametrize(("kind", "apart"), [(prior, 0.0), (prior, 1e-9), (prior, 1e-6), (posterior, 1e-9)])
def test_repeated_and_nearly_repeated_inputs_stay_finite_and_take_no_room(kind, apart, getkey):
    """200 inputs around four: each cluster has a value and, at most, two directions."""
    sample = kind(getkey())
    inputs = jnp.tile(POINTS, (50, 1)) + apart * jax.random.normal(getkey(), (200, 2))
    values, after = ask_all(sample, inputs)
    assert np.all(np.isfinite(values))
    assert all(np.all(np.isfinite(part)) for part in (after.factor, after.alpha))
    assert after.count - sample.count <= (4 if apart <= 1e-9 else 12)
    np.testing.assert_allclose(values, jnp.tile(values[:4], (50, 1)), atol=1e-6 + 20 * apart)


def test_it_passes_near_data_of_little_noise(getkey):
    noise = 1e-3
    sample = SequentialSample.from_posterior(observed(noise), 8, getkey())
    values, _ = ask_all(sample, DATA)
    np.testing.assert_allclose(values, TARGETS, atol=5 * noise)
    assert not np.any(values == TARGETS)  # data are noisy: they are no values of the function


def test_a_kernel_of_finite_rank_is_known_after_as_many_answers(getkey):
    sample = prior(getkey(), Linear([1.0, 2.0]))
    values, after = ask_all(sample, jnp.concatenate([POINTS, POINTS + 1]))
    slopes, *_ = np.linalg.lstsq(np.asarray(POINTS), np.asarray(values[:4]), rcond=None)
    assert after.count == 2
    np.testing.assert_allclose(values[4:], (np.asarray(POINTS) + 1) @ slopes, atol=1e-5)


def test_gradients_are_finite_at_new_and_at_old_inputs(getkey):
    value_of = eqx.filter_jit(jax.jacfwd(lambda z, s: s.ask(z)[0]))
    _, sample = ask_all(prior(getkey()), POINTS)
    for z in (POINTS[0], jnp.array([2.0, 2.0])):
        assert np.all(np.isfinite(value_of(z, sample)))


def test_a_full_sample_is_still_a_function_that_keeps_its_word(getkey):
    sample = prior(getkey())
    inputs = 3 * jax.random.normal(getkey(), (BLOCK + 30, 2))
    values, after = ask_all(sample, inputs)
    assert after.full
    assert after.count == BLOCK
    again, last = ask_all(after, inputs)
    remembered = int(np.sum(np.any(np.asarray(inputs)[:, None] == np.asarray(last.inputs)[None], axis=(1, 2))))
    assert remembered == BLOCK
    np.testing.assert_array_equal(again[-5:], ask_all(after, inputs[-5:])[0])
    assert np.array_equal(again[:20], values[:20])
    np.testing.assert_array_equal(last.factor, after.factor)


def test_more_room_is_the_same_function(getkey):
    """Up to the order of summation, whose effect is at most that of the nugget."""
    sample = prior(getkey())
    inputs = jax.random.normal(getkey(), (30, 2))
    small, _ = ask_all(sample, inputs)
    large, _ = ask_all(sample.with_room(3 * BLOCK), inputs)
    np.testing.assert_allclose(large, small, atol=np.sqrt(NUGGET))
    assert sample.with_room(1).capacity == BLOCK


def test_remembering_grows_without_changing_an_answer(getkey):
    key = getkey()
    f, roomy = Remembering(prior(key, capacity=1)), Remembering(prior(key, capacity=3 * BLOCK))
    inputs = np.asarray(4 * jax.random.normal(getkey(), (BLOCK + 20, 2)))
    first = [f(z) for z in inputs]
    assert f.sample.capacity == 2 * BLOCK
    for z, value in zip(inputs, first, strict=True):
        assert np.array_equal(f(z), value)
        np.testing.assert_allclose(roomy(z), value, atol=1e-5)


def test_remembering_keeps_even_answers_that_were_not_drawn(getkey):
    f = Remembering(prior(getkey(), capacity=BLOCK))
    line = [np.array([t, t]) for t in np.linspace(0, 0.5, 60)]
    first = [f(z) for z in line]
    assert f.sample.count < 60
    assert all(np.array_equal(f(z), value) for z, value in zip(line[::-1], first[::-1], strict=True))


@pytest.mark.parametrize(
    ("z", "hint"),
    [
        (np.zeros(3), r"shape \(3,\); it takes one of shape \(2,\)"),
        (np.array([0.0, np.nan]), "not finite"),
    ],
)
def test_remembering_refuses_what_is_no_input(z, hint, getkey):
    with pytest.raises(UserError, match=hint):
        Remembering(prior(getkey()))(z)


def test_remembering_inside_jit_says_what_to_use_instead(getkey):
    f = Remembering(prior(getkey()))
    with pytest.raises(UserError, match=r"SequentialSample\.ask"):
        jax.jit(f)(jnp.zeros(2))


def test_a_full_sample_still_gives_every_input_a_value_of_its_own():
    sample = SequentialSample.from_prior(SquaredExponential((0.01,)), 1, 64, 1, jax.random.key(0))
    _, full = eqx.filter_jit(SequentialSample.ask_all)(sample, jnp.arange(64.0)[:, None])
    assert full.full
    values = [float(full.ask(jnp.array([z]))[0][0]) for z in (100.0, 200.0, 300.0)]
    assert len(set(values)) == 3
