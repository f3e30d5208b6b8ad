"""Expected returns against closed forms, finer grids and simulation."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import truncnorm

from sbsrl import UserError, make_task
from sbsrl.laboratory.world import World
from sbsrl.methods import Context
from sbsrl.model import KnownModel, Model, Signals
from sbsrl.policies import PolicyClass
from sbsrl.problem import Problem
from sbsrl.solve.expectation import (
    Expectation,
    Quadrature,
    Scenarios,
    make_expectation,
    measured_error,
    policy_costs,
    policy_excess,
    policy_returns,
    quadrature_error,
)

GAIN, PUSH = -0.3, 0.2


def linear(x, a):
    return 0.8 * x + 0.5 * a


def feedback(x):
    return GAIN * x + PUSH


def itself(x, a, y):
    return y[0]


def squares(x, a, y):
    return y[0] ** 2 + 0.5 * x[0] * a[0]


UNUSED = Signals(lambda x, a, y: jnp.zeros(()), lambda x, a, y: jnp.zeros(1))
"""Reward and costs of models whose gains are given."""


@eqx.filter_jit
def expected(rule, dynamics, act, gains, aggregations=None):
    return rule.expected(KnownModel(dynamics, UNUSED), act, gains, aggregations)


def moments_by_hand(start, noise, horizon):
    """E sum y and E sum (y^2 + x a / 2) for x' = 0.8 x + 0.5 (k x + b) + w: mean and variance of a linear recursion."""
    factor, shift = 0.8 + 0.5 * GAIN, 0.5 * PUSH
    mean, variance, first, second = start, 0.0, 0.0, 0.0
    for _ in range(horizon):
        second += 0.5 * (GAIN * (mean**2 + variance) + PUSH * mean)
        mean, variance = factor * mean + shift, factor**2 * variance + noise**2
        first += mean
        second += mean**2 + variance
    return [first, second]


@pytest.mark.parametrize(("start", "noise", "horizon"), [(0.0, 0.3, 3), (1.3, 0.5, 6), (-0.7, 0.2, 1)])
def test_quadrature_is_the_closed_form_of_linear_dynamics(start, noise, horizon):
    """Linear and quadratic gains, to 1e-5, single precision."""
    rule = Quadrature.create(-5.0, 5.0, start, noise, horizon)
    got = expected(rule, linear, feedback, (itself, squares))
    np.testing.assert_allclose(got, moments_by_hand(start, noise, horizon), atol=1e-5)


def test_quadrature_is_that_of_a_finer_grid(small):
    """30 policies and dynamics, smooth gains: to 1e-5."""
    world = small(0)
    for theta in np.random.default_rng(0).uniform([-1, -1], [1.5, 1], (10, 2)):
        reward, seen = nominal_returns(world, theta)
        np.testing.assert_allclose([reward, seen], world.nominal_returns(theta), atol=1e-5)
        np.testing.assert_allclose(costs(world, theta)[:3], world.costs(theta)[:3], atol=1e-5)


@eqx.filter_jit
def _nominal(problem, rule, policies, theta):
    return policy_returns(problem, rule, policies, theta)


@eqx.filter_jit
def _costs(problem, rule, policies, theta):
    """Of every constraint, and every cost."""
    every = jnp.arange(problem.constraint_count)
    return jax.vmap(lambda m: policy_costs(problem, rule, policies, theta, m))(every)


def nominal_returns(world, theta):
    return _nominal(world.problem(1.0), world.expectation, world.policies, jnp.asarray(theta))


def costs(world, theta):
    return _costs(world.problem(1.0), world.expectation, world.policies, jnp.asarray(theta))[:, 0]


class Cut(eqx.Module):
    """The sled on ground that is cut to a band, as truncated samples are."""

    width: jax.Array

    def __call__(self, x, a):
        w = self.width.astype(x.dtype)
        return 0.5 * x + 0.9 * a + jnp.clip(0.2 * jnp.tanh(x) + 0.1 * a, -w, w)


