"""Truncated samples: one clip is the paper's recursion, and broken assumptions are noticed."""

import dataclasses
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.functions import Stack
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.posterior import Moments, Posterior
from sbsrl.belief.settings import GPSettings
from sbsrl.belief.truncation import Envelope, Truncated, truncate
from sbsrl.kernels import Linear, SquaredExponential
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

NOISE, BOUND, DELTA = 0.05, 1.5, 0.1
SCALE = np.array([0.5, 2.0])
STEPS, EPISODES, MANY = 8, 4, 20
CENTRES = np.random.default_rng(9).normal(size=(4, 3))


def kernel(u, v):
    return np.exp(-0.5 * ((u[:, None] - v[None]) ** 2).sum(-1))


WEIGHTS = np.random.default_rng(8).normal(size=(4, 2))
WEIGHTS *= BOUND / np.sqrt(np.sum(WEIGHTS * (kernel(CENTRES, CENTRES) @ WEIGHTS), axis=0))
"""Of a truth whose outputs have RKHS norm B exactly."""

PRIOR = GPPrior(
    mean=lambda x, a: x,
    scale=tuple(SCALE),
    kernel=SquaredExponential((1.0, 1.0, 1.0)),
    noise=NOISE,
    bound=BOUND,
    bound_source="known",
)
OPTIONS = GPSettings(sampler="truncated", features=32, delta=DELTA)
KEY = jax.random.key(0)


def episode(number, shift=0.0):
    """Points of the truth; the second output `shift` away from it, in units of its scale."""
    rng = np.random.default_rng(number)
    z = rng.normal(size=(STEPS, 3))
    g = kernel(z, CENTRES) @ WEIGHTS + NOISE * rng.normal(size=(STEPS, 2)) + np.array([0, shift])
    rest = np.zeros(STEPS), np.zeros((STEPS, 1)), np.zeros(STEPS, bool)
    return Transitions(z[:, :2], z[:, 2:], z[:, :2] + SCALE * g, *rest)


@pytest.fixture(scope="module")
def history():
    """The beliefs before and after each of four episodes."""
    beliefs = [GPBelief.create(PRIOR, 3, STEPS * EPISODES, EPISODES, OPTIONS)]
    for number in range(EPISODES):
        beliefs.append(beliefs[-1].update(episode(number), KEY))
    return beliefs


@pytest.fixture(scope="module")
def samples(history):
    """Those of the same run, before and after each episode."""
    return [belief.samples(KEY, MANY) for belief in history]


QUERIES = np.random.default_rng(1).normal(size=(3, 100)).astype(np.float32)


@eqx.filter_jit
def evaluate(samples, z):
    """In units of the scale: [sample, output, column]."""
    return jax.vmap(lambda m: samples.parts[0].member(m)(z))(jnp.arange(len(samples)))


@pytest.fixture(scope="module")
def values(samples):
    return [np.asarray(evaluate(each, jnp.asarray(QUERIES))) for each in samples]


@pytest.fixture(scope="module")
def untruncated(samples):
    """f_{-1}: the same functions where every confidence set is the whole line."""
    wide = eqx.tree_at(lambda s: s.parts[0].shared.envelope.beta, samples[0], jnp.full(EPISODES + 2, 1e9))
    return np.asarray(evaluate(wide, jnp.asarray(QUERIES)))


@pytest.fixture(scope="module")
def intervals():
    """mu_n -+ beta_n sigma_n for n = 0 .. 4 by dense solves: [n, low or high, output, column]."""
    found = []
    q = QUERIES.T.astype(float)
    for n in range(EPISODES + 1):
        data = [episode(number) for number in range(n)]
        z = np.concatenate([np.zeros((0, 3)), *(np.concatenate([e.states, e.actions], axis=1) for e in data)])
        y = np.concatenate([np.zeros((0, 2)), *((e.next_states - e.states) / SCALE for e in data)])
        gram, k = kernel(z, z) + NOISE**2 * np.eye(len(z)), kernel(q, z)
        mean = (k @ np.linalg.solve(gram, y)).T
        deviation = np.sqrt(1 - np.sum(k.T * np.linalg.solve(gram, k.T), axis=0))
        gain = np.linalg.slogdet(gram / NOISE**2)[1] / 2
        beta = BOUND + np.sqrt(2 * (gain + 1 + np.log(2 / DELTA))) if n else BOUND
        found.append((mean - beta * deviation, mean + beta * deviation))
    return np.array(found)


def test_truncated_samples_are_those_of_the_recursion(values, untruncated, intervals):
    """Episode by episode, clipping the last episode's function, as the paper has it. To 1e-5, single precision."""
    f = untruncated
    for n in range(EPISODES + 1):
        f = np.clip(f, *intervals[n])
        np.testing.assert_allclose(values[n], f, atol=1e-5)


def test_truncated_samples_lie_in_all_confidence_sets_so_far(values, intervals):
    """To 1e-5, single precision."""
    for n in range(EPISODES + 1):
        for low, high in intervals[: n + 1]:
            assert np.all(values[n] >= low - 1e-5)
            assert np.all(values[n] <= high + 1e-5)


def test_the_same_key_gives_the_same_functions_in_every_episode_but_for_the_cut(values, untruncated, intervals):
    """Where a sample is strictly inside the envelope it is the prior draw, exactly; both happens often."""
    for n in range(EPISODES + 1):
        low, high = intervals[: n + 1, 0].max(0), intervals[: n + 1, 1].min(0)
        inside = (values[n] > low + 1e-5) & (values[n] < high - 1e-5)
        assert np.array_equal(values[n][inside], untruncated[inside])
        assert 0.1 < inside.mean() < 0.95


