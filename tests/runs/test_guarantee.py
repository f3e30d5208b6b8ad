"""A certificate never says more than holds: tasks that break what it rests on, in ways that only their runs show."""

import dataclasses
from contextlib import closing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.kernels import FiniteRank
from sbsrl.learner import Learner, calibration_warning
from sbsrl.loop import algorithm_1
from sbsrl.model import Signals
from sbsrl.prior import Prior
from sbsrl.runs.certificate import UNFINISHED, certificate
from sbsrl.specification import Specification, make_experiment
from sbsrl.systems.episode import Guard, run_episode
from sbsrl.systems.equations import EquationsEnv
from sbsrl.task import Limits
from sbsrl.tasks import ledge
from sbsrl.transitions import Transitions

EPISODES = 3


def made(task, **equations):
    """The same task with other equations of the true system."""
    true = task.equations._replace(**equations)
    return dataclasses.replace(
        task,
        equations=true,
        signals=true.signals,
        open=lambda render_mode=None: EquationsEnv(true, task.action_low, task.action_high, task.horizon),
    )


def certified(task, seed=0, episodes=EPISODES, **changes):
    """The certificate of a run of Algorithm 1 as analysed."""
    asked = {"episodes": episodes, "budget": task.costs[0].budget, **changes}
    settings = Specification.make("ledge", "sbsrl", seed, "cpu", asked).settings
    experiment = make_experiment(task, "sbsrl", settings)
    learner, records, guard = Learner.create(experiment, seed), [], Guard.of(task)

    with closing(task.open()) as env:

        def play(policy, turn):
            return run_episode(env, policy, turn.seed, turn.key, task.horizon, guard=guard)

        for outcome in algorithm_1(experiment, learner, play):
            learner = outcome.learner
            records.append(outcome.record)
    return certificate(experiment, records, (), calibration_warning(learner.belief))


def only_reason(found):
    assert found["guarantee"] == "none"
    assert found["delta_spent"] is None
    (reason,) = found["reasons"]
    return reason


def test_the_ledge_itself_is_certified():
    found = certified(ledge.make())
    assert found["guarantee"] == "safety"
    assert found["reasons"] == [UNFINISHED]


def test_a_cost_that_quadrature_cannot_integrate_is_not_certified():
    """An indicator just beyond a node: J_c was 1.80 of 1.6 in every run, with the word safety."""

    def beyond(x, a, y):
        return jnp.where(y > 1.001, 1.0, 0.0).astype(y.dtype)

    task = made(ledge.make(), signals=Signals(ledge.step_reward, beyond))
    assert "J_c of the policy of episode 0 may be off by" in only_reason(certified(task))


def test_a_box_that_the_noise_leaves_is_not_certified():
    """6 of 6 runs violated, certified. How likely that is, is computed before an episode; then it is seen."""
    task = dataclasses.replace(ledge.make(), limits=Limits((0.9, 1.0), reward=(0.0, 1.0)))
    reasons = " ".join(certified(task)["reasons"])
    assert "states leave the limits with a probability of up to" in reasons
    assert "outside of the limits 0.9, 1." in reasons


def sampled(sled, count, seed=0):
    """Steps of a sled from states and pushes all over the box."""
    rng = np.random.default_rng(seed)
    x, a = rng.uniform(-1.5, 1.5, (count, 1)), rng.uniform(-1, 1, (count, 1))
    keys = jax.random.split(jax.random.key(seed), count)
    y = np.asarray(jax.vmap(sled)(jnp.asarray(x), jnp.asarray(a), keys), float)
    return Transitions(x, a, y, np.zeros(count), np.zeros((count, 1)), np.zeros(count, bool))


def with_data(weights, data_weights, count=400):
    """The ledge with a motor of some strength, and data of one of another."""
    prior, kernel = ledge.PRIORS["motor"], ledge.GROUNDS["motor"]
    true, other = (ledge.Sled(kernel, jnp.asarray([w])) for w in (weights, data_weights))
    data = sampled(other, count)
    return ledge.make(Prior(prior.name, True, gp=prior.gp, data=data), sled=true)


def test_data_of_another_system_end_the_guarantee():
    """A motor that is weaker in the data than it is: 120 episodes cost 1.7 of 1.6 on average."""
    found = certified(with_data(1.0, -1.0), episodes=120, prior="motor")
    assert "the offline data and the episodes up to episode" in only_reason(found)


