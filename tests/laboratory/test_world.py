"""The constants of a world, its truth, its worst case, and what can be reached from there."""

import math

import jax
import numpy as np
import pytest

from sbsrl.laboratory.world import World
from sbsrl.model import KnownModel
from sbsrl.solve.expectation import ERROR
from sbsrl.theory import EpisodeShape, return_factor
from sbsrl.theory import tightening as theory_tightening

SMALLER = {"ground": "motor", "epsilon": 0.3}


def test_the_constants_are_those_of_the_theory():
    """By hand, for the motor: one feature 0.15 a, T = 3, sigma_w = 0.3, costs in [0, 1]."""
    world = World("motor")
    assert world.exponent == pytest.approx(0.5 - math.log(math.erf(0.2 / math.sqrt(2))))
    assert world.samples == math.ceil(math.log(0.05) / math.log1p(-math.exp(-world.exponent)))
    tv = math.erf(0.1 / (2 * math.sqrt(2)))
    assert world.tightening == pytest.approx(sum(1 - (1 - tv) ** t for t in (1, 2, 3)) + 3 * ERROR)
    assert world.tightening < theory_tightening(0.03, EpisodeShape(3, 1, 0.3, 1.0), "paper")
    assert world.xi > world.epsilon + world.tightening
    assert world.xi == pytest.approx(world.epsilon + world.tightening)
    method, belief = world.settings.method, world.settings.belief
    assert (method.samples, method.tightening, method.accuracy) == (30, (world.tightening,), world.epsilon)
    assert (belief.sampler, belief.convention, belief.uncertainty) == ("truncated", "corrected", "deviation")
    assert world.settings.run.stop_when_learned
    assert method.exploration_tolerance == 0


def test_n_bar_is_the_first_number_of_episodes_that_the_theorem_excludes():
    """The inequality of appendix D with the sharp factors, written out: it holds for n_bar - 1 and not for n_bar."""
    world = World("motor")
    T, noise, largest = 3, 0.3, 0.15**2

    def goes_on(n):
        gamma = math.log1p(n * T * largest / noise**2) / 2
        beta = 1 + math.sqrt(2 * (gamma + 1 + math.log(1 / 0.05)))
        per_step = beta / (noise * math.sqrt(2 * math.pi))
        threshold = world.epsilon / (2 * T * per_step)
        variances = 2 * largest * gamma / math.log1p(largest / noise**2)
        spread = math.sqrt(variances) + math.sqrt(2 * largest * math.log(1 / 0.05))
        return math.sqrt(n) * threshold <= T * (1 + math.sqrt(largest) * (T - 1) * per_step) * spread

    assert goes_on(world.episode_bound - 2)
    assert not goes_on(world.episode_bound)


@pytest.mark.parametrize("ground", ["slope", "waves", "motor"])
def test_a_truth_has_the_norm_b(ground):
    world = World(ground, bound=0.7)
    for seed in range(5):
        sled = world.draw_sled(np.random.default_rng(seed))
        assert np.linalg.norm(sled.weights) == pytest.approx(0.7)
    others = [np.asarray(world.draw_sled(np.random.default_rng(seed)).weights) for seed in range(20)]
    assert len(np.unique(np.round(others, 9), axis=0)) == (2 if ground == "motor" else 20)


@pytest.mark.parametrize("w", [-1.0, 0.3, 1.0])
def test_true_returns_are_exact(world, sled_of, physics, w):
    """To 1e-8, against a finer and wider grid in numpy."""
    costs, rewards = world.true_returns(sled_of(world, w))
    expected = [physics.returns(policy, lambda x, a: 0.15 * w * a) for policy in physics.lattice()]
    np.testing.assert_allclose(costs, [e.cost for e in expected], atol=1e-8)
    np.testing.assert_allclose(rewards, [e.reward for e in expected], atol=1e-8)


def test_what_algorithm_1_computes_is_right_to_less_than_a_thousandth_of_the_tightening(world, sled_of, physics):
    """Its grid is coarser and in single precision."""
    solver = world.search
    truth = KnownModel(sled_of(world, 0.8).mean, world.task.signals)

    def cost(x, a, y):
        return truth.costs(x, a, y)[0]

    @jax.jit
    def found(theta):
        return solver.expectation.expected(truth, lambda x: solver.policies(theta.astype(x.dtype), x), (cost,))[0]

    for theta, policy in list(zip(solver.policies.lattice(), physics.lattice(), strict=True))[::7]:
        np.testing.assert_allclose(theta, policy)
        expected = physics.returns(policy, lambda x, a: 0.12 * a).cost
        assert float(found(theta)) == pytest.approx(expected, abs=1e-3 * world.tightening)


