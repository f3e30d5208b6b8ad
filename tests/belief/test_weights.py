"""The belief of weights against the belief of all points, and against numpy."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.gp import GPBelief, _envelope
from sbsrl.belief.protocol import Calibrated, Drawing, Samples
from sbsrl.belief.settings import GPSettings
from sbsrl.belief.weight_posterior import BLOCK
from sbsrl.belief.weights import WeightBelief
from sbsrl.kernels import FiniteRank, Linear, SquaredExponential
from sbsrl.model import Model, Signals
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

NOISE, BOUND, DELTA = 0.1, 1.5, 0.1
SCALE = np.array([0.5, 2.0])
STEPS, EPISODES, MANY = 6, 3, 5
KEY = jax.random.key(0)
"""Of an update, for which it does not matter."""
TRACES = []
"""Gets longer whenever the prior mean is called."""


def drift(x, a):
    """A nonlinear simulator."""
    TRACES.append(x)
    return 0.9 * x + 0.1 * jnp.sin(x[::-1]) * a


def bumps(z):
    """Four features."""
    return jnp.stack([jnp.cos(z[0]), jnp.sin(z[0]), 0.5 * jnp.cos(z[1] + z[2]), jnp.tanh(z[1])])


LINEAR, BUMPS = Linear((1.0, 2.0, 0.7)), FiniteRank(bumps, 4)
PRIOR = GPPrior(
    mean=drift,
    scale=tuple(SCALE),
    kernel=0.5 * LINEAR + BUMPS,
    noise=NOISE,
    bound=BOUND,
    bound_source="assumed",
)
SETTINGS = GPSettings(sampler="truncated", delta=DELTA, features=16)


def mean_of(x, a):
    return 0.9 * x + 0.1 * np.sin(x[..., ::-1]) * a


def moves(x, a, y):
    """Transitions; what they earned and cost is of no use to a Gaussian process, and not even a number here."""
    return Transitions(x, a, y, np.full(len(a), np.nan), np.full((len(a), 2), np.nan), np.zeros(len(a), bool))


def transitions(seed, count=STEPS, shift=0.0):
    """A mismatch of about half the scale, with noise, the second output `shift` scales away."""
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=(count, 2)), rng.uniform(-1, 1, (count, 1))
    g = np.tanh(x[:, :1]) * np.array([0.5, -0.4]) + np.array([0.0, shift]) + NOISE * rng.normal(size=(count, 2))
    return moves(x, a, mean_of(x, a) + SCALE * g)


def weights_of(prior=PRIOR, episodes=EPISODES, settings=SETTINGS, chunk=None):
    return WeightBelief.create(prior, 3, episodes, settings, chunk=chunk)


PRIORS = {
    "sum": PRIOR,
    "one each, with data": dataclasses.replace(PRIOR, kernel=(LINEAR, BUMPS), noise=(NOISE, 2 * NOISE)),
}


@pytest.fixture(scope="module", params=PRIORS, ids=list(PRIORS))
def histories(request):
    """Both beliefs before and after each of three episodes."""
    prior = PRIORS[request.param]
    pairs = [(weights_of(prior), GPBelief.create(prior, 3, STEPS * (EPISODES + 1), EPISODES, SETTINGS))]
    if "with data" in request.param:
        pairs = [tuple(belief.condition_on(transitions(99)) for belief in pairs[0])]
    for seed in range(EPISODES):
        pairs.append(tuple(belief.update(transitions(seed), KEY) for belief in pairs[-1]))
    return pairs


QUERIES = np.random.default_rng(1).normal(size=(3, 40))


@eqx.filter_jit
def at(function, z):
    """A dynamics, or an uncertainty, at the columns of z."""
    return function.many(z[:2], z[2:])


def test_the_mean_is_that_of_all_points(histories):
    """To 2e-5, in single precision, before any data and after every episode."""
    z = jnp.asarray(QUERIES, jnp.float32)
    for weights, points in histories:
        np.testing.assert_allclose(at(weights.nominal(), z), at(points.nominal(), z), atol=2e-5)


def as_measured(belief, uncertainty):
    return dataclasses.replace(belief, settings=dataclasses.replace(SETTINGS, uncertainty=uncertainty)).uncertainty()


@pytest.mark.parametrize(
    ("histories", "uncertainty"),
    [("sum", "information"), ("one each, with data", "information"), ("one each, with data", "deviation")],
    indirect=["histories"],
)
def test_the_uncertainty_is_that_of_all_points(histories, uncertainty):
    """To 1e-6 of it: sigma_n of both outputs, in nats and in units of the state."""
    z = jnp.asarray(QUERIES)
    for both in histories:
        ours, theirs = (at(as_measured(belief, uncertainty), z) for belief in both)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_information_and_width_are_those_of_all_points(histories):
    """To 1e-9 of them."""
    for weights, points in histories:
        np.testing.assert_allclose(weights.width(), points.width(), rtol=1e-9)
        for ours, theirs in zip(weights.groups, points.groups, strict=True):
            np.testing.assert_allclose(ours.information(), theirs.posterior.information(), rtol=1e-9, atol=1e-12)


@eqx.filter_jit
def both_intervals(weights, points, z):
    return [(group(z), _envelope(points, i)(z)) for i, group in enumerate(weights.groups)]


def test_what_samples_are_cut_to_is_that_of_all_points_after_every_episode(histories):
    """The intersection of all confidence sets so far, to 1e-8."""
    for weights, points in histories:
        for ours, theirs in both_intervals(weights, points, jnp.asarray(QUERIES)):
            np.testing.assert_allclose(ours.low, theirs.low, atol=1e-8)
            np.testing.assert_allclose(ours.high, theirs.high, atol=1e-8)


@eqx.filter_jit
def of_samples(samples, z):
    """Each sample at the columns of z."""
    return jax.vmap(lambda m: samples.member(m).many(z[:2], z[2:]))(jnp.arange(len(samples)))


def prior_weights(samples):
    return [part.own.function.weights for part in samples.parts]


@pytest.mark.parametrize("histories", ["sum"], indirect=True)
def test_truncated_samples_of_the_same_weights_are_the_same_functions(histories):
    """To 2e-5, in single precision, before and after the episodes; and they are cut, or it would say nothing."""
    z = jnp.asarray(QUERIES, jnp.float32)
    before, after = ([belief.samples(jax.random.key(0), MANY) for belief in histories[i]] for i in (0, -1))
    found = []
    for ours, theirs in (before, after):
        found.append(of_samples(ours, z))
        same = eqx.tree_at(prior_weights, theirs, prior_weights(ours))
        np.testing.assert_allclose(found[-1], of_samples(same, z), atol=2e-5)
    assert np.mean(np.abs(found[0] - found[1]) > 1e-3) > 0.1


def test_truncated_samples_keep_their_weights_in_all_episodes_and_follow_the_key(histories):
    first, last = (prior_weights(histories[i][0].samples(jax.random.key(0), MANY)) for i in (0, -1))
    for one, other in zip(first, last, strict=True):
        np.testing.assert_array_equal(one, other)
    other = prior_weights(histories[0][0].samples(jax.random.key(1), MANY))
    assert not np.any(first[0] == other[0])


@pytest.fixture(scope="module")
def pathwise():
    """Before and after two episodes, drawing from the posterior."""
    beliefs = [weights_of(settings=GPSettings(sampler="pathwise", delta=DELTA))]
    for seed in range(2):
        beliefs.append(beliefs[-1].update(transitions(seed), KEY))
    return beliefs


def features_of(data):
    z = np.concatenate([data.states, data.actions], axis=1)
    scaled = np.sqrt(0.5) * z / np.array([1.0, 2.0, 0.7])
    waves = [np.cos(z[:, 0]), np.sin(z[:, 0]), 0.5 * np.cos(z[:, 1] + z[:, 2]), np.tanh(z[:, 1])]
    return np.concatenate([scaled, np.stack(waves, axis=1)], axis=1)


def test_posterior_samples_have_the_mean_and_covariance_of_the_weights(pathwise):
    """20000 draws against the textbook in numpy, all moments within 4 standard errors; the outputs independent."""
    count = 20_000
    drawn = np.asarray(pathwise[2].samples(jax.random.key(0), count).parts[0].own.weights, float)
    data = [transitions(seed) for seed in range(2)]
    phi = np.concatenate([features_of(d) for d in data])
    y = np.concatenate([(d.next_states - mean_of(d.states, d.actions)) / SCALE for d in data])
    covariance = np.linalg.inv(np.eye(7) + phi.T @ phi / NOISE**2)
    mean = (covariance @ phi.T @ y / NOISE**2).T
    centred = drawn - mean
    error = np.sqrt(np.diag(covariance) / count)
    assert np.all(np.abs(centred.mean(axis=0)) < 4 * error)
    both = centred.reshape(count, -1)
    expected = np.kron(np.eye(2), covariance)
    squares = np.diag(expected)
    errors = np.sqrt((np.outer(squares, squares) + expected**2) / count)
    assert np.all(np.abs(both.T @ both / count - expected) < 4 * errors)


def test_posterior_samples_are_drawn_anew_in_each_episode_and_repeat_with_the_key(pathwise):
    """What is random in them differs, not only their mean."""
    key = jax.random.key(3)
    noise = []
    for belief in (pathwise[1], pathwise[1], pathwise[2]):
        group, weights = belief.groups[0], belief.samples(key, 2).parts[0].own.weights
        chosen = group.inverse[group.now]
        noise.append((np.asarray(weights) - np.asarray(group.mean[group.now])) @ np.linalg.inv(np.asarray(chosen)))
    np.testing.assert_array_equal(noise[0], noise[1])
    assert np.all(np.abs(noise[0] - noise[2]) > 1e-3)


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_samples_have_the_posterior_s_deviation_however_small_the_noise(noise):
    """2000 of them at ten of 18 points, in units of numpy's: root mean square 1 within 0.05, and about the mean."""
    prior = dataclasses.replace(PRIOR, noise=noise)
    belief, data = weights_of(prior, settings=GPSettings(delta=DELTA)), [transitions(seed) for seed in range(EPISODES)]
    for each in data:
        belief = belief.update(each, KEY)
    phi = np.concatenate([features_of(each) for each in data])
    precision = np.eye(7) + phi.T @ phi / noise**2
    deviation = np.sqrt(np.sum(phi[:10].T * np.linalg.solve(precision, phi[:10].T), axis=0))
    seen = jnp.asarray(np.concatenate([np.concatenate([e.states, e.actions], axis=1) for e in data])[:10].T)
    (stack,), (nominal,) = belief.samples(KEY, 2000).parts, belief.nominal().parts
    drawn = jax.vmap(lambda m: stack.member(m)(seen))(jnp.arange(2000))
    off = (np.asarray(drawn) - np.asarray(nominal(seen))) / deviation
    assert np.sqrt(np.mean(off**2)) == pytest.approx(1, abs=0.05)
    assert np.abs(off.mean(axis=0)).max() < 0.15
    (variance,) = belief.uncertainty().variances
    np.testing.assert_allclose(np.sqrt(variance(seen)), deviation, rtol=0.01)