def test_data_of_the_system_itself_are_named_and_end_nothing():
    found = certified(with_data(1.0, 1.0), episodes=40, prior="motor")
    assert found["guarantee"].startswith("safety")
    assumed = found["assumptions"]["offline_data"]
    assert assumed["status"] == "given"
    assert assumed["why"].startswith("400 transitions (of the prior, sha256 ")


def test_a_start_that_is_not_declared_to_be_fixed_is_not_taken_to_be():
    """Four draws were the same, and so it was certified: of eight thousand episodes one begins near the ledge."""

    def start(key):
        return jnp.where(jax.random.uniform(key, (1,)) < 1e-4, 0.9, 0.0)

    task = dataclasses.replace(made(ledge.make(), start=start), start=start, fixed_start=None)
    assert "expected costs are estimated from scenarios." in certified(task)["reasons"]


def test_a_start_that_is_declared_and_not_kept_to_ends_the_guarantee():
    """Episodes begin at 0.5."""
    task = made(ledge.make(), start=lambda key: jnp.full(1, 0.5))
    assert "it began at 0.5, and ledge is said to begin at 0." in only_reason(certified(task))


def test_a_step_that_costs_more_than_said_ends_the_guarantee():
    """A cost between 0 and 2 that is said to be at most 1."""

    def twice(x, a, y):
        return 2 * ledge.step_costs(x, a, y)

    task = made(ledge.make(), signals=Signals(ledge.step_reward, twice))
    found = certified(task, episodes=20, budget=1.6)
    assert "and costs are said to lie between 0 and 1." in " ".join(found["reasons"])


def test_a_kernel_that_is_larger_than_said_ends_the_guarantee():
    kernel = FiniteRank(ledge.waves, 2, ledge.SIZE**2 / 4)
    gp = dataclasses.replace(ledge.PRIORS["waves"].gp, kernel=kernel)
    task = ledge.make(Prior("waves", True, gp=gp), sled=ledge.Sled(kernel, jnp.asarray([0.2, 0.2])))
    reasons = " ".join(certified(task, prior="waves")["reasons"])
    assert "k(z, z) = 0.0225 at (x, a) = 0, " in reasons
    assert "is said to be at most 0.005625." in reasons


@pytest.mark.parametrize("noise", [0.2, 0.45])
def test_noise_of_another_size_than_declared_ends_the_guarantee(noise):
    """The model says 0.3, and so do the equations of the system; it is another one that is connected."""
    task = ledge.make()
    true = task.equations

    def step(x, a, key):
        return true.dynamics(x, a) + noise * jax.random.normal(key, x.shape, x.dtype)

    other = made(task, step=step)
    found = certified(dataclasses.replace(other, equations=true), episodes=100)
    assert "contradict the bound B or the declared noise sigma_w" in only_reason(found)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"delta": 0.5}, "delta = 0.5 promises nothing: safety holds with probability 1 - 2 delta."),
        ({"budget": 3.0}, "The budget d = 3 promises nothing: no episode can cost more than 3."),
    ],
)
def test_what_is_empty_is_not_called_safety(changes, why):
    budget = changes.get("budget", 1.6)
    task = dataclasses.replace(ledge.make(), costs=(Cost("beyond", budget, "sum", (0.0, 1.0)),))
    found = certified(task, episodes=1, **changes)
    assert found["guarantee"] == "none"
    assert why in found["reasons"]


def test_an_accuracy_beyond_all_returns_is_not_called_optimality():
    found = certified(ledge.make(), episodes=1, accuracy=3.0)
    assert found["guarantee"] == "safety"
    assert "epsilon = 3 promises nothing: returns differ by at most T R_max = 3." in found["reasons"]


def test_policies_that_cost_too_much_on_average_end_the_guarantee():
    """Every step costs 1, as no model knows."""
    task = ledge.make()

    def dear(x, a, y):
        return jnp.ones(1, y.dtype)

    costs = task.equations._replace(signals=Signals(ledge.step_reward, dear))
    other = dataclasses.replace(
        task, open=lambda render_mode=None: EquationsEnv(costs, task.action_low, task.action_high, task.horizon)
    )
    reason = only_reason(certified(other, episodes=20))
    assert reason == "the episodes cost 3 on average, which contradicts J_c <= 1.6 (false alarm: at most 0.005)."
