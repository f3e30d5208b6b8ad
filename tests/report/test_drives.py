"""A policy on every sample and in truth: who is asked what, in which order, and what is counted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_up_drives import make_drives

from sbsrl.belief.protocol import Forgetful, Steps
from sbsrl.report.drives import believed_charge, drive_samples, drive_truth
from sbsrl.specification import resolve
from sbsrl.systems.episode import Guard, run_episode
from sbsrl.tasks import race_car
from sbsrl.tasks.race_car import NEWEST, OBSTACLE_RADIUS, OBSTACLES, SIZE, careful, clearance

KEY = jax.random.key(3)


class Shifts(Forgetful, eqx.Module):
    """Rows that move p_x by their own stride times the action, earn the action and cost the stride."""

    strides: jax.Array

    def noises(self, key, steps, training):
        return jnp.zeros((steps, len(self.strides), 0), jnp.float32)

    def steps(self, x, a, noise):
        moved = x.at[:, NEWEST.start].add(self.strides * a[:, 0])
        return Steps(moved, a[:, 0], self.strides[:, None]), jnp.zeros(len(x))


class Strides:
    """One sample for each stride."""

    def __init__(self, *strides):
        self.strides = jnp.array(strides, jnp.float32)

    def __len__(self):
        return len(self.strides)

    def member(self, m):
        raise NotImplementedError

    def beside(self, each, nominal):
        return Shifts(jnp.repeat(self.strides, each))


class Steady:
    """Always the same action."""

    def init(self):
        return ()

    def act(self, x, state, key):
        return jnp.array([1.0, 0.0]), state, {}


class Counting:
    """Acts by how often it was asked, and adds up what it was told that it cost."""

    def __init__(self):
        self.told = []

    def init(self):
        return 0, 0.0

    def act(self, x, state, key):
        asked, cost = state
        return jnp.array([asked + 1.0, 0.0]), (asked + 1, cost), {}

    def observe(self, state, reward, costs):
        asked, cost = state
        assert reward == asked
        self.told.append((asked, cost + float(costs[0])))
        return asked, cost + float(costs[0])


def starts(*places):
    windows = np.zeros((len(places), SIZE))
    windows[:, NEWEST.start] = places
    return windows


def test_every_sample_is_driven_from_every_start():
    found = drive_samples(Strides(1.0, 10.0, 100.0), Steady(), starts(0.0, 0.5), 4, KEY)
    assert found.states.shape == (3, 2, 5, SIZE)
    np.testing.assert_allclose(found.positions[:, :, 0, 0], [[0.0, 0.5]] * 3)
    np.testing.assert_allclose(found.positions[:, :, -1, 0], [[4.0, 4.5], [40.0, 40.5], [400.0, 400.5]])
    np.testing.assert_allclose(found.totals, [[4.0] * 2, [40.0] * 2, [400.0] * 2])
    np.testing.assert_allclose(found.returns, 4.0)


def test_a_policy_remembers_its_own_episode_and_is_told_what_it_costs():
    """Asked for the n-th time it pushes n: 1 + 2 + 3 strides; the costs it was told of are those of its sample."""
    policy = Counting()
    found = drive_samples(Strides(1.0, 10.0), policy, starts(0.0), 3, KEY)
    np.testing.assert_allclose(found.positions[:, 0, -1, 0], [6.0, 60.0])
    assert policy.told == [(1, 1.0), (1, 10.0), (2, 2.0), (2, 20.0), (3, 3.0), (3, 30.0)]


def test_what_is_spent_begins_with_nothing_and_ends_with_the_total():
    found = make_drives([[3.0, 1.0], [0.0, 2.0]], steps=4)
    np.testing.assert_allclose(found.spent[..., 0], 0.0)
    np.testing.assert_allclose(found.spent[..., 2], found.totals / 2)
    np.testing.assert_allclose(found.spent[..., -1], [[3.0, 1.0], [0.0, 2.0]])


def test_the_dearest_sample_has_the_largest_mean_not_the_largest_episode():
    assert make_drives([[9.0, 0.0], [5.0, 5.0], [1.0, 8.0]]).dearest == 1


@pytest.fixture(scope="module")
def task():
    return race_car.make(race_car.PRIORS["data"], (15.0,), race_car.RaceCarSettings(contact="ghost"))


def test_the_truth_is_what_the_system_does(task):
    """An episode of the environment, from its own initial state."""
    driver = eqx.tree_at(lambda d: d.corner, careful(KEY), jnp.array([0.15, -0.3]))  # through an obstacle
    driver = eqx.tree_at(lambda d: d.unsteadiness, driver, (0.0, 0.0))
    played = run_episode(task.open(), driver, 5, KEY, task.horizon, guard=Guard.of(task)).episode
    assert task.equations is not None
    found = drive_truth(task.equations, driver, played.states[:1], task.horizon, KEY)
    assert found.totals[0, 0] > 1
    np.testing.assert_allclose(found.states[0, 0], played.states, atol=1e-9)
    np.testing.assert_allclose(found.rewards[0, 0], played.rewards, atol=1e-9)
    np.testing.assert_allclose(found.costs[0, 0], played.costs[:, 0], atol=1e-9)
    car = found.states[0, 0, :, NEWEST]
    np.testing.assert_allclose(np.sin(found.headings[0, 0]), car[:, 2], atol=1e-5)
    np.testing.assert_allclose(np.cos(found.headings[0, 0]), car[:, 3], atol=1e-5)


def test_who_knows_the_obstacles_charges_all_energy_in_them_and_none_elsewhere():
    """Samples of a belief with nothing to learn of the cost. Edges are gradual over two centimetres."""
    changes = {"cost": "known", "data": "careful:2:0", "networks": 2}
    task, settings = resolve("race-car", preset="smoke", changes=changes)
    samples = settings.belief.create(task, 1, KEY).samples(KEY, 3)
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.uniform((-0.5, -1.3), (1.7, 0.9), (200, 2)), OBSTACLES])
    free = np.array([float(clearance(jnp.asarray(window))) for window in _at(places)])
    found = believed_charge(samples, places)
    assert found.shape == (3, len(places))
    assert np.all(found[:, free > 0.15] < 0.01)
    assert np.all(found[:, free < -0.15] > 0.99)
    np.testing.assert_allclose(free[-len(OBSTACLES) :], -OBSTACLE_RADIUS, atol=1e-5)


def _at(places):
    windows = np.zeros((len(places), SIZE))
    windows[:, NEWEST.start : NEWEST.start + 2] = places
    return windows