def ledge_by_hand(theta, width, refinement):
    """J_c and J_r of the ledge on a finer grid, in double precision."""
    x = 0.2 / refinement * np.arange(-15 * refinement, 15 * refinement + 1)
    a = np.tanh(theta[0] + theta[1] * x)
    mean = 0.5 * x + 0.9 * a + np.clip(0.2 * np.tanh(x) + 0.1 * a, -width, width)
    density = np.exp(-0.5 * ((x[None] - mean[:, None]) / 0.3) ** 2)
    matrix = density / density.sum(axis=1, keepdims=True)
    found = []
    for gain in (1 / (1 + np.exp(-8 * (x - 1))), 1 / (1 + np.exp(-2 * x))):
        value = np.zeros(len(x))
        for _ in range(3):
            value = matrix @ (gain + value)
        found.append(value[15 * refinement])
    return found


@pytest.mark.parametrize(("width", "tolerance"), [(9.0, 3e-5), (0.1, 1e-3)])
def test_quadrature_on_the_ledge_is_as_good_as_it_says(width, tolerance):
    """Its steep cost to 3e-5; with dynamics that have a kink to 1e-3. Against a grid eight times as fine."""
    task = make_task("ledge")
    rule, model = make_expectation(task), KnownModel(Cut(jnp.asarray(width)), task.signals)

    @jax.jit
    def both(theta):
        return rule.expected(model, lambda x: task.policies(theta.astype(x.dtype), x), (ledge_cost, model.reward))

    for theta in task.policies.lattice((4, 3)):
        np.testing.assert_allclose(both(theta), ledge_by_hand(np.asarray(theta), width, 8), atol=tolerance)


def test_rows_are_probabilities_wherever_the_mean_is():
    """Sums to 1 within 1e-6, also far beyond the last node; and with the right mean inside, to 1e-5."""
    rule = Quadrature.create(-3.0, 3.0, 0.5, 0.3, 3)
    means = np.linspace(-2, 2, len(rule.nodes))
    means[:4] = -1e6, -4.0, 3.0, 40.0
    rows = np.asarray(rule.transitions(jnp.asarray(means, jnp.float32)))
    assert np.all(rows >= 0)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    inside = np.abs(means) < 1.2
    np.testing.assert_allclose(rows[inside] @ np.asarray(rule.nodes), means[inside], atol=1e-5)


def test_the_initial_state_is_a_node():
    rule = Quadrature.create(-3.0, 3.0, 0.517, 0.3, 3)
    np.testing.assert_allclose(np.asarray(rule.nodes) @ np.asarray(rule.start), 0.517, atol=1e-6)
    assert np.sum(rule.start) == 1
    assert rule.nodes[0] >= -3
    assert rule.nodes[-1] <= 3
    np.testing.assert_allclose(np.diff(rule.nodes), 0.2, atol=1e-6)


def test_what_quadrature_cannot_do_is_refused():
    with pytest.raises(UserError, match=r"^the initial state 3 is not between -3 and 3.$"):
        Quadrature.create(-3.0, 3.0, 3.0, 0.3, 3)
    with pytest.raises(UserError, match=r"^quadrature is for summed costs; use scenarios for a bound on every step.$"):
        RULE.expected(KnownModel(linear, UNUSED), feedback, (itself,), ("statewise",))
    with pytest.raises(UserError, match=r"^quadrature is for models that are functions; use scenarios for one that dr"):
        RULE.expected(Drawing(jnp.array(0.8)), feedback, (itself,))


RULE = Quadrature.create(-3.0, 3.0, 0.0, 0.3, 3)
LEDGE = make_task("ledge")


def ledge_cost(x, a, y):
    return LEDGE.signals.costs(x, a, y)[0]


def test_scenarios_converge_to_quadrature():
    """100 sets of 64, the mean of all within 4 standard errors; and those are small enough to mean something."""
    gains, model = (ledge_cost, LEDGE.signals.reward, squares), KnownModel(linear, UNUSED)
    draw = lambda key: Scenarios.draw(LEDGE, 64, key).expected(model, feedback, gains)  # noqa: E731
    each = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 100)), float)
    exact = np.asarray(expected(make_expectation(LEDGE), linear, feedback, gains))
    error = each.std(axis=0, ddof=1) / 10
    assert np.all(np.abs(each.mean(axis=0) - exact) < 4 * error + 3e-5)
    assert np.all(error < 0.01)


