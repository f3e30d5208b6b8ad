"""The certificate: which theorem applies to a run, every reason why none does, and what was observed."""

import json

import pytest

from sbsrl import learn
from sbsrl.methods import METHODS
from sbsrl.record import Interruption, Record
from sbsrl.runs.certificate import certificate, first_episode_warning
from sbsrl.runs.view import RunView
from sbsrl.shape import episode_shape
from sbsrl.specification import Specification
from sbsrl.theory.samples import closeness_exponent, log_sample_count
from sbsrl.theory.small_ball import small_ball
from sbsrl.theory.tightening import tightening


def experiment_on(task, method="sbsrl", **changes):
    return Specification.make(task, method, 0, "cpu", changes).experiment()


def verdict(experiment, records):
    return RunView({}, records, certificate(experiment, records)).verdict


METRICS = {"infeasible_plans": 0, "worst_plan": 0.0, "quadrature_error": 1e-3, "leaving": 1e-9}


def record(episode=0, phase="explore", **changes):
    plain = {
        "reward": 1.0,
        "cost": 0.5,
        "budget": 1.6,
        "violation": 0.0,
        "safe": True,
        "feasible": True,
        "exploring": phase == "explore",
        "uncertainty": 0.1,
        "samples": 400,
        "metrics": METRICS,
        "seconds": 0.1,
    }
    return Record(episode=episode, phase=phase, **{**plain, **changes})


@pytest.fixture(scope="module")
def ledge():
    return experiment_on("ledge")


def test_on_the_ledge_the_safety_theorem_applies(ledge):
    found = certificate(ledge, [record()])
    assert found["guarantee"] == "safety"
    assert "probability 0.89" in found["statement"]
    tests = {"test of the misfit": 0.005, "test of the mean cost": 0.005}
    spent = {"samples": 0.05, "confidence sets": 0.05, **tests, "total": 0.11}
    assert found["delta_spent"] == pytest.approx(spent, rel=1e-12)
    assert {a["status"] for a in found["assumptions"].values()} <= {"given", "checked"}


def test_once_it_has_stopped_by_itself_the_optimality_theorem_applies_too(ledge):
    assert certificate(ledge, [record(0), record(1, "final")])["guarantee"] == "safety and optimality"
    last = ledge.settings.run.episodes
    cut_short = [record(n) for n in range(last)] + [record(last, "final")]
    assert certificate(ledge, cut_short)["guarantee"] == "safety"


@pytest.mark.parametrize(
    ("method", "changes", "why"),
    [
        ("mean", {}, "does not demand safety on every sample"),
        ("unsafe", {}, "does not demand safety on every sample"),
        ("sbsrl", {"samples": 300}, "heuristic choices"),
        ("sbsrl", {"tightening": 0.1}, "heuristic choices"),
        ("sbsrl", {"tightening": 0.0}, "covers no sample but the truth"),
        ("sbsrl", {"sampler": "pathwise"}, "functions of the prior"),
        ("sbsrl", {"convention": "paper"}, "too narrow"),
    ],
)
def test_each_condition_that_is_not_met_voids_the_guarantee_and_is_named(method, changes, why):
    found = certificate(experiment_on("ledge", method, **changes), [record()])
    assert found["guarantee"] == "none"
    assert found["delta_spent"] is None
    assert any(why in reason for reason in found["reasons"])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"accuracy": 0.0, "exploration_threshold": 0.1}, "exploration threshold"),
        ({"stop_when_learned": False}, "does not stop"),
        ({"solver": "slsqp"}, "evidence and not proof"),
        ({"solver": "evolution"}, "evidence and not proof"),
    ],
)
def test_safety_needs_less_than_optimality(changes, why):
    found = certificate(experiment_on("ledge", **changes), [record(0), record(1, "final")])
    assert found["guarantee"] == "safety"
    assert any(why in reason for reason in found["reasons"])


def test_interventions_are_counted(ledge):
    made = [record(n, metrics={**METRICS, "intervened": share}) for n, share in enumerate((0.0, 0.25, 1.0))]
    assert certificate(ledge, made)["events"]["interventions"] == [1, 2]
    assert certificate(ledge, [record()])["events"]["interventions"] == []


def test_what_was_observed_can_void_the_guarantee(ledge):
    fell_back = certificate(ledge, [record(), record(1, feasible=False, metrics={"infeasible_plans": 3})])
    assert fell_back["guarantee"] == "none"
    assert fell_back["events"]["fallback_episodes"] == [1]
    assert fell_back["events"]["infeasible_plans"] == 3
    doubted = certificate(
        ledge, [record(calibration_warning="the calibration assumption is violated at episode 0: ...")]
    )
    assert doubted["guarantee"] == "none"
    assert doubted["events"]["empty_intersections"] == [0]


def test_a_single_costly_episode_is_no_breach_of_a_bound_on_the_expectation(ledge):
    unlucky = certificate(ledge, [record(cost=2.0, violation=0.4, safe=False)])
    assert unlucky["guarantee"] == "safety"
    assert unlucky["events"]["violating_episodes"] == [0]
    assert unlucky["events"]["largest_violation"] == 0.4


