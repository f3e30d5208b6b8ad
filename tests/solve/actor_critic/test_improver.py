"""The actor-critic finds known optima under constraints, keeps every sample's trajectory, and remembers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Beside, domain, known, make_problem, two_states, units

from sbsrl.networks import init_network
from sbsrl.solve.actor_critic.choices import ActorCriticChoices
from sbsrl.solve.actor_critic.improver import VISITED, ActorCritic
from sbsrl.solve.actor_critic.rollouts import roll
from sbsrl.solve.actor_critic.updates import _lengths
from sbsrl.solve.network.forecast import forecast
from sbsrl.solve.network.improver import Improver, Listening
from sbsrl.solve.network.solver import NetworkSolver
from sbsrl.transitions import Episode, Transitions

HORIZON = 8
QUICK = {
    "trust": 0.0,
    "policy_rate": 1e-2,
    "policy_width": 16,
    "critic_width": 32,
    "critic_rate": 3e-3,
    "rollouts": 8,
    "rollout_steps": HORIZON,
    "rollout_parts": 1,
    "critic_updates": 8,
    "critic_batch": 64,
    "actor_batch": 64,
    "constraint_starts": 4,
    "first_fit": 20,
    "margin": 0.0,
    "anchor": 0.0,
    "averaging": 0.3,
    "discount": 0.9,
    "multiplier_rate": 0.05,
    "checks": 1,
}


def at_rest(key):
    return jnp.zeros(1)


def solver(budget=1.0, data=None, **choices):
    where = domain(at_rest, HORIZON, budget, HORIZON, data)
    chosen = ActorCriticChoices(**{**QUICK, **choices})
    return NetworkSolver(where, chosen, ActorCritic(where, chosen))


def busy(chosen, problem, rounds):
    """What whole episodes of the policy earn on the nominal model, the mean over the last of so many rounds."""
    state, found = chosen.init(jax.random.key(0)), []
    for i in range(rounds):
        state, _ = chosen._block(problem, state, jax.random.fold_in(jax.random.key(1), i))
        starts = jnp.zeros((2, 1), jnp.float32)
        seen = forecast(state.network, chosen.domain.units, problem, starts, HORIZON, 1, jax.random.key(2))
        found.append(float(seen.reward))
    return np.mean(found[-6:]), state


def test_it_keeps_the_protocols():
    assert isinstance(solver().improver, Improver)
    assert isinstance(solver().improver, Listening)


def test_what_is_steered_is_all_that_is_trained():
    """What a linear policy makes of the one number of the state, and not its offset."""
    chosen = solver(steered=1, policy_layers=0, updates=3)
    state = chosen.init(jax.random.key(0))
    after, _ = chosen._block(make_problem(two_states(), None, 1.0, HORIZON), state, jax.random.key(1))
    (before,), (trained,) = state.network, after.network
    assert float(trained.weights[0, 0]) != float(before.weights[0, 0])
    assert float(trained.bias[0]) == float(before.bias[0])


def test_nothing_constrained_it_does_what_earns_most():
    found, _ = busy(solver(), make_problem(two_states(), None, 1.0, HORIZON), 8)
    assert found > 0.9 * HORIZON


@pytest.mark.parametrize(("how", "expected"), [("each", 1.0), ("mean", 1.6)])
def test_the_worst_sample_decides_or_the_mean_does(how, expected):
    """Prices 0.5 and 2, budget 2: busy time is at most 1 if each must keep it, 1.6 if their mean must. Within 15 %."""
    samples = Beside(jnp.array([0.5, 2.0], jnp.float32), two_states)
    problem = make_problem(two_states(), samples, 2.0, HORIZON, constraint=how)
    found, _ = busy(solver(budget=2.0), problem, 20)
    np.testing.assert_allclose(found, expected, rtol=0.15)


def test_information_is_gathered_if_it_is_demanded():
    """A push a earns a and teaches (1 - a) / 2: with 6 of 8 demanded, a = -1/2 is best and earns -4. To 25 %."""
    model = known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: 0 * x)
    problem = make_problem(model, None, 1.0, HORIZON, threshold=6.0, uncertainty=lambda x, a: (1 - a[0]) / 2)
    chosen = solver()
    found, state = busy(chosen, problem, 20)
    assert float(state.curiosity) > 0.1
    np.testing.assert_allclose(found, -4.0, rtol=0.25)


def test_every_model_keeps_its_own_trajectory():
    """x' = x + price on each: after three steps it is three prices further, and the signals are of each alone."""
    drift = Beside(
        jnp.array([0.5, 2.0], jnp.float32),
        lambda n: known(lambda x, a: x + n, lambda x, a, y: y[0], lambda x, a, y: n * jnp.ones_like(x)),
    )
    problem = make_problem(drift.make(drift.numbers[0]), drift, 1.0, HORIZON)
    network = init_network(jax.random.key(0), (1, 4, 1))
    rows, scale = drift.beside(1, 1), jnp.array([1.0, 2.0, 1.0], jnp.float32)
    rolled = roll(
        network, jnp.zeros(1, jnp.float32), units(), rows, problem, jnp.zeros((3, 1), jnp.float32), (), scale, 3,
        jax.random.key(1),
    )  # fmt: skip
    np.testing.assert_allclose(rolled.states[:, :, 0].T, np.outer([0.5, 2.0, 0.5], np.arange(4)), rtol=1e-6)
    np.testing.assert_allclose(rolled.signals[..., 0], rolled.states[1:, :, 0], rtol=1e-6)
    np.testing.assert_allclose(rolled.signals[0, :, 1], [0.25, 1.0, 0.25], rtol=1e-6)
    assert rolled.shares.shape == (4, 3, 1)


