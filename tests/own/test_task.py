"""From what is known of a user's system to a task: what must be learned is part of the state, what is known is not."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.gp_model import GPModel
from sbsrl.errors import UserError
from sbsrl.kernels import SquaredExponential
from sbsrl.own.description import Description
from sbsrl.own.knowledge import GPNumbers, Knowledge, MethodNumbers
from sbsrl.own.names import name_of
from sbsrl.own.plain import Pair
from sbsrl.own.settings import OwnSettings
from sbsrl.own.system import OwnSystem
from sbsrl.own.task import SignalEnv, make_own_task, mean_of, points_of, traced_signals
from sbsrl.systems.episode import run_episode
from sbsrl.systems.faults import Guard
from sbsrl.transitions import Transitions

INF = np.inf
SHAPE = Description(("p", "v"), (-1.0,), (1.0,), 6, ("u",))


def reset(rng):
    return [rng.uniform(-0.1, 0.1), 0.0]


def step(x, a, rng):
    y = np.array([x[0] + 0.1 * x[1], x[1] + 0.5 * a[0]])
    return y, -float(y[0] ** 2), {"heat": abs(a[0]), "noise": 3.0}


RIG = Pair(reset, step, [-1.0], [1.0], ("p", "v"))


def far(x, a, y):
    return np.maximum(y[0] - 0.5, 0.0)


def reward(x, a, y):
    return -(float(y[0]) ** 2)


def branching(x, a, y):
    return 1.0 if y[0] > 0.5 else 0.0


def model(x, a):
    return np.array([x[0] + 0.1 * x[1], x[1] + 0.4 * a[0]])


def rig(**settings):
    words = {name: name_of(value, name) if callable(value) else value for name, value in settings.items()}
    words["cost"] = tuple(name_of(each, "cost") for each in settings.get("cost", (far,)))
    return OwnSystem(name_of(RIG, "system"), OwnSettings(steps=6, **words))


def known(system, reward="known", costs=("known",), **changes):
    outputs = 2 + (reward, *costs).count("learned")
    means = tuple(range(7, 7 + outputs - 2))
    numbers = GPNumbers("stay", (0.1,) * outputs, "squared-exponential", ((1.0, 2.0, 3.0),), (0.01,), means)
    given = {"belief": "gp", "gp": numbers, "source": "Made by hand.", **changes}
    return Knowledge(
        system=system.spec,
        shape=SHAPE,
        starts=((0.0, 0.0), (0.05, 0.0)),
        reward=reward,
        costs=costs,
        method=MethodNumbers(5, (0.01,), 1.0),
        **given,
    )


def recorded(count=6):
    """Two episodes of as many steps, with two costs."""
    rng = np.random.default_rng(0)
    x, parts = np.zeros(2), []
    for t in range(2 * count):
        x = np.array([0.01 * t, 0.0]) if t % count == 0 else x
        a = rng.uniform(-1, 1, 1)
        y, earned, info = step(x, a, rng)
        parts.append((x, a, y, earned, (info["heat"], info["noise"] + t), False))
        x = y
    return Transitions(*(np.array(part) for part in zip(*parts, strict=True)))


X, A, Y = jnp.array([0.3, 0.2]), jnp.array([0.5]), jnp.array([0.9, 0.1])


@pytest.fixture(scope="module")
def plain():
    """All signals are known."""
    system = rig(reward=reward, region_high=(2.0, INF), fallback=lambda x: -x[0] - x[1], safe_action=(0.25,))
    return make_own_task(system, known(system), (3.0,), None)


def test_a_system_whose_signals_are_known_keeps_its_state(plain):
    assert (plain.state_names, plain.horizon, plain.action_low, plain.action_high) == (("p", "v"), 6, (-1.0,), (1.0,))
    assert [(cost.name, cost.budget, cost.aggregation) for cost in plain.costs] == [("far", 3.0, "sum")]
    assert plain.safe_action == (0.25,)
    assert plain.region == ((-INF, 2.0), (-INF, INF))
    env = plain.open()
    assert not isinstance(env, SignalEnv)
    assert env.reset(seed=0)[0].shape == (2,)


def test_known_signals_are_the_users_functions(plain):
    """Within 1e-6: planning is in single precision."""
    for dtype in (jnp.float64, jnp.float32):
        x, a, y = (part.astype(dtype) for part in (X, A, Y))
        earned, charged = plain.signals.reward(x, a, y), plain.signals.costs(x, a, y)
        assert (earned.dtype, charged.dtype, charged.shape) == (dtype, dtype, (1,))
        np.testing.assert_allclose([earned, charged[0]], [-0.81, 0.4], atol=1e-6)


def test_episodes_begin_where_the_prior_says(plain):
    starts = {tuple(plain.start(jax.random.key(k)).tolist()) for k in range(20)}
    assert starts == {(0.0, 0.0), (0.05, 0.0)}


def test_the_gaussian_process_is_that_of_the_prior(plain):
    gp = plain.prior.gp
    assert (gp.scale, gp.noise, gp.bound) == ((0.1, 0.1), 0.01, None)
    assert isinstance(gp.kernel, SquaredExponential)
    np.testing.assert_array_equal(gp.mean(X, A), X)
    assert plain.prior.data is None
    assert (plain.prior.name, plain.prior.informative) == ("Made by hand.", True)


def test_the_fallback_is_the_users_controller(plain):
    action, _, _ = plain.prior.policy.act(np.array([0.25, 0.5]), (), jax.random.key(0))
    assert action.tolist() == [-0.75]
    system = rig(reward=reward)
    assert make_own_task(system, known(system), (3.0,), None).prior.policy is None


LEARNED = {"cost": (far, "info:heat", "info:noise"), "fallback": lambda x: -x[0]}


@pytest.fixture(scope="module")
def learned():
    """Reward, heat and noise are learned; the first cost is known."""
    system = rig(**LEARNED, region_low=(-2.0, -INF))
    numbers = known(system, "learned", ("known", "learned", "learned"))
    data = recorded()
    data = data._replace(costs=np.concatenate([np.full((12, 1), 7.0), data.costs], axis=1))
    return make_own_task(system, numbers, (3.0, 2.0, 1.0), data)


def test_learned_signals_are_part_of_the_state(learned):
    assert learned.state_names == ("p", "v", "reward of the step", "heat of the step", "noise of the step")
    assert learned.region == ((-2.0, INF), *(((-INF, INF),) * 4))
    assert learned.start(jax.random.key(0))[2:].tolist() == [0.0, 0.0, 0.0]
    assert len(learned.prior.gp.scale) == 5


def test_the_system_reports_them_after_its_observation(learned):
    env = learned.open()
    x, _ = env.reset(seed=3)
    assert x[2:].tolist() == [0.0, 0.0, 0.0]
    y, earned, _, _, info = env.step(np.array([-0.5]))
    np.testing.assert_array_equal(y[2:], [earned, 0.5, 3.0])
    assert info["cost"].shape == (3,)
    assert earned == -(y[0] ** 2)


def test_signals_are_read_off_the_state_where_they_are_learned(learned):
    """Within 1e-12; the first cost is the user's function of the observation."""
    x, y = jnp.array([0.3, 0.2, 9.0, 9.0, 9.0]), jnp.array([0.9, 0.1, -4.0, 5.0, 6.0])
    assert learned.signals.reward(x, A, y) == -4.0
    np.testing.assert_allclose(learned.signals.costs(x, A, y), [0.4, 5.0, 6.0], atol=1e-12)