def test_violations_of_episodes_that_the_user_stopped_are_told(ledge):
    stopped = [Interruption(n, 2, 0.0, 2.0, 1.6, 0.4 * n, not n) for n in (0, 1)]
    events = certificate(ledge, [record()], stopped)["events"]
    assert (events["interrupted_episodes"], events["violating_interruptions"]) == ([0, 1], [1])
    assert events["violating_episodes"] == []


def test_the_constants_are_those_of_the_formulas(ledge):
    """The zeta that the tightening covers, and the samples that it needs, to 1e-6."""
    constants = certificate(ledge, [])["constants"]
    task = ledge.task
    episodes = episode_shape(task)
    available = ledge.settings.method.tightening[0] - constants["error_of_J_c"]
    assert tightening(constants["zeta"], episodes) == pytest.approx(available, rel=1e-6)
    phi = small_ball(task.prior.gp.kernel, task.limits.inputs, constants["zeta"]).value
    needed = log_sample_count(closeness_exponent(1.0, phi, 1), 0.05)
    assert constants["log10_M_needed"] == pytest.approx(needed / 2.302585092994046, rel=1e-6)
    assert 10 ** constants["log10_M_needed"] <= ledge.settings.method.samples
    assert constants["n_bar"] > 1e5


def test_the_pendulum_is_told_why_nothing_is_guaranteed():
    experiment = experiment_on("pendulum")
    found = certificate(experiment, [])
    assert found["guarantee"] == "none"
    reasons = " ".join(found["reasons"])
    for why in ("M = 30", "heuristic", "free of noise", "Fourier features", "planned step by step"):
        assert why in reasons
    assert found["assumptions"]["process_noise"]["status"] == "violated"
    assert found["constants"]["log10_M_needed"] > 100
    assert verdict(experiment, []).startswith("none: ")


def test_where_costs_have_no_bound_no_theorem_applies_and_that_is_said():
    """The cart may be anywhere, so no bound on its cost is known."""
    experiment = experiment_on("cartpole")
    found = certificate(experiment, [record(budget=experiment.task.costs[0].budget)])
    assert found["guarantee"] == "none"
    assert found["delta_spent"] is None
    assert any("the cost of a step of cartpole has no bound" in reason for reason in found["reasons"])
    assert found["constants"]["M"] == experiment.settings.method.samples
    assert found["constants"]["d"] == experiment.task.costs[0].budget
    assert found["events"]["episodes"] == 1
    json.dumps(found, allow_nan=False)
    assert verdict(experiment, []).startswith("none: ")


def test_an_unknown_bound_leaves_gaps_and_not_numbers():
    found = certificate(experiment_on("pendulum", prior="none"), [])
    assert found["constants"]["B"] is None
    assert found["constants"]["beta_1"] is None
    assert found["assumptions"]["rkhs"]["status"] == "not checkable"
    assert "not certified" in found["first_episode"]


@pytest.mark.parametrize("method", METHODS)
def test_only_methods_that_ask_every_sample_are_cautious(method):
    assert METHODS[method].cautious == (method in {"sbsrl", "actsafe", "bonus", "greedy"})


def test_it_is_strict_json_in_the_folder(tmp_path):
    learn("ledge", prior="motor", episodes=2, out=tmp_path / "run")

    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads((tmp_path / "run" / "certificate.json").read_text(), parse_constant=refuse)
    assert found["guarantee"] == "safety"
    assert found["events"]["episodes"] == 3


def test_nothing_is_computed_for_beliefs_that_can_have_no_certificate(cart):
    """Whatever they have learned: they have no confidence sets. All that is known of the run is still told."""
    found = certificate(experiment_on("cart"), [record(ended="fault", reason="a cable")])
    assert found["guarantee"] == "none"
    assert "a belief of the kind 'bootstraps' has no confidence sets." in found["reasons"]
    assert found["assumptions"] == {}
    assert found["constants"] == {
        "M": 4,
        "tightening": [0.05, 0.2],
        "delta": None,
        "B": None,
        "T": 12,
        "d_x": 2,
        "d": [0.5, 4.0],
    }
    assert found["model"]["members"] == 3
    assert found["events"]["faults"] == {0: "a cable"}
    json.dumps(found, allow_nan=False)


def test_parts_say_themselves_what_speaks_against_a_theorem(cart, monkeypatch):
    monkeypatch.setattr(cart.BootstrapSettings, "against_safety", lambda self, task: iter(["a toy proves nothing."]))
    assert "a toy proves nothing." in certificate(experiment_on("cart"), [])["reasons"]


@pytest.mark.parametrize(("prior", "warned"), [("none", True), ("idle", False)])
def test_without_prior_knowledge_the_first_episode_is_warned_of(cart, prior, warned):
    warning = first_episode_warning(experiment_on("cart", prior=prior))
    assert (warning is not None) == warned
    if warned:
        assert "prior 'none': nothing is known of the system, so episode 0 is not certified to be safe" in warning
