"""The belief against the textbook, in numpy, on a small system; and all that it refuses."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sbsrl import UserError
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.posterior import Moments
from sbsrl.belief.protocol import Calibrated, Drawing, Samples
from sbsrl.belief.settings import GPSettings
from sbsrl.kernels import FiniteRank, Linear, SquaredExponential
from sbsrl.model import Model, Signals
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

NOISE = 0.05
SCALE = np.array([0.5, 2.0])
LENGTHS = np.array([1.0, 2.0, 0.7])
ROWS = 15
KEY = jax.random.key(0)
"""Of an update, for which it does not matter."""
TRACES = []
"""Gets longer whenever the prior mean is called."""


def drift(x, a):
    """A nonlinear simulator."""
    TRACES.append(x)
    return 0.9 * x + 0.1 * jnp.sin(x[::-1]) * a


PRIOR = GPPrior(
    mean=drift,
    scale=tuple(SCALE),
    kernel=SquaredExponential(tuple(LENGTHS)),
    noise=NOISE,
    bound=1.0,
    bound_source="assumed",
)


def mean_of(x, a):
    return 0.9 * x + 0.1 * np.sin(x[..., ::-1]) * a


def moves(x, a, y):
    """Transitions; what they earned and cost is of no use to a Gaussian process, and not even a number here."""
    return Transitions(x, a, y, np.full(len(a), np.nan), np.full((len(a), 2), np.nan), np.zeros(len(a), bool))


def transitions(seed=0, count=ROWS, shift=0.0):
    """A mismatch of about a third of the scale, the second output `shift` scales away."""
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=(count, 2)), rng.uniform(-1, 1, (count, 1))
    g = np.sin(x.sum(1, keepdims=True)) * np.array([0.3, -0.1]) + np.array([0.0, shift])
    return moves(x, a, mean_of(x, a) + SCALE * g)


def nothing(prior=PRIOR, chunk=None, **settings):
    return GPBelief.create(prior, 3, 4 * ROWS, 4, GPSettings(features=16, **settings), chunk=chunk)


@pytest.fixture(scope="module")
def belief():
    return nothing().update(transitions(), KEY)


QUERIES = np.array([[0.2, -0.4, 0.5], [3.0, 3.0, -1.0], [-1.0, 0.1, 0.0]])


def textbook(data):
    """Mean, and variance in units of the scale, at the queries by dense solves."""
    z = np.concatenate([data.states, data.actions], axis=1)
    kernel = lambda u, v: np.exp(-0.5 * (((u[:, None] - v[None]) / LENGTHS) ** 2).sum(-1))  # noqa: E731
    gram, k = kernel(z, z) + NOISE**2 * np.eye(len(z)), kernel(z, QUERIES)
    residual = (data.next_states - mean_of(data.states, data.actions)) / SCALE
    mean = mean_of(QUERIES[:, :2], QUERIES[:, 2:]) + SCALE * (k.T @ np.linalg.solve(gram, residual))
    return mean, 1 - np.sum(k * np.linalg.solve(gram, k), axis=0)


@eqx.filter_jit
def at(function, z):
    """A dynamics, or an uncertainty, at the rows of z."""
    return function.many(z.T[:2], z.T[2:]).T


def test_nominal_is_the_posterior_mean(belief):
    """To 2e-5, in single precision."""
    got = at(belief.nominal(), jnp.asarray(QUERIES, jnp.float32))
    np.testing.assert_allclose(got, textbook(transitions())[0], atol=2e-5)


def test_uncertainty_is_the_information_of_both_outputs(belief):
    """To 1e-6 of it."""
    _, variance = textbook(transitions())
    np.testing.assert_allclose(
        at(belief.uncertainty(), jnp.asarray(QUERIES)), 2 * np.log1p(variance / NOISE**2), rtol=1e-6
    )


def test_before_any_data_the_nominal_is_the_prior_mean_and_nothing_is_known():
    """To 1e-6; the information of a look is that of the prior."""
    none = nothing()
    got = at(none.nominal(), jnp.asarray(QUERIES, jnp.float32))
    np.testing.assert_allclose(got, mean_of(QUERIES[:, :2], QUERIES[:, 2:]), rtol=1e-6)
    np.testing.assert_allclose(at(none.uncertainty(), jnp.asarray(QUERIES)), 2 * np.log1p(NOISE**-2), rtol=1e-12)
    assert none.calibration_warning() is None


def test_episodes_of_equal_length_are_compiled_once(belief):
    """The prior mean is traced no more; neither for new updates, nor for new answers."""
    at(belief.nominal(), jnp.asarray(QUERIES, jnp.float32))
    before = len(TRACES)
    for seed in (1, 2):
        belief = belief.update(transitions(seed), KEY)
        at(belief.nominal(), jnp.asarray(QUERIES, jnp.float32))
    assert belief.count == 3 * ROWS
    assert len(TRACES) == before


def test_offline_data_are_an_update_that_belongs_to_no_episode():
    """Bit for bit what an update learns. Where they contradict the prior, that is said of the offline data."""
    data = transitions(1, shift=30.0)
    known, learned = nothing().condition_on(data), nothing().update(data, KEY)
    assert known.count == ROWS
    for one, other in zip(jax.tree.leaves(known.groups), jax.tree.leaves(learned.groups), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "violated in the offline data: at" in known.calibration_warning()
    assert "violated at episode 1: at" in learned.calibration_warning()


def test_after_offline_data_a_warning_counts_the_episodes_alone():
    """The offline data and the first episode are as they should be, the second episode is not."""
    belief = nothing().condition_on(transitions(1)).update(transitions(2), KEY)
    assert belief.calibration_warning() is None
    assert "violated at episode 2: at" in belief.update(transitions(3, shift=30.0), KEY).calibration_warning()


def test_no_offline_data_change_nothing_and_later_ones_are_refused(belief):
    none = nothing().condition_on(transitions(count=0))
    assert none.offline == none.updates == none.count == 0
    with pytest.raises(UserError, match="offline data come before the first episode, and this belief has seen 1; "):
        belief.condition_on(transitions(1))


def test_kernels_for_each_output_that_are_equal_are_one_kernel_for_all(belief):
    """The same mean to 1e-6, the same uncertainty to 1e-6 of it, the same warnings."""
    separate = nothing(dataclasses.replace(PRIOR, kernel=(PRIOR.kernel, PRIOR.kernel))).update(transitions(), KEY)
    assert len(separate.groups) == 2
    for answer, z in (("nominal", jnp.asarray(QUERIES, jnp.float32)), ("uncertainty", jnp.asarray(QUERIES))):
        both = [at(getattr(each, answer)(), z) for each in (belief, separate)]
        np.testing.assert_allclose(both[0], both[1], rtol=1e-6, atol=1e-6)
    assert separate.calibration_warning() is belief.calibration_warning() is None
    strange = [each.update(transitions(1, shift=30.0), KEY).calibration_warning() for each in (belief, separate)]
    assert "violated at episode 2" in strange[0]
    assert "output 1" in strange[0]
    assert strange[0] == strange[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["states", "actions", "next_states"])
def test_data_that_are_not_finite_are_refused(belief, part, bad):
    data = transitions(1)
    getattr(data, part)[3, 0] = bad
    with pytest.raises(UserError, match=f"the {part} of the data are not all finite; remove or repair"):
        belief.update(data, KEY)
    assert belief.count == ROWS


@pytest.mark.parametrize(
    ("part", "shape"), [("states", (ROWS, 3)), ("actions", (ROWS, 2)), ("next_states", (ROWS - 1, 2))]
)
def test_data_of_the_wrong_shape_are_refused(belief, part, shape):
    with pytest.raises(UserError, match=f"the {part} of the data have the shape .*{shape[0]}, {shape[1]}.*expected"):
        belief.update(transitions()._replace(**{part: np.zeros(shape)}), KEY)


def test_no_data_are_no_update(belief):
    assert belief.update(transitions(count=0), KEY) is belief


def test_more_data_or_updates_than_there_is_room_for_are_refused(belief):
    with pytest.raises(UserError, match=r"room for 64 transitions and 5 updates, and would hold 215 .* more capacity"):
        belief.update(transitions(count=200), KEY)
    full = eqx.tree_at(lambda b: b.updates, belief, jnp.int32(5))
    with pytest.raises(UserError, match="would hold 30 after update 6; create it with more capacity"):
        full.update(transitions(), KEY)


class Wave(SquaredExponential):
    """k(u, v) = sin |u - v|, which is 0 for equal inputs: no kernel at all."""

    def profile(self, r2):
        return jnp.sin(jnp.sqrt(r2))

    def describe(self):
        return "Wave"


def test_a_kernel_that_is_not_positive_definite_is_refused_and_leaves_the_belief_as_it_was():
    before = nothing(dataclasses.replace(PRIOR, kernel=Wave(tuple(LENGTHS))))
    copies = [np.array(leaf) for leaf in jax.tree.leaves(before)]
    with pytest.raises(
        UserError, match=r"Gram matrix of 15 points is not positive definite .* Wave is no kernel on these"
    ):
        before.update(transitions(), KEY)
    assert all(np.array_equal(a, b) for a, b in zip(copies, jax.tree.leaves(before), strict=True))


def test_inputs_that_overflow_a_kernel_are_refused():
    """1e200 squared is no number of double precision."""
    data = transitions()
    before = nothing(dataclasses.replace(PRIOR, kernel=Linear(tuple(LENGTHS))))
    with pytest.raises(UserError, match=r"Linear.* is not finite on the data; use a bounded map"):
        before.update(data._replace(states=1e200 * data.states, next_states=1e200 * data.states), KEY)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noise": 0.0}, "noise must be positive"),
        ({"scale": (0.0, 1.0)}, "scale must be positive"),
        ({"kernel": (PRIOR.kernel,) * 3}, "3 kernels for 2 outputs"),
        (
            {"kernel": SquaredExponential((1.0, 1.0))},
            r"SquaredExponential.* does not take inputs \(x, a\) of 3 numbers",
        ),
        ({"mean": lambda x, a: x[:1]}, r"the prior's mean has the shape \(1,\); \(2,\) was expected"),
        ({"mean": lambda x, a: x + jnp.ones(5)}, "the prior's mean does not take 2 states and 1 actions"),
    ],
)
def test_priors_that_do_not_fit_are_refused_before_the_first_episode(changes, said):
    with pytest.raises(UserError, match=said):
        nothing(dataclasses.replace(PRIOR, **changes))


def test_nothing_can_be_truncated_without_a_bound():
    with pytest.raises(UserError, match=r"the prior has no bound B .* use a prior with a bound, or another sampler"):
        nothing(dataclasses.replace(PRIOR, bound=None), sampler="truncated")


@eqx.filter_jit
def of_samples(samples, z):
    """Each sample at the rows of z."""
    return jax.vmap(lambda m: samples.member(m).many(z.T[:2], z.T[2:]))(jnp.arange(len(samples)))


def points(size):
    """Six states, rounded to what single precision can hold."""
    return arrays(np.float64, (6, 2), elements=st.floats(-size, size, width=32))


@settings(max_examples=40, deadline=None)
@given(
    states=st.one_of(points(3), points(1e6)),
    next_states=st.one_of(points(3), points(1e6), st.just(np.ones((6, 2)))),
    rows=st.lists(st.integers(0, 5), min_size=ROWS, max_size=ROWS),
    collinear=st.booleans(),
)
def test_no_finite_data_make_a_belief_that_is_not_finite(states, next_states, rows, collinear):
    """Huge scales, repeated, collinear and single points, constant outputs: 0 <= sigma_n^2 <= 1, all is finite."""
    if collinear:
        states = states[:, :1] * np.array([1.0, -2.0])
    data = moves(states[rows], np.zeros((ROWS, 1)), next_states[rows])
    after = nothing().update(data, KEY)
    asked = np.stack([states[rows[0]], states[1] + 0.1, np.zeros(2)])  # at a point, near one, and at the origin
    z = jnp.asarray(np.pad(asked, [(0, 0), (0, 1)]))
    information = at(after.uncertainty(), z)
    assert np.all(np.isfinite(after.groups[0].posterior.factor))
    assert np.all(np.isfinite(at(after.nominal(), z.astype(jnp.float32))))
    assert np.all(np.isfinite(of_samples(after.samples(jax.random.key(0), 3), z.astype(jnp.float32))))
    assert np.all((information >= 0) & (information <= 2 * np.log1p(NOISE**-2) + 1e-9))


def test_it_does_not_matter_where_the_data_are():
    """The same system 30 length scales from the origin: the nominal, in float32, is as near the posterior mean."""
    prior = dataclasses.replace(PRIOR, mean=lambda x, a: x)
    near = transitions(25)
    shift = np.array([30.0, -60.0])
    x, a = np.array([0.2, -0.4]), np.array([0.5])
    errors = []
    for offset in (np.zeros(2), shift):
        data = moves(near.states + offset, near.actions, near.next_states + offset)
        after = GPBelief.create(prior, 3, 200, 1).update(data, KEY)
        posterior = after.groups[0].posterior
        exact, _ = Moments.of(posterior)(jnp.concatenate([jnp.asarray(x + offset), jnp.asarray(a)]))
        got = after.nominal()(jnp.asarray(x + offset, jnp.float32), jnp.asarray(a, jnp.float32))
        errors.append(np.abs((np.asarray(got) - x - offset) / SCALE - np.asarray(exact)).max())
    assert errors[0] < 0.05 * NOISE
    assert errors[1] < 0.3 * NOISE


def logarithmic(z):
    return jnp.stack([jnp.log(z[0]), z[2]])


def test_a_kernel_need_not_be_finite_where_there_are_no_data():
    prior = dataclasses.replace(PRIOR, kernel=FiniteRank(logarithmic, 2))
    data = transitions(25)
    positive = moves(np.abs(data.states) + 1, data.actions, data.next_states)
    after = GPBelief.create(prior, 3, 200, 1).update(positive, KEY)
    x, a = jnp.array([1.5, 1.5], jnp.float32), jnp.array([0.5], jnp.float32)
    assert np.all(np.isfinite(after.nominal()(x, a)))
    assert np.all(np.isfinite(after.samples(jax.random.key(0), 3).member(jnp.int32(1))(x, a)))
    assert np.isfinite(after.uncertainty()(x, a))


def test_a_repeated_episode_with_hardly_any_noise_is_accepted():
    data = transitions(25)
    belief = GPBelief.create(dataclasses.replace(PRIOR, noise=1e-6), 3, 200, 2).update(data, KEY)
    after = belief.update(data, KEY)
    assert np.all(np.isfinite(after.groups[0].posterior.factor))
    assert 0 <= after.groups[0].posterior.jitter <= 1e-6


SHORT = 4


def inverse_mean(x, a):
    """Not a number at the origin, where nothing is."""
    TRACES.append(x)
    return x + 0.01 * x / jnp.sqrt(jnp.sum(x**2))


ODD = dataclasses.replace(
    PRIOR, mean=inverse_mean, kernel=(PRIOR.kernel, FiniteRank(logarithmic, 2)), noise=(0.05, 0.1)
)
"""Neither its mean nor its second kernel is finite at the origin."""


def away(seed, count=ROWS, shift=0.0):
    data = transitions(seed, count, shift)
    return moves(np.abs(data.states) + 0.5, data.actions, np.abs(data.states) + 0.5 + 0.1 * np.sin(data.states) + shift)


@pytest.mark.parametrize("sampler", ["pathwise", "truncated"])
@pytest.mark.parametrize(("prior", "make"), [(PRIOR, transitions), (ODD, away)], ids=["drift", "odd"])
def test_padding_has_no_effect(prior, make, sampler):
    """Short, shorter and whole episodes, padded or not: all that is remembered and answered agrees to 1e-12,

    samples and nominal in single precision to 1e-6; and what was padding is written over.
    """
    z = jnp.asarray(np.abs(QUERIES) + 0.5)
    padded, exact = nothing(prior, ROWS, sampler=sampler), nothing(prior, sampler=sampler)
    for seed, count in ((0, SHORT), (1, 1), (2, ROWS), (3, ROWS - 1)):
        padded, exact = (belief.update(make(seed, count), KEY) for belief in (padded, exact))
        assert padded.count == exact.count
        for one, other in zip(jax.tree.leaves(_remembered(padded)), jax.tree.leaves(_remembered(exact)), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12, rtol=1e-12)
        np.testing.assert_array_equal(padded.episode_of, exact.episode_of)
        np.testing.assert_allclose(at(padded.uncertainty(), z), at(exact.uncertainty(), z), rtol=1e-9)
        one, other = (belief.samples(jax.random.key(1), 3) for belief in (padded, exact))
        z32 = z.astype(jnp.float32)
        np.testing.assert_allclose(of_samples(one, z32), of_samples(other, z32), atol=1e-6)
        np.testing.assert_allclose(at(padded.nominal(), z32), at(exact.nominal(), z32), atol=1e-6)
        assert padded.calibration_warning() is exact.calibration_warning() is None


def _remembered(belief):
    """Everything, but for the inputs of padding, on which nothing depends."""
    rows = belief.groups[0].posterior.valid[:, None] > 0
    clean = lambda inputs: jnp.where(rows, inputs, 0)  # noqa: E731
    groups = eqx.tree_at(lambda g: [each.posterior.inputs for each in g], belief.groups, replace_fn=clean)
    return groups, belief.residuals, belief.beta, belief.updates


def test_whole_episodes_are_the_same_with_and_without_a_length():
    """To the last bit."""
    one, other = (nothing(PRIOR, chunk).update(transitions(1), KEY) for chunk in (ROWS, None))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_short_episodes_are_compiled_with_the_whole_ones():
    """The prior mean is traced no more."""
    belief = nothing(PRIOR, ROWS).update(transitions(), KEY)
    before = len(TRACES)
    after = belief.update(transitions(1, SHORT), KEY).update(transitions(2, 1), KEY)
    assert after.count == ROWS + SHORT + 1
    assert len(TRACES) == before


def test_padding_never_reaches_beyond_the_room():
    """64 rows are full but for two, and a whole episode is 15: the factor is that of the 64 points, to 1e-12."""
    belief, parts = nothing(PRIOR, ROWS), []
    for seed, count in enumerate((ROWS, ROWS, 2 * ROWS + 2, 2)):
        parts.append(transitions(seed, count))
        belief = belief.update(parts[-1], KEY)
    assert belief.count == 64
    whole = nothing().update(moves(*(np.concatenate(part) for part in list(zip(*parts, strict=True))[:3])), KEY)
    np.testing.assert_allclose(belief.groups[0].posterior.factor, whole.groups[0].posterior.factor, atol=1e-12)


def test_a_warning_comes_from_short_episodes_and_not_from_padding():
    """The last transition, of which padding is a copy, contradicts the prior; it alone is named, with its episode."""
    strange = transitions(1, SHORT, shift=30.0)
    padded, exact = (nothing(PRIOR, chunk).update(transitions(), KEY) for chunk in (ROWS, None))
    padded, exact = padded.update(strange, KEY), exact.update(strange, KEY)
    assert "violated at episode 2" in padded.calibration_warning()
    assert padded.calibration_warning() == exact.calibration_warning()


def test_the_key_of_an_update_does_not_matter(belief):
    one, other = (belief.update(transitions(1), jax.random.key(seed)) for seed in (0, 1))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


SIGNALS = Signals(lambda x, a, y: x[0] - a[0], lambda x, a, y: jnp.stack([y[0], y[1], a[0]]))


def test_it_is_calibrated_and_its_models_are_models_with_the_signals_of_the_task():
    belief = GPBelief.create(PRIOR, 3, ROWS, 1, signals=SIGNALS).update(transitions(), KEY)
    assert isinstance(belief, Calibrated)
    samples = belief.samples(KEY, 2)
    assert isinstance(samples, Samples)
    x, a, y = (jnp.array(part, jnp.float32) for part in ([0.5, 1.0], [0.25], [2.0, 3.0]))
    for model in (belief.nominal(), samples.member(jnp.int32(1))):
        assert isinstance(model, Model)
        assert not model.stochastic
        assert model.reward(x, a, y) == 0.25
        np.testing.assert_array_equal(model.costs(x, a, y), [2.0, 3.0, 0.25])
        np.testing.assert_array_equal(model.draw(x, a, KEY), model(x, a))


class TestDraws:
    """Functions that a risk is counted on."""

    def test_their_moments_are_those_of_the_posterior(self):
        """4000 draws at three inputs near data and far from them; mean and covariance to 4.5 standard errors."""
        belief = nothing().update(transitions(), KEY)
        draws = belief.draws(jax.random.key(5), 4000)
        inputs = np.random.default_rng(2).normal(size=(3, 3))
        members = jnp.arange(4000, dtype=jnp.int32)
        found = jax.lax.map(
            lambda m: jnp.stack([draws.member(m)(jnp.asarray(z[:2]), jnp.asarray(z[2:])) for z in inputs]), members
        )
        found = (np.asarray(found, float) - mean_of(inputs[:, :2], inputs[:, 2:])) / SCALE
        mean, variance = Moments.of(belief.groups[0].posterior)(jnp.asarray(inputs.T))
        deviation = np.sqrt(np.asarray(variance))
        error = np.abs(found.mean(axis=0) - np.asarray(mean).T) / deviation[:, None]
        assert error.max() < 4.5 / np.sqrt(4000)
        np.testing.assert_allclose(
            found.var(axis=0), np.asarray(variance)[:, None] * np.ones(2), rtol=4.5 * np.sqrt(2 / 4000)
        )

    def test_they_are_others_than_the_samples_and_come_from_the_posterior_whatever_the_samples_are(self):
        truncated = nothing(sampler="truncated").update(transitions(), KEY)
        pathwise = nothing().update(transitions(), KEY)
        x, a = jnp.array([0.3, -0.2]), jnp.array([0.5])
        first = [belief.draws(jax.random.key(5), 2).member(jnp.int32(0))(x, a) for belief in (truncated, pathwise)]
        np.testing.assert_array_equal(*first)

    def test_the_noise_is_in_units_of_the_state(self):
        np.testing.assert_allclose(nothing().noise(), NOISE * SCALE)
        assert isinstance(nothing(), Drawing)
