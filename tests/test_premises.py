"""From a task to what the theory is asked: units, refusals, and facts that are checked against pen and paper."""

import math
from dataclasses import replace

import jax.numpy as jnp
import pytest

from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.kernels import Linear
from sbsrl.model import Signals
from sbsrl.policies import PolicyClass
from sbsrl.premises import first_step_cost, premises_of, task_facts, unbounded_returns, uncertifiable
from sbsrl.prior import GPPrior, Prior
from sbsrl.specification import resolve
from sbsrl.task import Equations, Limits, Task
from sbsrl.theory import certify


def start(key):
    return jnp.zeros(2)


def drift(x, a):
    """The prior mean: the first state is pushed, the second stays."""
    return x + jnp.array([1.0, 0.0]) * a[0]


SIGNALS = Signals(lambda x, a, y: -jnp.abs(y[0]), lambda x, a, y: jnp.abs(y[:1]))
EQUATIONS = Equations(start, lambda x, a, key: drift(x, a), drift, SIGNALS, (0.1, 0.2))
MODEL = GPPrior(
    mean=drift, scale=(1.0, 2.0), kernel=Linear((1.0, 1.0, 1.0)), noise=0.1, bound=1.5, bound_source="measured"
)


TWO = {"signals": None, "equations": None}
"""Nothing is known of what two costs are."""


def never():
    raise AssertionError("the theory does not touch the true system")


def line(**changes):
    known = {
        "name": "line",
        "state_names": ("x", "y"),
        "action_low": (0.5,),
        "action_high": (1.0,),
        "horizon": 4,
        "costs": (Cost("reach", 10.0, "sum", (0.0, 3.0)),),
        "start": start,
        "fixed_start": (0.0, 0.0),
        "open": never,
        "prior": Prior("stated", True, gp=MODEL),
        "signals": SIGNALS,
        "equations": EQUATIONS,
        "limits": Limits((2.0, 2.0, 1.0), (-5.0, 0.0)),
    }
    return Task(**{**known, **changes})


@pytest.fixture(scope="module")
def settings():
    return resolve("pendulum", changes={})[1]


def with_model(**changes):
    return line(prior=Prior("stated", True, gp=replace(MODEL, **changes)))


def test_the_premises_are_those_of_task_and_settings(settings):
    found = premises_of(line(), settings)
    assert (found.outputs, found.horizon, found.noise, found.bound) == (2, 4, 0.1, 1.5)
    assert (found.budget, found.cost, found.reward, found.least, found.aggregation) == (10, 3, 5, 0, "sum")
    assert found.limits == (2, 2, 1)
    assert found.margin is None
    assert (found.samples, found.form) == (settings.method.samples, settings.method.form)
    assert (found.delta, found.convention) == (settings.belief.delta, settings.belief.convention)
    assert found.tightening == settings.method.tightening[0]
    assert premises_of(line(), settings, samples=7, margin=2.0, bound=None).samples == 7


def test_outputs_of_different_noise_are_measured_in_units_of_the_smallest(settings):
    """sigma = (0.1, 0.4): in output 2 everything is divided by 4, its kernel by 16; k(z, z) <= 4 + 4 + 1."""
    found = premises_of(with_model(noise=(0.1, 0.4)), settings)
    assert found.noise == 0.1
    assert [kernel.supremum(found.limits) for kernel in found.kernels] == pytest.approx([9.0, 9.0 / 16])


NO_MODEL = Prior("nothing", False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limits": None}, "line does not say within which limits inputs and rewards lie; give Task.limits."),
        (
            {"prior": NO_MODEL},
            "the prior of line is no Gaussian process, and the theorems are about one; give Prior.gp.",
        ),
        ({"costs": (Cost("a", 1.0), Cost("b", 1.0)), **TWO}, "the theorems are about one cost, and line has 2."),
    ],
)
def test_a_task_that_no_theorem_speaks_of_is_refused_in_one_sentence(settings, changes, said):
    task = line(**changes)
    assert uncertifiable(task) == said
    with pytest.raises(UserError, match=r"^nothing can be certified: ") as refused:
        premises_of(task, settings, cost=1.0, reward=1.0)
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize("changes", [{"limits": None}, {"prior": NO_MODEL}])
def test_facts_need_a_model_and_limits(changes):
    with pytest.raises(UserError, match="needs limits and a Gaussian-process prior, which line does not have"):
        task_facts(line(**changes))


ENDLESS_COST = {"costs": (Cost("reach", 10.0, "sum", (0.0, math.inf)),)}
ENDLESS_REWARD = {"limits": Limits((2.0, 2.0, 1.0), (-math.inf, 1.0))}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (ENDLESS_COST, "the cost of a step of line has no bound (it lies between 0 and inf)."),
        (ENDLESS_REWARD, "the reward of a step of line has no bound (it lies between -inf and 1)."),
        ({"limits": None}, "the reward of a step of line has no bound (it lies between -inf and inf)."),
        (
            {"costs": (Cost("a", 1.0, "sum", (0.0, 1.0)), Cost("b", 1.0)), **TWO},
            "the cost 'b' of a step of line has no bound (it lies between 0 and inf).",
        ),
    ],
)
def test_a_cost_or_reward_without_a_bound_is_named(changes, said):
    assert unbounded_returns(line(**changes)) == said
    assert unbounded_returns(line()) is None