def test_data_have_them_too_and_those_of_the_last_step_where_there_was_one(learned):
    data, plain = learned.prior.data, recorded()
    signals = np.concatenate([plain.rewards[:, None], plain.costs], axis=1)
    np.testing.assert_array_equal(data.next_states, np.concatenate([plain.next_states, signals], axis=1))
    np.testing.assert_array_equal(data.states[:, :2], plain.states)
    np.testing.assert_array_equal(data.states[[0, 6], 2:], np.zeros((2, 3)))  # where episodes begin
    np.testing.assert_array_equal(data.states[1:6, 2:], signals[:5])
    np.testing.assert_array_equal(data.states[7:, 2:], signals[6:11])


def test_the_prior_expects_their_means_and_nothing_depends_on_the_last_ones(learned):
    """Within 1e-11."""
    gp = learned.prior.gp
    x, other = jnp.array([0.3, 0.2, 9.0, 9.0, 9.0]), jnp.array([0.3, 0.2, -9.0, 0.0, 1.0])
    np.testing.assert_array_equal(gp.mean(x, A), [0.3, 0.2, 7.0, 8.0, 9.0])
    u, v, w = (jnp.concatenate([z, A]) for z in (x, other, jnp.zeros(5)))
    assert abs(gp.kernel(u, w) - gp.kernel(v, w)) < 1e-11
    assert GPModel.of(gp).outputs == 5


def test_the_fallback_does_not_see_them(learned):
    seen = []
    system = rig(**{**LEARNED, "fallback": lambda x: seen.append(x.copy()) or 0.0})
    task = make_own_task(system, known(system, "learned", ("known", "learned", "learned")), (3.0, 2.0, 1.0), None)
    task.prior.policy.act(np.arange(5.0), (), jax.random.key(0))
    assert seen[0].tolist() == [0.0, 1.0]


def test_an_episode_can_be_played(learned):
    with_learned = run_episode(
        learned.open(), learned.prior.policy, 1, jax.random.key(0), learned.horizon, guard=Guard.of(learned)
    ).episode
    assert (with_learned.ended, with_learned.states.shape) == ("horizon", (7, 5))
    np.testing.assert_array_equal(with_learned.states[1:, 2], with_learned.rewards)
    np.testing.assert_array_equal(with_learned.states[1:, 3:], with_learned.costs[:, 1:])