def test_scenarios_are_antithetic_so_that_linear_returns_are_exact():
    """Every noise sequence comes with its mirror image: E sum y is that of the closed form, to 1e-6."""
    scenarios = Scenarios.draw(LEDGE, 9, jax.random.key(0))
    assert scenarios.noise.shape == (8, 3, 1)
    np.testing.assert_array_equal(scenarios.noise[:4], -scenarios.noise[4:])
    got = expected(scenarios, linear, feedback, (itself,))
    np.testing.assert_allclose(got, moments_by_hand(0.0, 0.3, 3)[:1], atol=1e-6)


def two_states(key):
    return jax.random.uniform(key, (2,))


def turn(x, a):
    return 0.9 * x[::-1] + a


def with_gp(**changes):
    """The prior of the ledge with another Gaussian process."""
    return dataclasses.replace(LEDGE.prior, gp=dataclasses.replace(LEDGE.prior.gp, **changes))


PLANE_LIMITS = dataclasses.replace(LEDGE.limits, inputs=(3.0, 3.0, 1.0))
PLANE_PARTS = {
    "state_names": ("x", "y"),
    "start": two_states,
    "fixed_start": None,
    "prior": with_gp(scale=(0.5, 2.0), noise=(0.1, 0.2)),
    "signals": None,
    "equations": None,
    "limits": PLANE_LIMITS,
}
PLANE = dataclasses.replace(LEDGE, **PLANE_PARTS, horizon=4)


@pytest.mark.parametrize("aggregation", ["sum", "statewise"])
def test_scenarios_of_any_state_are_simulations(aggregation):
    """By hand in numpy: the mean over all scenarios of the sum, or of the largest, of four steps. To 1e-5."""
    scenarios = Scenarios.draw(PLANE, 50, jax.random.key(1))
    got = expected(scenarios, turn, feedback_of_plane, (squares,), (aggregation,))[0]
    x, total = np.asarray(scenarios.starts, float), []
    for t in range(4):
        a = -0.5 * x[:, :1]
        y = 0.9 * x[:, ::-1] + a + np.asarray(scenarios.noise[:, t], float)
        total.append(y[:, 0] ** 2 + 0.5 * x[:, 0] * a[:, 0])
        x = y
    worst = np.sum(total, axis=0) if aggregation == "sum" else np.max(total, axis=0)
    np.testing.assert_allclose(got, worst.mean(), atol=1e-5)


def feedback_of_plane(x):
    return -0.5 * x[:1]


class Drawing(eqx.Module):
    """x' = g x + a + 0.2 e, e ~ N(0, I): a model with noise of its own, and two costs."""

    gain: jax.Array

    @property
    def stochastic(self):
        return True

    def __call__(self, x, a):
        return self.gain.astype(x.dtype) * x + a

    def draw(self, x, a, key):
        return self(x, a) + 0.2 * jax.random.normal(key, x.shape, x.dtype)

    def reward(self, x, a, y):
        return squares(x, a, y)

    def costs(self, x, a, y):
        return jnp.stack([jnp.abs(y[0]), a[0] ** 2])


class Drawings(eqx.Module):
    gains: jax.Array

    def __len__(self):
        return len(self.gains)

    def member(self, m):
        return Drawing(self.gains[m])


def own_noise(scenarios):
    """What a model that draws adds, of every step and scenario: [T, K, dx]."""
    keys = [jax.random.split(key, len(scenarios.starts)) for key in jax.random.split(scenarios.key, PLANE.horizon)]
    draw = jax.vmap(lambda key: 0.2 * jax.random.normal(key, (2,), jnp.float32))
    return np.array([draw(each) for each in keys], float)


def simulate(scenarios, gain):
    """Squares and both costs of every step: [T, 3, K]."""
    x, found = np.asarray(scenarios.starts, float), []
    for e in own_noise(scenarios):
        a = -0.5 * x[:, :1]
        y = gain * x + a + e
        found.append([y[:, 0] ** 2 + 0.5 * x[:, 0] * a[:, 0], np.abs(y[:, 0]), a[:, 0] ** 2])
        x = y
    return np.array(found)


