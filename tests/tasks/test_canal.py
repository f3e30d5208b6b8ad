"""The boat against an independent simulation, and what the prior lets samples do: the canal is closed to the engine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import make_task
from sbsrl.specification import Specification
from sbsrl.tasks.canal import BASIN, HALF_WIDTH, QUAY, RADIUS, reset, still_water, transition


@pytest.fixture
def task():
    return make_task("canal")


def moved(x, u, engine, walk, current):
    """With complex numbers: a turn is a factor."""
    place, steered = complex(*x), complex(*u)
    drift = current * complex(np.sin(0.1 * x[0] + 0.3 * x[1]), np.cos(0.2 * x[0]))
    if engine:
        return place + 2.0 * steered / abs(steered) * np.exp(1j * walk) + drift
    return place + 0.6 * steered / max(1.0, abs(steered)) + drift


@pytest.mark.parametrize(("model", "walk", "current"), [(transition, 0.6, 0.01), (still_water, 0.0, 0.0)])
@pytest.mark.parametrize("engine", [-0.3, 0.3])
def test_a_step_is_rowed_or_goes_full_speed_along_the_turned_heading(model, walk, current, engine):
    """At random places and headings, to 1e-3 metres: headings of little force are a little shorter than 1."""
    rng = np.random.default_rng(0)
    for x, u in zip(rng.uniform(-30, 30, (40, 2)), rng.uniform(-1, 1, (40, 2)), strict=True):
        y = model(jnp.asarray(x), jnp.asarray([*u, engine]))
        expected = moved(x, u, engine > 0, walk, current)
        np.testing.assert_allclose(y, [expected.real, expected.imag], atol=1e-3)


def test_the_engine_idles_without_a_heading_and_is_off_at_zero():
    nowhere = still_water(jnp.zeros(2), jnp.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(nowhere, 0, atol=1e-9)
    np.testing.assert_allclose(still_water(jnp.zeros(2), jnp.array([1.0, 0.0, 0.0])), [0.6, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("place", "distance"),
    [
        ((10.0, 1.2), 1.2),  # in the canal, beside its middle
        ((QUAY + 3.0, 4.0), 5.0),  # beyond the quay
        ((BASIN, 19.0), 0.0),  # in the basin
        ((BASIN, 23.0), 3.0),  # north of it
        ((BASIN - RADIUS - 2.0, 0.0), 2.0),  # behind it
        ((-1.0, 7.0), 0.2485),  # beside the mouth: to the basin, which is nearer than the canal
    ],
)
def test_the_cost_is_the_distance_from_basin_and_canal(task, place, distance):
    """Where the step leads to, not where it began."""
    ashore = jnp.array([50.0, 50.0])
    assert task.signals.costs(ashore, jnp.zeros(3), jnp.array(place))[0] == pytest.approx(distance, abs=2e-3)


def test_the_reward_is_to_be_near_the_quay_and_fuel_is_dear(task):
    x, y = jnp.array([QUAY - 3.0, 4.0]), jnp.array([9.0, 9.0])
    rowed, driven = (task.signals.reward(x, jnp.array([1.0, 0.0, e]), y) for e in (-1.0, 1.0))
    np.testing.assert_allclose([rowed, driven], [-0.5, -0.55], atol=1e-6)


def test_it_starts_in_the_mouth_and_rests_safely(task):
    (cost,) = task.costs
    assert (task.horizon, cost.budget, cost.aggregation) == (40, HALF_WIDTH, "statewise")
    np.testing.assert_array_equal(reset(jax.random.key(3)), [0, 0])
    np.testing.assert_array_equal(task.open().reset(seed=3)[0], [0, 0])
    x, quiet = jnp.zeros(2), jnp.array(task.safe_action)
    for _ in range(task.horizon):
        x = task.equations.dynamics(x, quiet)
        assert task.signals.costs(x, quiet, x)[0] < HALF_WIDTH


@pytest.fixture(scope="module")
def samples():
    """What 200 functions of the prior make of one step: from x, rowed or driven."""
    belief = Specification.make("canal", "sbsrl", 0, "cpu", {}).start()[1].belief
    drawn = belief.samples(jax.random.key(0), 200)

    def after(x, a):
        one = lambda m: drawn.member(m)(jnp.asarray(x, jnp.float32), jnp.asarray(a, jnp.float32))  # noqa: E731
        return np.asarray(jax.lax.map(one, jnp.arange(200, dtype=jnp.int32)))

    return after


def farthest(task, places):
    return float(max(task.signals.costs(y, jnp.zeros(3), y)[0] for y in jnp.asarray(places)))


@pytest.mark.parametrize("angle", np.linspace(0, 2 * np.pi, 8, endpoint=False))
def test_no_heading_under_engine_is_safe_in_the_canal_and_all_are_in_the_basin(task, samples, angle):
    driven = [np.cos(angle), np.sin(angle), 1.0]
    assert farthest(task, samples((10.0, 0.0), driven)) > HALF_WIDTH
    assert farthest(task, samples((BASIN, 0.0), driven)) == pytest.approx(0, abs=2e-3)


def test_rowing_is_as_good_as_known(samples):
    """The current moves samples by a centimetre or so, and teaches them nothing about the engine."""
    assert np.abs(samples((10.0, 0.0), (1.0, 0.0, -1.0)) - [10.6, 0.0]).max() < 0.06


def test_the_true_pull_is_one_that_the_prior_expects(task):
    """As a matrix that headings are multiplied with, its entries are below 1.2 standard deviations."""
    x = jnp.zeros(2)
    mismatch = [
        transition(x, jnp.array([*h, 1.0]), current=0.0) - still_water(x, jnp.array([*h, 1.0])) for h in np.eye(2)
    ]
    assert np.abs(mismatch).max() < 1.2 * task.prior.gp.scale[0]


def test_a_known_pull_can_be_steered_against(task):
    """Along the canal: thirteen steps, and the current, leave it safe."""
    x, against = jnp.zeros(2), jnp.array([np.cos(-0.6), np.sin(-0.6), 1.0])
    for _ in range(12):
        x = task.equations.dynamics(x, against)
        assert task.signals.costs(x, against, x)[0] < HALF_WIDTH
    assert abs(float(x[0]) - 24) < 0.2
