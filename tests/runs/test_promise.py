"""What a certificate says where a risk was chosen, and of which episodes it does not."""

import pytest

from sbsrl.record import Record
from sbsrl.runs.begin import resume
from sbsrl.runs.certificate import certificate
from sbsrl.runs.promise import promise, promise_in_a_line
from sbsrl.runs.train import train
from sbsrl.specification import Specification


def experiment_on(task, **changes):
    return Specification.make(task, "sbsrl", 0, "cpu", changes).experiment()


@pytest.fixture(scope="module")
def experiment():
    return experiment_on("pendulum", risk=0.05)


SHOWN = {
    "risk/promised": 0.05,
    "risk/bound": 0.02,
    "risk/violations": 2.0,
    "risk/draws": 700.0,
    "risk/attempts": 1.0,
    "risk/tightening": 0.1,
}


def record(episode=0, **metrics):
    return Record(
        episode=episode,
        phase="exploit",
        reward=1.0,
        cost=5.0,
        budget=6.0,
        violation=0.0,
        safe=True,
        feasible=True,
        exploring=False,
        uncertainty=0.0,
        samples=60,
        seconds=0.1,
        metrics={**metrics, "infeasible_plans": 0},
    )


def squares(value, count=150):
    return {"misfit/observations": count, "misfit/squares": value, "misfit/least": 1.0, "misfit/most": 1.0}


def test_without_a_risk_nothing_is_said():
    plain = experiment_on("pendulum")
    assert promise(plain, [record()]) is None
    assert "risk" not in certificate(plain, [record()])


def test_it_says_what_was_shown_of_which_episode(experiment):
    made = promise(experiment, [record(0, **SHOWN), record(1, **SHOWN, **squares(150))])
    assert (made["promised"], made["confidence"], made["not_covered"]) == (0.05, 0.95, [])
    assert [each["episode"] for each in made["episodes"]] == [0, 1]
    assert made["episodes"][0]["bound"] == 0.02
    assert (
        "if the truth is a draw from this belief, an episode violates with probability at most 0.05"
        in made["statement"]
    )
    assert "estimated, Bayesian" in made["statement"]
    assert "probability at most 0.04 (union bound)" in made["statement"]
    assert "says nothing" in made["limits"]


def test_an_episode_that_was_not_promised_anything_is_named(experiment):
    made = promise(experiment, [record(0, **SHOWN), record(1)])
    assert made["not_covered"] == [1]
    assert "nothing is promised of 1 episodes" in promise_in_a_line(made)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (squares(150), "nothing speaks against the belief"),
        (squares(400), "too sure of itself, do not rely on the promise"),
        (squares(10), "more careful than it need be"),
        ({}, "not known"),
    ],
)
def test_next_to_it_stands_how_the_data_compare_with_the_belief(experiment, seen, said):
    made = promise(experiment, [record(0, **SHOWN, **seen)])
    assert said in made["calibration"]
    assert said in promise_in_a_line(made)


def test_of_the_policies_of_a_class_it_is_the_expected_cost():
    ledge = experiment_on("ledge", risk=0.05)
    assert "expected cost beyond its budget" in promise(ledge, [record(0, **SHOWN)])["statement"]


def test_before_the_first_episode_nothing_was_played(experiment):
    made = promise(experiment, [])
    assert "no episode was played" in made["statement"]
    assert promise_in_a_line(made) == "nothing was played under the promise"


def test_the_certificate_has_it(experiment):
    found = certificate(experiment, [record(0, **SHOWN)])
    assert found["risk"] == promise(experiment, [record(0, **SHOWN)])
    assert found["guarantee"] == "none"


SMALL = {
    "risk": 0.4,
    "confidence": 0.9,
    "episodes": 1,
    "icem.candidates": 32,
    "icem.elites": 4,
    "icem.iterations": 2,
    "gp.features": 32,
    "exploration_threshold": 0.0,
}


def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(tmp_path, interrupts, left):
    """Policies, what draws showed of them, and what was learned: bit for bit; every episode of it is promised."""
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", SMALL)
    made = train(spec, tmp_path / "whole").view.certificate["risk"]
    assert made["not_covered"] == []
    assert [each["episode"] for each in made["episodes"]] == [0, 1]
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "parts", interrupts(steps=70))
    resume(tmp_path / "parts")
    assert left(tmp_path / "parts") == left(tmp_path / "whole")