def test_scenarios_of_a_model_that_draws_have_its_noise_and_not_that_of_the_prior():
    """By hand in numpy, to 1e-5: the sum of the squares, the largest position, the sum of the efforts."""
    scenarios = Scenarios.draw(PLANE, 50, jax.random.key(1))
    model = Drawing(jnp.array(0.7))
    assert isinstance(model, Model)
    gains = (model.reward, lambda x, a, y: model.costs(x, a, y)[0], lambda x, a, y: model.costs(x, a, y)[1])
    got = jax.jit(lambda: scenarios.expected(model, feedback_of_plane, gains, ("sum", "statewise", "sum")))()
    steps = simulate(scenarios, 0.7)
    wanted = [steps[:, 0].sum(axis=0).mean(), steps[:, 1].max(axis=0).mean(), steps[:, 2].sum(axis=0).mean()]
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    noise = own_noise(scenarios)
    assert len(np.unique(noise.round(6))) == noise.size  # every step of every scenario has its own


def plane_problem(**changes):
    model = Drawing(jnp.array(0.8))
    fields = {
        "objective": None,
        "nominal": model,
        "samples": Drawings(jnp.array([0.5, 0.7, 0.9])),
        "bounds": jnp.array([0.4, 0.2], jnp.float32),
        "aggregations": ("statewise", "sum"),
        "uncertainty": lambda x, a: jnp.abs(a[0]),
        "threshold": jnp.zeros((), jnp.float32),
        "steps": jnp.int32(4),
        "exploring": jnp.array(False),
        "starts": jnp.zeros((1, 2)),
        "key": jax.random.key(0),
    }
    return Problem(**{**fields, **changes})


PUSHES = PolicyClass(lambda theta, x: theta[:1] * x[:1], (-1.0,), (1.0,), ("gain",), (3,))


def plane_costs():
    """Of both costs on each of three samples, for the gain -0.5, by hand; and the scenarios."""
    scenarios = Scenarios.draw(PLANE, 50, jax.random.key(1))
    steps = [simulate(scenarios, gain) for gain in (0.5, 0.7, 0.9)]
    return scenarios, np.array([[s[:, 1].max(axis=0).mean(), s[:, 2].sum(axis=0).mean()] for s in steps])


def test_policy_costs_are_those_of_every_sample_and_every_cost_or_of_their_mean():
    """In numpy, to 1e-5, with samples that draw and two costs that are aggregated in different ways."""
    scenarios, wanted = plane_costs()
    theta = jnp.array([-0.5])
    np.testing.assert_allclose(_costs(plane_problem(), scenarios, PUSHES, theta), wanted, atol=1e-5)
    mean = _costs(plane_problem(constraint="mean"), scenarios, PUSHES, theta)
    np.testing.assert_allclose(mean, wanted.mean(axis=0, keepdims=True), atol=1e-5)


def test_the_excess_of_two_costs_is_charged_in_sum_and_judged_by_the_largest():
    scenarios, wanted = plane_costs()
    bounds = wanted.min(axis=0) - np.array([0.05, 0.01])
    problem = plane_problem(bounds=jnp.asarray(bounds, jnp.float32))
    got = _excesses(problem, scenarios, PUSHES, jnp.array([-0.5]), jnp.arange(3))
    np.testing.assert_allclose(got.charged, (wanted - bounds).sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(got.beyond, (wanted - bounds).max(axis=1), atol=1e-5)
    assert np.all(np.asarray(got.charged) > np.asarray(got.beyond) + 5e-3)


def test_scenarios_have_the_noise_that_the_prior_assumes():
    """Standard deviations 0.05 and 0.4 in units of the state, from 40000 numbers each: within 4 standard errors."""
    noise = np.asarray(Scenarios.draw(PLANE, 10_000, jax.random.key(2)).noise)
    independent = noise[:5000].reshape(-1, 2)
    np.testing.assert_allclose(independent.std(axis=0) / [0.05, 0.4], 1, atol=4 / np.sqrt(2 * len(independent)))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, Quadrature),
        ({"costs": (dataclasses.replace(LEDGE.costs[0], aggregation="statewise"),)}, Scenarios),
        ({"limits": dataclasses.replace(LEDGE.limits, inputs=(np.inf, 1.0))}, Scenarios),
        ({"limits": None}, Scenarios),
        ({"prior": dataclasses.replace(LEDGE.prior, gp=None)}, Scenarios),
        ({"start": lambda key: jax.random.normal(key, (1,)), "fixed_start": None}, Scenarios),
        (PLANE_PARTS, Scenarios),
    ],
)
def test_quadrature_is_taken_where_the_state_is_a_bounded_number_with_one_start(changes, kind):
    chosen = make_expectation(dataclasses.replace(LEDGE, **changes), count=8)
    assert isinstance(chosen, kind)
    assert isinstance(chosen, Expectation)