def test_no_dynamics_of_the_prior_costs_more_than_the_worst_case(world, physics):
    """Random f in F_0^B, wild and smooth, |f - mu| <= B sqrt(k); 1e-3 for the package's grid."""
    rng = np.random.default_rng(0)
    for policy, worst in zip(physics.lattice(), world.worst_costs, strict=True):
        for _ in range(3):
            shift, speed = rng.uniform(-3, 3), rng.uniform(0, 4)
            wild = rng.uniform(-1, 1, len(physics.nodes))
            for part in (wild, np.sign(wild), np.tanh(speed * (physics.nodes - shift)), np.full(len(wild), -1.0)):
                cost = physics.returns(policy, lambda x, a, part=part: 0.15 * np.abs(a) * part).cost
                assert cost <= worst + 1e-3


def test_the_worst_case_of_a_policy_that_does_not_pull_back_is_the_extreme_dynamics(world, physics):
    """f = mu + B sqrt(k), to 1e-3; a policy that pulls back can be cheated by a pull away from the ledge as well."""
    for policy, worst in zip(physics.lattice(), world.worst_costs, strict=True):
        extreme = physics.returns(policy, lambda x, a: 0.15 * np.abs(a)).cost
        assert worst == pytest.approx(extreme, abs=1e-3) if policy[1] >= 0 else worst >= extreme - 1e-3


@pytest.mark.parametrize("ground", ["slope", "waves", "motor"])
def test_the_worst_pull_is_always_one_of_the_two_ends(ground, physics):
    """Dynamic programming with the ends alone: with 11 pulls in between the value is the same, and the package's."""
    world = World(ground)
    for policy, worst in list(zip(physics.lattice(), world.worst_costs, strict=True))[::5]:
        a = physics.act(policy)
        width = {
            "slope": np.hypot(np.tanh(physics.nodes), a),
            "waves": np.ones_like(a),
            "motor": np.abs(a),
        }[ground] * 0.15
        mean = 0.5 * physics.nodes + 0.9 * a
        matrices = np.stack([physics.transitions(mean + pull * width) for pull in np.linspace(-1, 1, 13)])
        value = ends = np.zeros_like(mean)
        for _ in range(3):
            value = np.max(matrices @ (physics.cost + value), axis=0)
            ends = np.max(matrices[[0, -1]] @ (physics.cost + ends), axis=0)
        start = len(mean) // 2
        assert value[start] == pytest.approx(ends[start], abs=1e-12)
        assert worst == pytest.approx(ends[start], abs=1e-3)


def test_the_sharp_factor_bounds_how_far_returns_can_be_apart(physics):
    """|J_g(pi, f) - J_g(pi, mu)| <= lambda J_s(pi, mu) for f at the ends of mu -+ beta s, g cost or reward."""
    for beta in (0.5, 1.0, 3.0):
        factor = return_factor(beta, EpisodeShape(3, 1, 0.3, 1.0))
        for policy in physics.lattice()[::7]:
            centre = physics.returns(policy, lambda x, a: 0 * a)
            for sign in (-1, 1):
                for part in (np.sign(physics.act(policy)), np.ones_like(physics.nodes)):
                    pull = sign * 0.15 * beta * part
                    end = physics.returns(policy, lambda x, a, pull=pull: pull * np.abs(a))
                    most = factor * 0.15 * centre.action
                    assert abs(end.cost - centre.cost) <= most
                    assert abs(end.reward - centre.reward) <= most


def test_pi_prior_keeps_the_tightened_budget_in_the_worst_case(world):
    assert 0 < world.prior_safe.sum() < len(world.prior_safe)
    assert np.array_equal(world.prior_safe, world.worst_costs <= world.budget - world.tightening)


def connected(allowed, start):
    """Depth first, one policy at a time."""
    rows, columns = allowed.shape
    reached, todo = set(), list(zip(*np.nonzero(start & allowed), strict=True))
    while todo:
        i, j = todo.pop()
        if (i, j) in reached or not (0 <= i < rows and 0 <= j < columns) or not allowed[i, j]:
            continue
        reached.add((i, j))
        todo += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    mask = np.zeros_like(allowed)
    for place in reached:
        mask[place] = True
    return mask


@pytest.mark.parametrize("seed", range(20))
def test_what_is_reachable_is_what_a_search_through_the_graph_finds(seed):
    """Costs at random, so that there are islands, and a few policies that are known to be safe."""
    rng = np.random.default_rng(seed)
    world = World(**SMALLER)
    world.__dict__["worst_costs"] = np.where(rng.uniform(size=99) < 0.05, 0.0, 3.0)
    costs = rng.uniform(0, 2 * (world.budget - world.xi), 99)
    allowed = (costs <= world.budget - world.xi).reshape(11, 9)
    expected = connected(allowed, world.prior_safe.reshape(11, 9))
    assert np.array_equal(world.reachable(costs).reshape(11, 9), expected)
    assert expected.sum() < allowed.sum()  # some islands are out of reach


def test_where_nothing_is_known_to_be_safe_nothing_is_reachable():
    world = World(**SMALLER)
    world.__dict__["worst_costs"] = np.full(99, 3.0)
    assert not world.reachable(np.zeros(99)).any()