def test_who_states_both_bounds_is_answered(settings):
    task = line(**ENDLESS_COST, **ENDLESS_REWARD)
    with pytest.raises(UserError, match="nothing can be certified: the cost of a step of line has no bound"):
        premises_of(task, settings, cost=2.0)
    stated = premises_of(task, settings, cost=2.0, reward=3.0)
    assert (stated.cost, stated.reward) == (2, 3)


def test_the_first_step_bounds_what_every_policy_costs():
    """From 0 the action a leads to a + s B sqrt(k), k = a^2, in the first output: (1 + B) a at worst, a >= 0.5.

    To 1 %: the actions are tried on a set of points. Three more steps cost at least 1 each in the last case.
    """
    assert first_step_cost(line()) == pytest.approx(1.25, rel=0.01)
    at_most = line(costs=(Cost("reach", 10.0, "statewise", (1.0, 3.0)),))
    assert first_step_cost(at_most) == pytest.approx(1.25, rel=0.01)
    summed = line(costs=(Cost("reach", 10.0, "sum", (1.0, 3.0)),))
    assert first_step_cost(summed) == pytest.approx(1.25 + 3, rel=0.01)


def test_what_is_not_known_of_the_first_step_is_none():
    assert first_step_cost(with_model(bound=None)) is None
    assert first_step_cost(line(signals=None)) is None
    assert first_step_cost(line(fixed_start=None)) is None
    assert first_step_cost(line(prior=NO_MODEL)) is None


def test_facts_are_in_the_units_of_the_states():
    facts = task_facts(line())
    assert facts.modelled_noise == pytest.approx((0.1, 0.2))
    assert facts.true_noise == (0.1, 0.2)
    assert (facts.bound_source, facts.robust_margin) == ("measured", None)
    assert facts.first_step_cost == first_step_cost(line())
    assert task_facts(line(equations=None)).true_noise is None


# a state that is a number ------------------------------------------------------------------------------------------


def push(theta, x):
    return jnp.clip(theta[:1], 0.5, 1.0) + 0 * x


def walk(x, a):
    return x + a


CHARGED = Signals(lambda x, a, y: -jnp.abs(y[0]), lambda x, a, y: jnp.clip(jnp.abs(y), 0, 3))


def number(budget=10.0, **changes):
    """Every policy pushes by 0.5 or more; the mismatch is known to be 0, so the cost is that of the prior mean."""
    model = GPPrior(
        mean=walk, scale=(1.0,), kernel=Linear((1.0, 1.0)), noise=0.1, bound=0.0, bound_source="nothing is unknown"
    )
    known = {
        "name": "number",
        "state_names": ("x",),
        "horizon": 2,
        "costs": (Cost("reach", budget, "sum", (0.0, 3.0)),),
        "start": lambda key: jnp.zeros(1),
        "fixed_start": (0.0,),
        "prior": Prior("stated", True, gp=model),
        "signals": CHARGED,
        "equations": Equations(lambda key: jnp.zeros(1), lambda x, a, key: walk(x, a), walk, CHARGED, (0.1,)),
        "limits": Limits((6.0, 1.0), (-5.0, 0.0)),
        "policies": PolicyClass(push, (0.5,), (1.0,), ("push",), (3,)),
    }
    return line(**{**known, **changes})


def test_the_margin_is_computed_where_the_state_is_a_number(settings):
    """0.5 and then 1.0, far from the kink at 0 in units of the noise: 10 - 1.5, to the 1e-3 of the quadrature."""
    assert task_facts(number()).robust_margin == pytest.approx(8.5, abs=1e-3)
    assert premises_of(number(), settings).margin == pytest.approx(8.5, abs=1e-3)


def test_where_no_policy_is_safe_there_is_no_margin(settings):
    strict = number(budget=1.0)
    assert task_facts(strict).robust_margin == pytest.approx(-0.5, abs=1e-3)
    assert premises_of(strict, settings).margin is None
    standing = {a.label: a.standing for a in certify(premises_of(strict, settings), task_facts(strict)).assumptions}
    assert standing["prior_knowledge"] == "violated"


@pytest.mark.parametrize(
    "changes", [{"policies": None}, {"signals": None}, {"costs": (Cost("reach", 10.0, "statewise", (0.0, 3.0)),)}]
)
def test_where_it_cannot_be_computed_the_margin_is_not_known(changes):
    assert task_facts(number(**changes)).robust_margin is None


def test_the_pendulum_is_told_the_truth():
    """M = 30 is a heuristic; B alone makes the exponent 3 * 20^2 / 2; two assumptions of the safety theorem fail."""
    task, settings = resolve("pendulum", changes={})
    found = certify(premises_of(task, settings), task_facts(task))
    assert (found.quantity("M").value, found.quantity("M").status) == (30, "heuristic")
    assert found.quantity("Delta_use").status == "heuristic"
    assert found.quantity("M(zeta)").value > 1e4
    assert found.quantity("phi~").status == "impossible"
    assert found.quantity("Delta_zeta'").status == "impossible"
    assert "trivial" in found.quantity("gamma_50").how
    assert found.quantity("delta(M)").text.startswith("1 - 10^-")
    words = "\n".join(found.conclusions)
    assert "With M = 30 samples no guarantee holds: the theory asks for 10^" in words
    assert "is 0 steps: B = 20 alone makes the exponent 600, and 30 samples afford 2.6." in words
    assert "process_noise and prior_knowledge are violated" in words
    standing = {assumption.label: assumption.standing for assumption in found.assumptions}
    assert standing == {
        "process_noise": "violated",
        "rkhs": "given",
        "prior_knowledge": "violated",
        "continuity_sigma": "given",
        "information_gain": "checked",
    }