def test_rollouts_from_initial_states_last_an_episode_and_others_some_parts():
    sizes = solver(rollouts=4, fresh=0.5, rollout_steps=3, rollout_parts=2).improver._sizes
    assert _lengths(sizes).tolist() == [3, 3, 2, 2]


def episode(first, steps=5):
    states = first + np.arange(steps + 1.0)[:, None]
    return Episode(states, np.zeros((steps, 1)), np.zeros(steps), np.zeros((steps, 1)))


def test_states_of_episodes_are_remembered_and_the_oldest_forgotten():
    improver = solver().improver
    memory = improver.observed(improver.init(jax.random.key(0)), episode(10.0))
    np.testing.assert_array_equal(memory.visited[:6, 0], [10, 11, 12, 13, 14, 0])
    full = improver.observed(memory, episode(100.0, VISITED - 2))
    np.testing.assert_array_equal(full.visited[:4, 0], [100 + VISITED - 5, 100 + VISITED - 4, 100 + VISITED - 3, 13])


def test_rollouts_begin_at_recorded_states_half_of_them_new():
    """Data at -1, episodes at 10 to 14: draws of each; without either, initial states."""
    n = 40
    data = Transitions(
        -np.ones((n, 1)), np.zeros((n, 1)), -np.ones((n, 1)), np.zeros(n), np.zeros((n, 1)), np.zeros(n, bool)
    )
    improver = solver(data=data).improver
    memory = improver.init(jax.random.key(0))
    old = np.asarray(improver._sources(memory, jax.random.key(1)).recorded)
    assert set(old[:, 0]) == {-1.0}
    both = np.asarray(improver._sources(improver.observed(memory, episode(10.0)), jax.random.key(1)).recorded)
    assert np.mean(both[:, 0] < 0) == 0.5
    assert set(both[both >= 0]) <= {10.0, 11.0, 12.0, 13.0, 14.0}
    alone = solver().improver
    assert set(np.asarray(alone._sources(alone.init(jax.random.key(0)), jax.random.key(1)).recorded)[:, 0]) == {0.0}


def test_constraints_are_evaluated_at_initial_states_or_at_recorded_ones():
    data = Transitions(
        -np.ones((4, 1)), np.zeros((4, 1)), -np.ones((4, 1)), np.zeros(4), np.zeros((4, 1)), np.zeros(4, bool)
    )
    for replayed, place in ((False, 0.0), (True, -1.0)):
        improver = solver(data=data, replayed=replayed).improver
        found = improver._sources(improver.init(jax.random.key(0)), jax.random.key(1)).constrained
        assert set(np.asarray(found)[:, 0]) == {place}
