"""Exact resume: however a run stopped, it ends as if it had not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sbsrl import OfflineData, RunFolder, UserError, collect, learn, make_task, resume
from sbsrl.runs import train as run_spec
from sbsrl.runs.certificate import certificate
from sbsrl.runs.config import make_config
from sbsrl.specification import Specification


def ledger(folder: Path) -> list[dict]:
    """All lines without the time they took."""
    lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.fixture
def reference(tiny, tmp_path):
    learn("pendulum", **tiny, out=tmp_path / "reference")
    return ledger(tmp_path / "reference")


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tiny, tmp_path, reference):
    learn("pendulum", **tiny, out=tmp_path / "again")
    learn("pendulum", **tiny, seed=1, out=tmp_path / "other")
    assert ledger(tmp_path / "again") == reference
    assert ledger(tmp_path / "other") != reference


@pytest.mark.parametrize("steps", [20, 50, 73, 149])
def test_an_interrupted_run_resumes_exactly(tiny, tmp_path, reference, steps, interrupts):
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", tiny)
    with pytest.raises(KeyboardInterrupt):
        run_spec(spec, tmp_path / "run", interrupts(steps))
    assert len(ledger(tmp_path / "run")) == steps // 50 - (steps == 50)
    resume(tmp_path / "run")
    assert ledger(tmp_path / "run") == reference


def test_trajectories_are_resumed_exactly_too(tiny, tmp_path, interrupts):
    learn("pendulum", **tiny, out=tmp_path / "whole")
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", tiny)
    with pytest.raises(KeyboardInterrupt):
        run_spec(spec, tmp_path / "parts", interrupts(60))
    resume(tmp_path / "parts")
    for episode in range(3):
        whole, parts = (RunFolder.open(tmp_path / name).trajectory(episode).episode for name in ("whole", "parts"))
        assert all(np.array_equal(a, b) for a, b in zip(whole[:4], parts[:4], strict=True))
        assert (whole.ended, whole.reason) == (parts.ended, parts.reason) == ("horizon", "")


@pytest.fixture
def taught(tiny, tmp_path):
    """Settings of a run that starts from 60 transitions in a file, and asks for more than is left to learn."""
    collect(make_task("pendulum"), "wander", 60).save(tmp_path / "data.npz")
    return {**tiny, "episodes": 1, "data": str(tmp_path / "data.npz"), "exploration_threshold": 1750.0}


def test_a_run_keeps_the_data_that_it_starts_from_and_resumes_without_their_file(taught, tmp_path, interrupts):
    """60 transitions and an episode are known in the end; that little is left to learn is told once."""
    whole = learn("pendulum", **taught, out=tmp_path / "whole")
    assert int(whole.learner.belief.count) == 60 + 50
    observer = interrupts(73)
    with pytest.raises(KeyboardInterrupt):
        run_spec(Specification.make("pendulum", "sbsrl", 0, "cpu", taught), tmp_path / "run", observer)
    assert [note.split(":")[0] for note in observer.notes] == ["the exploration threshold, 1750, is out of reach"]
    own = RunFolder.open(tmp_path / "run").data
    assert own.name == "offline.npz"
    assert own.read_bytes() == (tmp_path / "data.npz").read_bytes()
    (tmp_path / "data.npz").unlink()
    quiet = interrupts(1000)
    resume(tmp_path / "run", quiet)
    assert quiet.notes == []
    assert ledger(tmp_path / "run") == ledger(tmp_path / "whole")


def test_a_run_whose_own_data_are_lost_is_not_resumed(taught, tmp_path):
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", taught)
    with RunFolder.create(tmp_path / "run", make_config(spec, spec.make_task())):
        pass
    with pytest.raises(UserError, match=r"offline.npz cannot be read as offline data"):
        resume(tmp_path / "run")


def test_more_data_are_more_knowledge_from_the_start(tiny, tmp_path):
    data = collect(make_task("pendulum"), "scatter", 25)
    data.save(tmp_path / "data.npz")
    counts = [
        int(Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, **more}).start()[1].belief.count)
        for more in ({}, {"data": str(tmp_path / "data.npz")})
    ]
    assert counts == [0, 25]
    assert OfflineData.load(tmp_path / "data.npz").behaviour == "scatter"


ON_ONE_CORE = [
    sys.executable,
    "-c",
    "import os, runpy; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    "runpy.run_module('sbsrl', run_name='__main__')",
]


def test_a_killed_process_resumes_exactly(tiny_flags, tmp_path):
    """kill -9 at a moment that nobody chose, then `sbsrl resume`, against an uninterrupted run on a single core."""
    program = [sys.executable, "-m", "sbsrl"]
    flags = ["train", "pendulum", *tiny_flags, "--set", "episodes=4"]
    killed = tmp_path / "killed"
    process = subprocess.Popen([*program, *flags, "--out", killed], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (killed / "episodes.jsonl").exists() or len(ledger(killed)) < 2:
        assert time.monotonic() < deadline, "the run did not get to its second episode"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(ledger(killed)) < 5, "the run was over before it could be killed"
    whole = subprocess.Popen([*ON_ONE_CORE, *flags, "--out", tmp_path / "whole"], stdout=subprocess.DEVNULL)
    subprocess.run([*program, "resume", killed], check=True, capture_output=True)
    assert whole.wait(120) == 0
    assert ledger(killed) == ledger(tmp_path / "whole")


def test_resuming_a_finished_run_changes_nothing(tiny, tmp_path, reference):
    resume(tmp_path / "reference")
    assert ledger(tmp_path / "reference") == reference


def test_a_lost_certificate_is_written_again(tiny, tmp_path):
    learn("pendulum", **{**tiny, "episodes": 1}, out=tmp_path / "run")
    (tmp_path / "run" / "certificate.json").unlink()
    resume(str(tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "certificate.json").read_text())["events"]["episodes"] == 2


def test_the_configuration_is_complete(tiny, tmp_path):
    spec = Specification.make("pendulum", "greedy", 7, "smoke", {**tiny, "episodes": 1})
    run_spec(spec, tmp_path / "run")
    config = RunFolder.open(tmp_path / "run").config
    assert (config["task"], config["method"], config["seed"], config["preset"]) == ("pendulum", "greedy", 7, "smoke")
    assert set(config["settings"]) == {"run", "task", "method", "belief", "solver"}
    assert config["settings"]["method"]["samples"] == 3
    assert (config["settings"]["solver"]["name"], config["settings"]["solver"]["decay"]) == ("icem", 1.25)
    assert config["system"]["horizon"] == 50
    assert {"sbsrl", "jax", "python", "gymnasium"} <= set(config["versions"])


def test_the_certificate_claims_nothing_and_counts(tiny, tmp_path):
    learn("pendulum", **tiny, prior="none", out=tmp_path / "run")
    claims = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert claims["guarantee"] == "none"
    assert "not certified" in claims["first_episode"]
    assert claims["events"]["episodes"] == 3


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range_are_refused(seed):
    with pytest.raises(UserError, match=r"seed=.* is out of range"):
        learn("pendulum", seed=seed)


def test_a_configuration_of_another_version_is_explained(tiny, tmp_path):
    learn("pendulum", **{**tiny, "episodes": 1}, out=tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    config["settings"]["solver"]["colour_of_the_sky"] = "blue"
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"config.json: there is no setting 'solver.colour_of_the_sky'"):
        resume(tmp_path / "run", insist=True)
    del config["settings"]["solver"]["colour_of_the_sky"]
    episodes = config["settings"]["run"].pop("episodes")
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"config.json: there is no run.episodes; restore it"):
        resume(tmp_path / "run", insist=True)
    config["settings"]["run"]["episodes"] = episodes
    del config["settings"]["solver"]
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match="does not fit this version"):
        resume(tmp_path / "run", insist=True)


def test_the_certificate_says_that_calibration_is_violated(tiny):
    result = learn("pendulum", **tiny)
    doubt = "the calibration assumption is violated at episode 1: ..."
    doubted = [result.records[0], *(r._replace(calibration_warning=doubt) for r in result.records[1:])]
    for records, says in ((result.records, "not contradicted by the data"), (doubted, doubt)):
        assert certificate(result.experiment, records)["model"]["calibration"] == says


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": "truncated"},
        {"sampler": "particles"},
        {"fitted": True},
        {"uncertainty": "deviation", "estimator": "orthogonal", "exploration_threshold": 0.1},
    ],
    ids=lambda changes: next(iter(changes)) + "=" + str(next(iter(changes.values()))),
)
def test_every_kind_of_belief_can_be_chosen(changes, tiny):
    result = learn("pendulum", **{**tiny, "episodes": 1, **changes})
    assert [r.phase for r in result.records][-1] == "final"
    assert np.all(np.isfinite([(r.reward, r.cost, r.uncertainty) for r in result.records]))
    assert int(result.learner.belief.count) == 50
