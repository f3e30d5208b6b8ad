"""Segments with critics: targets by hand, a value of its own for every sample, and a long problem that is solved."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Parametric, known, make_problem, solver, units
from nets import make_ensemble

from sbsrl.belief.ensemble.model import Samples
from sbsrl.errors import UserError
from sbsrl.networks import Layer
from sbsrl.solve.gradient.segment_training import recalled_rows
from sbsrl.solve.gradient.settings import GradientSettings
from sbsrl.solve.network.episodes import code_of, rows_of
from sbsrl.solve.network.segments import (
    CODE,
    Segment,
    anew,
    coded,
    follow,
    init_critic,
    learn_values,
    segment_returns,
    targets,
    values,
    visited,
)
from sbsrl.tasks import make_task
from sbsrl.transitions import Transitions


def test_targets_are_those_of_a_hand_computation():
    """Three steps of two rows with values of their own; gamma 0.9, lambda 0.5."""
    signals = np.array([[[1.0], [0.0]], [[2.0], [0.0]], [[4.0], [5.0]]])
    after = np.array([[[10.0], [1.0]], [[20.0], [2.0]], [[30.0], [3.0]]])
    wanted = np.zeros_like(signals)
    for row in range(2):
        later = after[2, row, 0]
        for t in (2, 1, 0):
            later = 0.1 * signals[t, row, 0] + 0.9 * (0.5 * after[t, row, 0] + 0.5 * later)
            wanted[t, row, 0] = later
    found = targets(jnp.asarray(signals, jnp.float32), jnp.asarray(after, jnp.float32), 0.9, 0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_segment_is_worth_its_signals_and_the_value_of_where_it_ends():
    """V is 7 everywhere: (1 - g) (y_0 + g y_1) + g^2 7."""
    constant = (Layer(jnp.zeros((1 + CODE, 1), jnp.float32), jnp.full(1, 7.0, jnp.float32)),)
    segment = Segment(
        jnp.zeros((2, 1, 1), jnp.float32), jnp.array([[[2.0]], [[3.0]]], jnp.float32), jnp.ones((1, 1), jnp.float32), ()
    )
    found = segment_returns(segment, constant, units(), jnp.zeros((1, CODE), jnp.float32), 0.8)
    np.testing.assert_allclose(found, [[0.2 * (2 + 0.8 * 3) + 0.64 * 7]], rtol=1e-6)


def drift(s):
    """x grows by s in every step and is what a step costs."""
    return known(lambda x, a: x + s, lambda x, a, y: 0 * y[0], lambda x, a, y: x)


SHIFTS = jnp.array([0.0, 0.5], jnp.float32)
DRIFTING = make_problem(drift(jnp.float32(1.0)), Parametric(SHIFTS, drift), 1.0, 100)
STILL = (Layer(jnp.zeros((1, 1), jnp.float32), jnp.zeros(1, jnp.float32)),)


def test_rows_follow_their_own_models_and_can_be_told_apart():
    rows = rows_of(DRIFTING, 2, 1)
    segment = follow(
        STILL,
        units(),
        rows,
        jnp.zeros((5, 1), jnp.float32),
        rows.begun(5),
        DRIFTING,
        jnp.ones(3, jnp.float32),
        3,
        0.0,
        False,
        jax.random.key(0),
    )
    np.testing.assert_allclose(segment.last[:, 0], [0, 0, 1.5, 1.5, 3])
    np.testing.assert_allclose(segment.signals[:, 2, 1], [0, 0.5, 1.0])
    code = np.asarray(coded(code_of(rows, 5)))
    assert code.shape == (5, CODE)
    np.testing.assert_array_equal(code[0], code[1])
    assert len(np.unique(code, axis=0)) == 3


def test_the_code_of_a_combination_is_its_weights(getkey):
    samples = Samples.draw(make_ensemble(), 3, jnp.float32(2.0), False, getkey())
    code = code_of(samples.beside(2, 1), 7)
    np.testing.assert_array_equal(code[:6:2], samples.weights)
    np.testing.assert_array_equal(code[6], 0)


def test_many_numbers_are_mixed_into_a_code(getkey):
    code = jax.random.normal(getkey(), (6, 40), jnp.float32)
    assert coded(code).shape == (6, CODE)
    assert len(np.unique(np.asarray(coded(code)), axis=0)) == 6


def test_a_critic_learns_a_value_for_every_sample():
    """Costs of 1 and 3 in every step, whatever the state: after 600 updates 5 %."""
    critic = init_critic(jax.random.key(0), 1, 3, 16)
    code = coded(jnp.eye(2, dtype=jnp.float32))
    signals = jnp.tile(jnp.array([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]], jnp.float32)[None], (5, 1, 1))
    key = jax.random.key(1)
    learn = jax.jit(lambda critic, segment, key: learn_values(critic, units(), segment, code, 0.8, key))
    for i in range(150):
        states = jax.random.normal(jax.random.fold_in(key, i), (6, 2, 1), jnp.float32)
        critic = learn(critic, Segment(states[:5], signals, states[5], ()), jax.random.fold_in(key, i))
    found = values(critic.network, units(), jnp.array([[0.3], [0.3]], jnp.float32), code)
    np.testing.assert_allclose(found[:, 1], [1.0, 3.0], rtol=0.05)
    np.testing.assert_allclose(found[:, 0], 0.0, atol=0.1)


def test_segments_begin_where_the_policy_comes_by():
    """Rows of the nominal model, which moves by 1 per step, begin at the beginnings of segments of 5 steps."""
    rows = rows_of(make_problem(drift(jnp.float32(1.0)), None, 1.0, 20), 0, 4)
    problem = make_problem(drift(jnp.float32(1.0)), None, 1.0, 20)
    found, memory = visited(STILL, units(), problem, rows, jnp.zeros((4, 1), jnp.float32), 20, 5, jax.random.key(0))
    np.testing.assert_allclose(found[:, 0], [0, 5, 10, 15])
    assert memory == ()


def test_rows_that_begin_anew_forget_and_others_do_not():
    memory = {"charged": jnp.ones((3, 2), jnp.float32), "t": jnp.arange(3)}
    first = {"charged": jnp.zeros((3, 2), jnp.float32), "t": jnp.zeros(3, int)}
    found = anew(jnp.array([True, False, True]), first, memory)
    np.testing.assert_array_equal(found["charged"], [[0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(found["t"], [0, 1, 0])
    assert anew(jnp.array([True]), (), ()) == ()


def at_rest(key):
    return jnp.zeros(1)


def test_a_long_problem_is_solved_with_critics():
    """Busy time earns 1 and costs 1 or 2 per step over 60 steps: under a budget of 30 at most 15. Within 10 %."""
    busy = lambda price: known(lambda x, a: (1 + a) / 2, lambda x, a, y: y[0], lambda x, a, y: price * y)  # noqa: E731
    prices = jnp.array([1.0, 2.0], jnp.float32)
    problem = make_problem(busy(jnp.float32(1.0)), Parametric(prices, busy), 30.0, 60)
    chosen = solver(
        at_rest,
        60,
        budget=30.0,
        return_scale=60.0,
        segment=6,
        each=4,
        nominal=8,
        updates=10,
        discount=0.9,
        multiplier_rate=0.1,
        policy_rate=3e-3,
        checks=1,
    )
    state, rewards = chosen.init(jax.random.key(0)), []
    for i in range(80):
        state, seen = chosen._block(problem, state, jax.random.fold_in(jax.random.key(1), i))
        rewards.append(float(seen.reward))
    np.testing.assert_allclose(np.mean(rewards[-20:]), 15.0, rtol=0.1)
    assert float(state.multipliers[0]) > 0


def test_a_long_problem_is_solved_by_pieces_of_it():
    """The same over pieces of 12 steps, which are taken five times, from states of the data. Within 10 %."""
    busy = lambda price: known(lambda x, a: (1 + a) / 2, lambda x, a, y: y[0], lambda x, a, y: price * y)  # noqa: E731
    prices = jnp.array([1.0, 2.0], jnp.float32)
    problem = make_problem(busy(jnp.float32(1.0)), Parametric(prices, busy), 30.0, 60)
    x = np.linspace(0, 1, 50)[:, None]
    data = Transitions(x, 0 * x, x, np.zeros(50), np.zeros((50, 1)), np.zeros(50, bool))
    chosen = solver(
        at_rest,
        60,
        budget=30.0,
        return_scale=60.0,
        data=data,
        pieces=12,
        segment=6,
        each=4,
        nominal=8,
        updates=10,
        discount=0.9,
        multiplier_rate=0.1,
        policy_rate=3e-3,
        checks=1,
    )
    state, rewards = chosen.init(jax.random.key(0)), []
    problem = chosen._placed(problem, state, jax.random.key(2))
    for i in range(80):
        state, seen = chosen._block(problem, state, jax.random.fold_in(jax.random.key(1), i))
        rewards.append(float(seen.reward))
    np.testing.assert_allclose(np.mean(rewards[-20:]), 15.0, rtol=0.1)
    assert float(state.multipliers[0]) > 0


def test_pieces_begin_at_visited_states_and_nothing_is_recalled_besides():
    """The first segments as well: they are not looked for on the models."""
    chosen = solver(at_rest, 20, data=somewhere_else(), pieces=10, segment=5, each=4, nominal=8, recalled=0.25)
    problem = make_problem(drift(jnp.float32(1.0)), Parametric(SHIFTS, drift), 1.0, 20)
    problem = chosen._placed(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
    improver = chosen.improver
    starts = improver._recalled(improver._starts(problem, jax.random.key(2)), jax.random.key(3))
    rows = rows_of(problem, 4, 8)
    first, memory = improver._first(STILL, problem, rows, starts[0], jax.random.key(4))
    assert starts.shape == (50, 12, 1)
    assert float(jnp.min(starts)) >= 7
    np.testing.assert_array_equal(first[:, 0], np.concatenate([np.tile(starts[0, :4, 0], 2), starts[0, 4:, 0]]))
    assert memory == ()


def test_what_is_steered_is_all_that_is_trained():
    """Of two numbers, of which the policy may only be about the last one."""
    push = known(lambda x, a: x, lambda x, a, y: a[0] * (x[0] + x[1]), lambda x, a, y: 0 * x[:1])
    x = np.ones((50, 2))
    data = Transitions(x, 0 * x[:, :1], x, np.zeros(50), np.zeros((50, 1)), np.zeros(50, bool))
    for steered, moved in ((1, [False, True]), (0, [True, True])):
        chosen = solver(
            lambda key: jnp.ones(2), 10, data=data, pieces=5, segment=5, steered=steered, policy_layers=0, updates=5
        )
        chosen = replace(chosen, domain=replace(chosen.domain, units=units(2)))
        chosen = replace(chosen, improver=replace(chosen.improver, domain=chosen.domain))
        state = chosen.init(jax.random.key(0))
        problem = chosen._placed(make_problem(push, None, 1.0, 10), state, jax.random.key(1))
        after, _ = chosen._block(problem, state, jax.random.key(2))
        (before,), (trained,) = state.network, after.network
        np.testing.assert_array_equal((trained.weights != before.weights)[:, 0], moved)
        assert (float(trained.bias[0]) != float(before.bias[0])) == (steered == 0)


def test_some_segments_begin_at_states_of_the_data():
    """A quarter of those on every sample, and a quarter of those on the nominal model."""
    chosen = solver(at_rest, 20, data=somewhere_else(), segment=5, each=4, nominal=8, recalled=0.25)
    starts = chosen.improver._recalled(jnp.zeros((3, 12, 1), jnp.float32), jax.random.key(0))
    np.testing.assert_array_equal(starts[0, :, 0] > 6, [*[True], *[False] * 3, *[True] * 2, *[False] * 6])
    assert len(np.unique(starts[:, [0, 4, 5]])) > 5
    np.testing.assert_array_equal(
        recalled_rows(chosen.improver._sizes, chosen.improver._cuts, 2),
        [*([True] + [False] * 3) * 2, *[True] * 2, *[False] * 6],
    )


def somewhere_else():
    x = np.linspace(7, 8, 50)[:, None]
    return Transitions(x, 0 * x, x, np.zeros(50), np.zeros((50, 1)), np.zeros(50, bool))


def test_costs_that_are_not_summed_are_refused():
    with pytest.raises(UserError, match="not summed over the episode"):
        GradientSettings(segment=5).create(make_task("pendulum"))