def circle(z):
    return jnp.stack([jnp.cos(2 * z[0]), jnp.sin(2 * z[0]), z[1]])


LINE = GPPrior(
    mean=lambda x, a: 0.5 * x,
    scale=(1.0,),
    kernel=FiniteRank(circle, 3),
    noise=0.3,
    bound=1.0,
    bound_source="known",
)
LONG = 2 * BLOCK + 22


def one_point(rng, shift=0.0):
    x, a = rng.uniform(-2, 2, (1, 1)), rng.uniform(-1, 1, (1, 1))
    return moves(x, a, 0.5 * x + 0.6 * np.sin(2 * x) + shift + 0.3 * rng.normal(size=(1, 1)))


class Brute:
    """The confidence sets of all episodes, computed one by one, in numpy."""

    def __init__(self):
        self.precision, self.moment, self.sets = np.eye(3), np.zeros(3), [(np.zeros(3), np.eye(3), 1.0)]

    def learn(self, data):
        x, a = data.states[0, 0], data.actions[0, 0]
        phi = np.array([np.cos(2 * x), np.sin(2 * x), a])
        self.precision = self.precision + np.outer(phi, phi) / 0.3**2
        self.moment = self.moment + phi * (data.next_states[0, 0] - 0.5 * x) / 0.3**2
        beta = 1 + np.sqrt(2 * (np.linalg.slogdet(self.precision)[1] / 2 + 1 + np.log(1 / DELTA)))
        covariance = np.linalg.inv(self.precision)
        self.sets.append((covariance @ self.moment, covariance, beta))

    def interval(self, z):
        """max_i lo_i and min_i hi_i at the columns of z."""
        phi = np.stack([np.cos(2 * z[0]), np.sin(2 * z[0]), z[1]])
        low, high = [], []
        for mean, covariance, beta in self.sets:
            width = beta * np.sqrt(np.sum(phi * (covariance @ phi), axis=0))
            low.append(mean @ phi - width)
            high.append(mean @ phi + width)
        return np.max(low, axis=0), np.min(high, axis=0)