def test_networks_learn_signals_by_themselves():
    system = rig(cost=(far, "info:heat"), reward=reward)
    numbers = known(system, "known", ("known", "learned"), belief="ensemble", gp=None)
    data = recorded()
    task = make_own_task(system, numbers, (3.0, 2.0), data)
    assert task.state_names == ("p", "v")
    assert (task.signals, task.known.costs, task.prior.gp, task.prior.data) == (None, None, None, data)
    np.testing.assert_allclose(task.known.reward(X, A, Y), -0.81, atol=1e-12)
    assert not isinstance(task.open(), SignalEnv)
    both = rig(cost=(far,), reward=reward)
    task = make_own_task(both, known(both, belief="ensemble", gp=None), (3.0,), data)
    np.testing.assert_allclose(task.known.costs(X, A, Y), [0.4], atol=1e-12)


def test_a_known_function_may_be_learned_if_the_prior_says_so():
    system = rig(reward=reward)
    assert make_own_task(system, known(system, "learned"), (3.0,), None).state_names[2:] == ("reward of the step",)


def test_a_kernel_and_a_noise_for_each_output_are_kept():
    system = rig(reward=reward)
    numbers = GPNumbers("stay", (0.1, 0.2), "matern-5/2", ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), (0.01, 0.02))
    gp = make_own_task(system, known(system, gp=numbers), (3.0,), None).prior.gp
    assert [kernel.lengthscales.tolist() for kernel in gp.kernels] == [[1, 2, 3], [4, 5, 6]]
    assert gp.noise == (0.01, 0.02)


def explained(system, numbers, said, budgets=(3.0,)):
    with pytest.raises(UserError, match=said):
        make_own_task(system, numbers, budgets, None)


def test_a_prior_that_does_not_fit_is_explained():
    system = rig(reward=reward)
    explained(
        system, known(system, costs=("known", "known")), "the prior is for 2 costs, and there are 1; make it again"
    )
    explained(
        system, replace(known(system), system="other:make"), "the prior is of other:make, and the system is local"
    )
    explained(rig(), known(rig()), "the prior calls the reward known, and no function that could be traced was given")
    told = rig(cost=(branching,), reward=reward)
    explained(told, known(told), "the prior calls the cost 'branching' known, and no function")
    simulated = replace(known(system).gp, mean="simulator")
    explained(system, known(system, gp=simulated), "mean is 'simulator', and no simulator was given; give it, or set")
    explained(system, known(system), "2 budgets were given for 1 costs", (1.0, 2.0))


# what a task is made of


def test_functions_are_tried_at_recorded_points_else_near_where_episodes_begin():
    data = recorded(20)
    rows = points_of(((0.0, 0.0),), (-1.0,), (1.0,), data)
    assert len(rows) == 24
    every = {tuple(np.concatenate(row)) for row in zip(data.states, data.actions, data.next_states, strict=True)}
    assert all(tuple(np.concatenate(row)) in every for row in rows)
    made = points_of(((1.0, 5.0), (2.0, 6.0)), (-1.0,), (1.0,), None)
    assert {x[0] for x, _, _ in made} == {1.0, 2.0}
    assert all(-1 <= a[0] <= 1 and a.shape == (1,) for _, a, _ in made)
    assert len({float(y[0]) for _, _, y in made}) == 24


def test_signals_that_branch_or_are_reported_are_not_traced():
    points = points_of(((0.0, 0.0),), (-1.0,), (1.0,), recorded())
    found = traced_signals(rig(cost=(far, branching, "info:heat", lambda x, a, y: y[:1]), reward=reward), points)
    assert [each is not None for each in found] == [True, True, False, False, True]
    assert found[4](X, A, Y).shape == ()  # an array of one number is one


def mean(simulator, starts=((0.0, 0.0),)):
    points = points_of(starts, (-1.0,), (1.0,), None)
    return mean_of(rig(simulator=simulator), "simulator", np.array(starts), points, SHAPE)


def test_a_simulator_that_can_be_traced_is_used_as_it_is():
    """Within 1e-12."""
    found, words = mean(model)
    assert words == "the simulator is used as it is"
    np.testing.assert_allclose(found(X, A), [0.32, 0.4], atol=1e-12)
    assert found(X.astype(jnp.float32), A.astype(jnp.float32)).dtype == jnp.float32


def test_a_simulator_that_cannot_is_fitted(monkeypatch):
    """Within 1e-3."""
    monkeypatch.setattr("sbsrl.own.task.ASKED", 600)
    found, words = mean(lambda x, a: model(x, a) if x[0] < 1e9 else x)
    assert words.startswith("the simulator cannot be traced, so 600 of its steps were asked for and fitted; on others")
    np.testing.assert_allclose(found(0.1 * X, A), model(0.1 * X, A), atol=1e-3)


@pytest.mark.parametrize(
    ("simulator", "said"),
    [
        (lambda x, a: x[0], "the simulator answers with 1 numbers, and an observation has 2"),
        (lambda x, a: np.array([x[0], x[1], a[0]]), "the simulator answers with 3 numbers"),
        (lambda x, a: x * np.nan, "answers with NaN"),
        (lambda x: x, "the simulator raised TypeError"),
    ],
)
def test_a_simulator_that_does_not_answer_with_the_next_observation_is_refused(simulator, said):
    with pytest.raises(UserError, match=said):
        mean(simulator)