def test_the_chosen_quadrature_has_the_units_of_the_task():
    """sigma_w is in units of the scale."""
    rule = make_expectation(dataclasses.replace(LEDGE, prior=with_gp(scale=(0.5,))))
    assert rule.noise == 0.15
    assert rule.horizon == 3
    assert make_expectation(make_task("pendulum"), count=6).noise.shape == (6, 50, 3)


@pytest.mark.parametrize("rule", [make_expectation(LEDGE), Scenarios.draw(LEDGE, 32, jax.random.key(0))])
def test_returns_are_differentiable_in_the_policy(rule):
    """Forwards and backwards, against central differences of width 0.02: to 1e-3."""
    policies = LEDGE.policies

    @jax.jit
    def value(theta):
        act = lambda x: policies(theta.astype(x.dtype), x)  # noqa: E731
        return rule.expected(KnownModel(linear, UNUSED), act, (ledge_cost,))[0]

    for theta in jnp.asarray([[0.3, 0.2], [1.0, -0.5]]):
        width = 0.01 * jnp.eye(2)
        differences = [(value(theta + w) - value(theta - w)) / 0.02 for w in width]
        for derivative in (jax.jacfwd, jax.grad):
            np.testing.assert_allclose(jax.jit(derivative(value))(theta), differences, atol=1e-3)
    assert np.max(np.abs(differences)) > 0.01


def test_the_excess_is_what_is_above_the_bound(small):
    world = small(0)
    theta = jnp.asarray([1.0, 0.5])
    J = np.asarray(costs(world, theta))
    problem = world.problem(np.median(J))
    every = jnp.arange(13, dtype=jnp.int32)
    got = excesses(problem, world, theta, every)
    np.testing.assert_array_equal(*got)  # with one cost the sum is the largest
    np.testing.assert_allclose(got.beyond, np.maximum(J - np.median(J), 0), atol=1e-6)
    assert np.sum(np.asarray(got.beyond) == 0) == 7


@eqx.filter_jit
def _excesses(problem, rule, policies, theta, members):
    return jax.vmap(lambda m: policy_excess(problem, rule, policies, theta, m))(members)


def excesses(problem, world, theta, members):
    return _excesses(problem, world.expectation, world.policies, theta, members)


def test_what_is_not_a_number_is_not_safe_earns_nothing_and_teaches_nothing(small):
    world = small(0)
    theta = jnp.asarray([1.0, 0.5])
    broken = dataclasses.replace(world, samples=np.full((13, 3), np.nan), nominal=np.full(3, np.nan))
    assert np.all(np.isinf(excesses(broken.problem(1.0), world, theta, jnp.arange(13, dtype=jnp.int32)).beyond))
    reward, _ = nominal_returns(broken, theta)
    assert reward == -np.inf
    _, seen = nominal_returns(dataclasses.replace(world, centre=np.nan), theta)
    assert seen == 0


def test_the_error_that_is_allowed_for_covers_that_of_truncated_samples():
    """After 30 episodes of random data, on the ground with the sharpest kinks, against nodes six times as close."""
    world = World("waves")
    belief, rng = world.belief(), np.random.default_rng(0)
    sled = world.draw_sled(rng)
    for _ in range(30):
        x, a = rng.normal(size=(3, 1)), rng.uniform(-1, 1, (3, 1))
        y = np.asarray(jax.vmap(sled.mean)(jnp.asarray(x), jnp.asarray(a))) + 0.3 * rng.normal(size=(3, 1))
        belief = belief.append(*map(jnp.asarray, (x, a, y)))
    key = jax.random.key(0)
    context = Context(world.task, belief, world.settings, 0, False, False, key, key, jnp.zeros((1, 1)))
    problem = world.experiment.method.problem(context)
    coarse = world.search.expectation
    step = coarse.noise / 9
    places = np.arange(-round(3 / step), round(3 / step) + 1)
    close = Quadrature(
        jnp.asarray(step * places, coarse.nodes.dtype), jnp.asarray(places == 0, coarse.nodes.dtype), 0.3, 3
    )
    thetas = world.search.policies.lattice((4, 3))

    @eqx.filter_jit
    def costs(rule, problem):
        policies = world.search.policies
        one = lambda theta: jax.vmap(lambda m: policy_costs(problem, rule, policies, theta, m))(jnp.arange(20))  # noqa: E731
        return jax.lax.map(one, thetas)

    errors = np.abs(np.asarray(costs(coarse, problem)) - np.asarray(costs(close, problem)))
    assert 1e-4 < errors.max() < quadrature_error(world.task)