@eqx.filter_jit
def interval(belief, z):
    return belief.groups[0](z)


def test_the_intersection_in_blocks_is_that_of_all_episodes():
    """150 episodes, at the edges of the blocks of 64 and after the last, which begins before a multiple. To 1e-9."""
    rng = np.random.default_rng(0)
    belief, brute = WeightBelief.create(LINE, 2, LONG - 1, SETTINGS), Brute()
    z = rng.uniform(-2, 2, (2, 30))
    for n in range(LONG + 1):
        if n in {0, 1, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, LONG}:
            low, high = brute.interval(z)
            found = interval(belief, jnp.asarray(z))
            np.testing.assert_allclose(found.low[0], low, atol=1e-9)
            np.testing.assert_allclose(found.high[0], high, atol=1e-9)
        if n < LONG:
            data = one_point(rng, shift=0.4 * np.sin(n))
            belief, _ = belief.update(data, KEY), brute.learn(data)
    assert int(belief.groups[0].now) == LONG


def first_gap(brute, data):
    """The first update after which the confidence sets have no common point at the new input, or -1."""
    for n, each in enumerate(data, 1):
        brute.learn(each)
        low, high = brute.interval(np.concatenate([each.states, each.actions]).reshape(2, 1))
        if low[0] > high[0]:
            return n
    return -1