def test_envelopes_are_nested(samples):
    """What is left after an episode lies in what was left before, to 1e-9."""
    ask = eqx.filter_jit(lambda envelope, z: envelope(z))
    left = [ask(each.parts[0].shared.envelope, jnp.asarray(QUERIES)) for each in samples]
    for before, after in pairwise(left):
        assert np.all(after.low >= before.low - 1e-9)
        assert np.all(after.high <= before.high + 1e-9)


class Given(Moments):
    """Any means and variances after each episode."""

    mean: jax.Array
    variance: jax.Array

    def prefixes(self, z, before):
        return self.mean, self.variance


NOTHING = Moments.of(Posterior.empty(PRIOR.kernel, jnp.asarray(NOISE), 4, 3, 1))


def given(low, high, past):
    """The envelope of these intervals, of which `past` have come."""
    parts = (getattr(NOTHING, field.name) for field in dataclasses.fields(NOTHING))
    moments = Given(*parts, (low + high)[:, None] / 2, ((high - low) / 2) ** 2)
    return Envelope(moments, jnp.zeros((len(low), 4)), jnp.ones(len(low)), past - 1)


def test_one_clip_is_the_recursion_for_any_intervals_with_a_common_point():
    """5000 random families of one to six intervals; those that have not come do not count. To 1e-12."""
    rng = np.random.default_rng(0)
    common, value = 3 * rng.normal(size=5000), 3 * rng.normal(size=5000)
    low = common[:, None] - rng.exponential(size=(5000, 6)) * rng.integers(0, 2, (5000, 6))
    high = common[:, None] + rng.exponential(size=(5000, 6)) * rng.integers(0, 2, (5000, 6))
    past = rng.integers(1, 7, 5000).astype(np.int32)

    def clip(value, low, high, past):
        return Truncated(lambda z: value[None], given(low, high, past))(jnp.zeros(3))[0]

    got = jax.jit(jax.vmap(clip))(*(jnp.asarray(part) for part in (value, low, high, past)))
    for i in range(6):
        value = np.where(i < past, np.clip(value, low[:, i], high[:, i]), value)
    np.testing.assert_allclose(got, value, atol=1e-12)


def test_the_first_episode_without_a_common_point_is_found():
    """Intervals 0 +- 1, 1 +- 1, 3 +- 0.5, 0 +- 9: none is left from the third on."""
    centre, half = jnp.array([0.0, 1.0, 3.0, 0.0]), jnp.array([1.0, 1.0, 0.5, 9.0])
    empty = eqx.filter_jit(lambda past: given(centre - half, centre + half, past).empty(jnp.zeros(3)))
    np.testing.assert_array_equal(empty(jnp.int32(4))[:, 0], [False, False, True, True])
    assert not np.any(empty(jnp.int32(2)))


def test_a_well_specified_belief_has_no_warning(history):
    assert [belief.calibration_warning() for belief in history] == [None] * (EPISODES + 1)


def test_data_beyond_the_bound_are_a_warning_with_episode_state_and_output(history):
    """From the third episode on the second output is 30 B away; the state named is one of those data."""
    strange = episode(2, shift=30 * BOUND)
    belief = history[2].update(strange, KEY)
    assert "the calibration assumption is violated at episode 3: at (x, a) = (" in belief.calibration_warning()
    assert "the confidence sets of output 1 have no common point" in belief.calibration_warning()
    named = belief.calibration_warning().split("(x, a) = (")[1].split(")")[0]
    known = np.concatenate([np.concatenate([e.states, e.actions], axis=1) for e in (episode(0), episode(1), strange)])
    assert named in {", ".join(f"{v:.4g}" for v in z) for z in known}
    assert belief.update(episode(3), KEY).calibration_warning() == belief.calibration_warning()


@pytest.mark.parametrize(("noise", "delicate"), [(1e-4, False), (1e-4, True), (1e-6, True)])
def test_rounding_is_no_warning_however_small_the_noise(noise, delicate):
    """32 points on a smooth curve of a well-specified truth, where sigma_n^2 is below what rounding leaves of it."""
    z = np.linspace(-1, 1, 32)[:, None] * np.array([1.0, 0.5, -0.5])
    eps = np.random.default_rng(0).normal(size=(32, 2))

    @eqx.filter_jit
    def empty(noise, y):
        posterior = Posterior.empty(PRIOR.kernel, noise, 64, 3, 2).append(jnp.asarray(z), y)
        before = jnp.asarray(np.arange(64)[None] < np.array([0, 8, 16, 24, 32])[:, None], float)
        beta = jnp.array([BOUND, 8.0, 8.0, 8.0, 8.0])
        return Envelope(Moments.of(posterior, delicate), before, beta, jnp.int32(4)).empty(jnp.asarray(z.T))

    assert not np.any(empty(jnp.asarray(noise), jnp.asarray(kernel(z, CENTRES) @ WEIGHTS + noise * eps)))


def test_gradients_are_finite_where_nothing_is_unknown():
    """A linear kernel knows that the function is 0 at the origin, where the width of every interval has no slope."""
    posterior = Posterior.empty(Linear((1.0, 1.0, 1.0)), jnp.asarray(NOISE), 64, 3, 1)
    envelope = Envelope(Moments.of(posterior), jnp.zeros((3, 64)), jnp.ones(3), jnp.int32(1))
    stack = truncate(Stack(_Plane(jnp.ones((2, 1, 3))), _Plane(None)), envelope)
    slope = eqx.filter_jit(lambda f, z: jax.jacrev(f)(z))(stack.member(jnp.int32(0)), jnp.zeros(3))
    assert np.all(np.isfinite(slope))


class _Plane(eqx.Module):
    """z -> slope z."""

    slope: jax.Array | None

    def __call__(self, z):
        return self.slope @ z