# what J_c may be off by ---------------------------------------------------------------------------------------------


class Beyond(eqx.Module):
    """A model whose steps cost 1 if they end beyond an edge: a jump, wherever it is between two nodes."""

    dynamics: eqx.Module
    edge: jax.Array

    @property
    def stochastic(self):
        return False

    def __call__(self, x, a):
        return self.dynamics(x, a)

    def draw(self, x, a, key):
        return self(x, a)

    def reward(self, x, a, y):
        return jnp.zeros((), y.dtype)

    def costs(self, x, a, y):
        return jnp.where(y > self.edge, 1.0, 0.0).astype(y.dtype)


class AllBeyond(eqx.Module):
    """The same of every sample."""

    samples: eqx.Module
    edge: jax.Array

    def __len__(self):
        return len(self.samples)

    def member(self, m):
        return Beyond(self.samples.member(m).dynamics, self.edge)


@pytest.mark.parametrize("seed", range(3))
def test_the_measured_error_covers_that_of_a_cost_that_jumps(small, seed):
    """40 edges, against nodes 24 times as close; the rest that those are off by themselves is 1/24 of it at most."""
    world = small(seed)
    rule, theta = world.expectation, jnp.asarray(np.random.default_rng(seed).uniform([-1, -1], [1.5, 1]), jnp.float32)
    errors, found, plain = [], [], world.problem(1.0)
    for edge in np.random.default_rng(seed).uniform(-1.0, 1.5, 40):
        problem = world.problem(1.0, samples=AllBeyond(plain.samples, jnp.asarray(edge, jnp.float32)))
        coarse, fine = (np.asarray(_costs(problem, r, world.policies, theta)) for r in (rule, rule.finer(24)))
        errors.append(np.abs(coarse - fine).max())
        found.append(float(measured_error(problem, rule, world.policies, theta, jnp.asarray(coarse[:, 0])).quadrature))
    assert np.all(np.asarray(errors) <= 1.1 * np.asarray(found) + 1e-4)
    assert max(errors) > 1e-2


def test_the_error_at_one_jump_is_at_most_three_halves_of_the_larger_difference():
    """Wherever it is: a rule with n nodes takes it to be in the middle between two of them. To 1e-9."""
    place = np.linspace(0, 1, 10_001)[1:-1]
    off = {n: (np.floor(place * n + 1e-12) + 0.5) / n - place for n in (1, 2, 3)}
    differences = np.maximum(np.abs(off[2] - off[1]), np.abs(off[3] - off[1]))
    assert np.all(np.abs(off[1]) <= 1.5 * differences + 1e-9)
    assert np.max(np.abs(off[1]) / differences) == pytest.approx(1.5, abs=1e-3)


@pytest.mark.parametrize("limit", [1.0, 1.5, 2.5])
def test_leaving_is_the_expected_number_of_steps_that_lead_out(limit):
    """Of x' = 0.8 x + a / 2 + w, |w| ~ 0.5, three steps from 0; by simulation of 400,000.

    What happens out there no node says: the simulation goes on from a step that was drawn anew until it stays within.
    What the rule says is larger, by up to a tenth: its last nodes stand for half a step beyond the edge as well.
    """
    rule = Quadrature.create(-limit, limit, 0.0, 0.5, 3)
    edge = float(rule.nodes[-1])
    rng, x, left = np.random.default_rng(0), np.zeros(400_000), np.zeros(400_000)
    for _ in range(3):
        y = linear(x, GAIN * x + PUSH) + 0.5 * rng.normal(size=len(x))
        left += np.abs(y) > edge
        mean = linear(x, GAIN * x + PUSH)
        x = truncnorm.rvs((-edge - mean) / 0.5, (edge - mean) / 0.5, mean, 0.5, random_state=rng)
    found = float(rule.leaving(KnownModel(linear, UNUSED), feedback))
    error = 4 * left.std() / np.sqrt(len(left))
    assert left.mean() - error <= found <= 1.1 * left.mean() + error