def test_there_is_a_warning_exactly_when_the_sets_have_no_common_point():
    """30 runs of eight points, more and more far-fetched; most of the later ones contradict the bound."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        data = [one_point(rng, shift=0.15 * seed * rng.normal()) for _ in range(8)]
        belief = WeightBelief.create(LINE, 2, 8, SETTINGS)
        for each in data:
            belief = belief.update(each, KEY)
        expected = first_gap(Brute(), data)
        found.append(expected)
        assert int(belief.gap_update) == expected
        if expected < 0:
            assert belief.calibration_warning() is None
        else:
            z = np.concatenate([data[expected - 1].states[0], data[expected - 1].actions[0]])
            where = ", ".join(f"{v:.4g}" for v in z)
            assert belief.calibration_warning() == (
                f"the calibration assumption is violated at episode {expected}: at (x, a) = ({where}) the confidence "
                "sets of output 0 have no common point"
            )
    assert 5 < sum(n < 0 for n in found) < 25
    assert len(set(found)) > 3


def test_a_warning_names_the_output_and_is_one_that_all_points_share(histories):
    """The second output is 30 B away. The belief of all points may have found a reason earlier, never later."""
    strange = [belief.update(transitions(7, shift=30 * BOUND), KEY) for belief in histories[1]]
    assert all(weights.calibration_warning() is points.calibration_warning() is None for weights, points in histories)
    ours, theirs = (belief.calibration_warning() for belief in strange)
    assert "violated at episode 2" in ours
    assert "output 1 have no common point" in ours
    assert "violated at episode 2" in theirs


def test_offline_data_belong_to_no_episode():
    """Where they contradict the prior, that is said of them. There is room for the run all the same."""
    belief = weights_of().condition_on(transitions(1, shift=30 * BOUND))
    assert "violated in the offline data: at" in belief.calibration_warning()
    for seed in range(EPISODES):
        belief = belief.update(transitions(seed), KEY)
    with pytest.raises(UserError, match="has room for 4 updates; create it for more episodes"):
        belief.update(transitions(0), KEY)


def test_after_offline_data_a_warning_counts_the_episodes_alone():
    """The offline data and the first episode are as they should be, the second episode is not."""
    belief = weights_of().condition_on(transitions(1)).update(transitions(2), KEY)
    assert belief.calibration_warning() is None
    assert "violated at episode 2: at" in belief.update(transitions(3, shift=30 * BOUND), KEY).calibration_warning()


def test_no_offline_data_change_nothing_and_later_ones_are_refused(belief):
    none = weights_of().condition_on(transitions(0, count=0))
    assert none.offline == none.groups[0].now == 0
    with pytest.raises(UserError, match="offline data come before the first episode, and this belief has seen 1; "):
        belief.condition_on(transitions(1))


def test_without_a_bound_there_is_nothing_to_object_to_and_the_width_is_infinite():
    belief = weights_of(dataclasses.replace(PRIOR, bound=None), settings=GPSettings())
    belief = belief.update(transitions(1, shift=30 * BOUND), KEY)
    assert belief.calibration_warning() is None
    assert np.all(np.isinf(belief.width()))


def test_episodes_of_equal_length_are_compiled_once():
    """The prior mean is traced no more."""
    belief = weights_of().update(transitions(0), KEY)
    before = len(TRACES)
    belief.update(transitions(1), KEY).update(transitions(2), KEY)
    assert len(TRACES) == before


def test_updates_within_a_compiled_program_are_the_same():
    """To 1e-12."""
    data = [transitions(seed) for seed in range(EPISODES)]
    one_by_one = weights_of()
    for each in data:
        one_by_one = one_by_one.update(each, KEY)
    stacked = [jnp.asarray(np.stack(part)) for part in list(zip(*data, strict=True))[:3]]
    arrays, static = eqx.partition(weights_of(), eqx.is_array)

    def append(arrays, parts):
        return eqx.filter(eqx.combine(arrays, static).append(*parts), eqx.is_array), None

    at_once, _ = jax.jit(lambda arrays: jax.lax.scan(append, arrays, tuple(stacked)))(arrays)
    for one, other in zip(jax.tree.leaves(one_by_one), jax.tree.leaves(at_once), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.fixture(scope="module")
def belief():
    return weights_of().update(transitions(0), KEY)


def test_no_data_are_no_update(belief):
    assert belief.update(transitions(0, count=0), KEY) is belief


@pytest.mark.parametrize("part", ["states", "actions", "next_states"])
def test_data_that_are_not_finite_or_misshapen_are_refused(belief, part):
    data = transitions(1)
    getattr(data, part)[3, 0] = np.nan
    with pytest.raises(UserError, match=f"^the {part} of the data are not all finite; remove or repair.*$"):
        belief.update(data, KEY)
    with pytest.raises(UserError, match=f"^the {part} of the data have the shape .* was expected.$"):
        belief.update(transitions(1)._replace(**{part: np.zeros((STEPS, 5))}), KEY)


def test_data_that_overflow_the_features_are_refused():
    """1e200 squared is no number of double precision."""
    data = transitions(0)
    before = weights_of(dataclasses.replace(PRIOR, kernel=LINEAR))
    with pytest.raises(UserError, match=r"^Linear.* is not finite on the data; use a bounded map of the inputs.$"):
        before.update(data._replace(states=1e200 * data.states), KEY)


@pytest.mark.parametrize(
    ("changes", "settings", "said"),
    [
        (
            {"kernel": SquaredExponential((1.0, 1.0, 1.0))},
            {},
            r"^SquaredExponential.* has infinitely many features; use GPBelief, which remembers the data.$",
        ),
        ({"kernel": (LINEAR, SquaredExponential((1.0, 1.0, 1.0)))}, {}, "has infinitely many features"),
        ({}, {"sampler": "particles"}, "^a belief of weights has no particles and fits nothing; use GPBelief.$"),
        ({}, {"fitted": True}, "has no particles and fits nothing"),
        ({"bound": None}, {"sampler": "truncated"}, "^the prior has no bound B .*; use a prior with a bound"),
        ({"kernel": Linear((1.0, 1.0))}, {}, r"does not take inputs \(x, a\) of 3 numbers"),
    ],
)
def test_what_this_belief_cannot_be_is_refused_in_one_line(changes, settings, said):
    with pytest.raises(UserError, match=said) as refused:
        weights_of(dataclasses.replace(PRIOR, **changes), settings=GPSettings(**settings))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kernel", "settings", "fits"),
    [
        (LINEAR, {}, True),
        ((LINEAR, BUMPS), {"sampler": "truncated"}, True),
        ((LINEAR, SquaredExponential((1.0, 1.0, 1.0))), {}, False),
        (LINEAR + SquaredExponential((1.0, 1.0, 1.0)), {}, False),
        (LINEAR, {"sampler": "particles"}, False),
        (LINEAR, {"fitted": True}, False),
    ],
)
def test_it_fits_kernels_of_finite_rank_that_nobody_fits(kernel, settings, fits):
    assert WeightBelief.fits(dataclasses.replace(PRIOR, kernel=kernel), GPSettings(**settings)) == fits


def test_it_survives_being_saved(belief, tmp_path):
    """Bit for bit, and so is what it learns next."""
    eqx.tree_serialise_leaves(tmp_path / "belief.eqx", belief)
    loaded = eqx.tree_deserialise_leaves(tmp_path / "belief.eqx", weights_of())
    for one, other in ((belief, loaded), [b.update(transitions(1), KEY) for b in (belief, loaded)]):
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def inverse_mean(x, a):
    """Not a number at the origin, where nothing is."""
    return x + 0.01 * x / jnp.sqrt(jnp.sum(x**2))


def logarithmic(z):
    return jnp.stack([jnp.log(jnp.abs(z[0])), z[2]])


ODD = dataclasses.replace(PRIOR, mean=inverse_mean, kernel=(LINEAR, FiniteRank(logarithmic, 2)))
"""Neither its mean nor its second kernel is finite at the origin."""


@pytest.mark.parametrize("prior", [PRIOR, ODD], ids=["drift", "odd"])
def test_padding_has_no_effect(prior):
    """Short, shorter and whole episodes, padded or not: all that is remembered agrees to 1e-12 of its size."""
    padded, exact = weights_of(prior, chunk=STEPS), weights_of(prior)
    for seed, count in enumerate((2, 1, STEPS, STEPS - 1)):
        padded, exact = (belief.update(transitions(seed, count), KEY) for belief in (padded, exact))
        for one, other in zip(jax.tree.leaves(padded), jax.tree.leaves(exact), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12, rtol=1e-12)


def test_whole_episodes_are_the_same_with_and_without_a_length():
    """To the last bit."""
    one, other = (weights_of(chunk=chunk).update(transitions(1), KEY) for chunk in (STEPS, None))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_short_episodes_are_compiled_with_the_whole_ones():
    """The prior mean is traced no more."""
    belief = weights_of(chunk=STEPS).update(transitions(0), KEY)
    before = len(TRACES)
    belief.update(transitions(1, 2), KEY).update(transitions(2, 1), KEY)
    assert len(TRACES) == before


def test_padding_is_not_searched_for_a_gap(belief):
    """Within a compiled program, where rows that are not valid may hold anything finite."""
    strange = [jnp.asarray(part) for part in transitions(1, shift=30 * BOUND)[:3]]
    half = jnp.asarray(np.arange(STEPS) < 3, float)
    assert belief.append(*strange).calibration_warning() is not None
    calm = [part.at[3:].set(odd[3:]) for part, odd in zip(map(jnp.asarray, transitions(1)[:3]), strange, strict=True)]
    assert belief.append(*calm).calibration_warning() is not None
    assert belief.append(*calm, half).calibration_warning() is None


SIGNALS = Signals(lambda x, a, y: x[0] - a[0], lambda x, a, y: jnp.stack([y[0], y[1], a[0]]))


@pytest.mark.parametrize("sampler", ["pathwise", "truncated"])
def test_it_is_calibrated_and_its_models_are_models_with_the_signals_of_the_task(sampler):
    belief = WeightBelief.create(PRIOR, 3, 1, GPSettings(sampler=sampler), signals=SIGNALS).update(transitions(0), KEY)
    assert isinstance(belief, Calibrated)
    samples = belief.samples(KEY, 2)
    assert isinstance(samples, Samples)
    x, a, y = (jnp.array(part, jnp.float32) for part in ([0.5, 1.0], [0.25], [2.0, 3.0]))
    for model in (belief.nominal(), samples.member(jnp.int32(1))):
        assert isinstance(model, Model)
        assert model.reward(x, a, y) == 0.25
        np.testing.assert_array_equal(model.costs(x, a, y), [2.0, 3.0, 0.25])


def test_draws_are_posterior_functions_whatever_the_samples_are():
    """With the key of the draws and in place of truncated ones, those that a pathwise belief would plan with."""
    truncated, pathwise = (
        weights_of(settings=GPSettings(sampler=sampler, features=16)).update(transitions(0), KEY)
        for sampler in ("truncated", "pathwise")
    )
    drawn, planned = truncated.draws(jax.random.fold_in(KEY, 1), 3), pathwise.samples(KEY, 3)
    x, a = jnp.array([0.5, 1.0]), jnp.array([0.25])
    for m in range(3):
        np.testing.assert_array_equal(drawn.member(jnp.int32(m))(x, a), planned.member(jnp.int32(m))(x, a))
    assert isinstance(truncated, Drawing)
    np.testing.assert_allclose(truncated.noise(), np.asarray(PRIOR.noise) * SCALE)
