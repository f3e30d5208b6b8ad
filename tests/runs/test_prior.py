"""`sbsrl prior`: what is found, whether episode 0 is feasible, and a file that a run understands."""

import numpy as np
import pytest
import rail

import sbsrl
from sbsrl import UserError
from sbsrl.own.wording import in_words
from sbsrl.runs import make_prior

SMALL = {"episodes": 1, "candidates": 64, "elites": 8, "iterations": 3, "horizon": 6, "features": 32}
KNOWN = {**rail.TASK, **SMALL, "simulator": rail.simulator, "start": [0.0]}


def prior(**changes):
    return make_prior(*in_words(rail, {**KNOWN, **changes}))


def test_a_simulator_makes_a_feasible_prior_that_a_run_understands(tmp_path):
    found = prior()
    assert (
        found.said[-1] == "Episode 0 is feasible: tried from 1 initial state, a first plan is safe on all 30 samples."
    )
    found.knowledge.write(tmp_path / "prior.toml")
    run = sbsrl.learn(rail, prior=str(tmp_path / "prior.toml"), out=tmp_path / "run", **KNOWN)
    assert [record.safe for record in run.records] == [True, True]
    assert (tmp_path / "run" / "prior.toml").read_bytes() == (tmp_path / "prior.toml").read_bytes()


def test_an_edited_prior_is_what_the_run_believes(tmp_path):
    prior().knowledge.write(tmp_path / "prior.toml")
    text = (tmp_path / "prior.toml").read_text()
    (tmp_path / "prior.toml").write_text(text.replace("samples = 30", "samples = 4"))
    run = sbsrl.learn(rail, prior=str(tmp_path / "prior.toml"), **KNOWN)
    assert {record.samples for record in run.records} == {4}


def test_a_simulator_that_cannot_be_traced_is_copied():
    found = prior(simulator=rail.branching)
    assert any("so 3000 of its steps were asked for and fitted" in sentence for sentence in found.said)


def test_a_first_episode_that_is_not_feasible_is_said():
    """The carriage begins beyond its limit."""
    found = prior(start=[3.0])
    assert found.said[-1].startswith("Episode 0 is not feasible: tried from 1 initial state, 1 times no first plan")
    assert "Record more data" in found.said[-1]


def test_without_data_and_simulator_there_is_nothing_to_say():
    changes = {name: value for name, value in KNOWN.items() if name not in {"simulator", "start"}}
    with pytest.raises(UserError, match=r"is made of recorded data \(--data FILE\), or of a simulator"):
        make_prior(*in_words(rail, changes))


def test_a_table_that_a_person_recorded_is_enough(tmp_path):
    rng, lines = np.random.default_rng(1), ["episode,time,place,push"]
    for episode in range(5):
        x = rail.reset(rng)
        for t in range(rail.STEPS):
            push = rng.uniform(-1, 1, 1)
            lines.append(f"{episode},{0.1 * t},{x[0]},{push[0]}")
            x = rail.step(x, push, rng)
    (tmp_path / "rail.csv").write_text("\n".join(lines))
    changes = {name: value for name, value in KNOWN.items() if name not in {"simulator", "start"}}
    found = make_prior(*in_words(rail, {**changes, "data": tmp_path / "rail.csv", "action_names": "push"}))
    assert found.knowledge.source == "Made from 35 recorded transitions of 5 episodes."
    assert found.said[-1].startswith("Episode 0 is feasible: tried from ")
