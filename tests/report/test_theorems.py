"""The report of the laboratory, from the runs to the files; one small run serves all tests."""

import csv
import io
import json
import math

import matplotlib.image
import numpy as np
import pytest

from sbsrl.laboratory.expansion import Expansion
from sbsrl.laboratory.intervals import Frequency
from sbsrl.laboratory.world import World
from sbsrl.report.figures import Request
from sbsrl.report.theorems import SIZES, Size, draw_expansion, files
from sbsrl.settings import PRESETS

SMALL = World("motor", epsilon=2.0, episodes=400)
RUNS = 2


@pytest.fixture(scope="module")
def made():
    """The files and what was said meanwhile."""
    said, shares = [], []
    request = Request("theorems", preset="smoke", seeds=RUNS, workers=1, say=said.append, progress=shares.append)
    return files(request, Size((SMALL,), 99, 100, 20, SMALL)), said, shares


def test_progress_is_told_after_every_run(made):
    assert made[2] == pytest.approx([0.45, 0.9])


def refuse(name):
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture(scope="module")
def content(made):
    return json.loads(made[0]["theorems.json"], parse_constant=refuse)


@pytest.fixture(scope="module")
def runs(made):
    return list(csv.DictReader(io.StringIO(made[0]["runs.csv"].decode())))


def test_no_claim_fails(content):
    """Of two runs no frequency can be shown, but any could be refuted."""
    (world,) = content["worlds"]
    assert len(world["claims"]) == 10
    assert {claim["verdict"] for claim in world["claims"]} <= {"holds", "consistent"}
    assert not any(claim["contradicted"] for claim in world["claims"])


def test_nothing_violates_but_the_control(content, runs):
    """Both truths are the strongest motor that B allows."""
    assert len(runs) == RUNS
    for run in runs:
        assert run["weights"] == "[1.0]"
        assert int(run["violating_episodes"]) == int(run["unsafe_members"]) == int(run["missed"]) == 0
        assert float(run["largest_cost"]) <= SMALL.budget
        assert run["terminated"] == run["feasible"] == run["calibrated"] == "True"
        assert int(run["episodes"]) > 10
        assert run["control_violates"] == "True"
    (world,) = content["worlds"]
    assert world["control_violates"] == {"hits": RUNS, "trials": RUNS}


def test_the_numbers_are_complete_and_are_numbers(content):
    (world,) = content["worlds"]
    constants = world["constants"]
    assert (constants["M"], constants["policies"], constants["epsilon"]) == (30, 99, 2.0)
    assert constants["Delta"] > constants["Delta_zeta"] > 0
    assert constants["n_bar"] > 400
    assert world["closeness"]["some"]["trials"] == 100
    assert world["closeness"]["single"]["trials"] == 3000
    assert len(content["coverage"]) == 24
    for line in content["coverage"]:
        assert line["covered"]["trials"] == 20
        assert math.isfinite(line["width"])
        if line["convention"] == "corrected":
            assert line["covered"]["hits"] >= 18


def test_the_readme_tells_it_all(made, content):
    """Every claim with its verdict, the command, the tables."""
    readme = made[0]["README.md"].decode()
    assert f"`sbsrl reproduce theorems --seeds {RUNS} --preset smoke`" in readme
    assert f"In all, 0 of {RUNS} runs of Algorithm 1 played a policy that violates." in readme
    assert "## motor, B = 1: 2 runs" in readme
    (world,) = content["worlds"]
    for claim in world["claims"]:
        assert f"| {claim['theorem']} | {claim['promised']} | {claim['measured']} | {claim['verdict']} |" in readme
    assert readme.count("| SquaredExponential |") == readme.count("| Linear |") == 12
    assert "![safe set over episodes](safe_set_expansion.png)" in readme
    assert "FAILS |" not in readme
    assert "{" not in readme.replace("{*,c}", "")  # nothing was left unfilled


def test_it_says_what_it_finds_while_it_goes(made, content):
    said = "\n".join(made[1])
    assert "motor, B = 1: 2 runs of Algorithm 1" in said
    for claim in content["worlds"][0]["claims"]:
        assert claim["theorem"] in said
    assert said.count("too narrow") > 0


def test_the_picture_is_one(made):
    pixels = matplotlib.image.imread(io.BytesIO(made[0]["safe_set_expansion.png"]))
    assert pixels.shape[0] > 500
    assert pixels.shape[1] > 1000
    assert pixels[..., :3].std() > 0.1


def sets(**changes):
    """Two snapshots of a set of three by two policies."""
    known = {
        "push": np.array([0.0, 1.0, 2.0]),
        "spring": np.array([0.0, 1.0]),
        "episodes": [0, 7],
        "safe": [np.eye(3, 2, dtype=bool), np.ones((3, 2), bool)],
        "costs": np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]),
        "budget": 2.5,
        "margin": 0.5,
        "reachable": np.zeros((3, 2), bool),
        "played": [[0.0, 0.0]],
        "final": [1.0, 1.0],
    }
    return Expansion(**{**known, **changes})


@pytest.mark.parametrize("budget", [2.5, 10.0])
def test_sets_of_any_shape_can_be_drawn(budget):
    """Also where all is safe, and where nothing is reachable."""
    assert draw_expansion({"one": sets(budget=budget)}).startswith(b"\x89PNG")


def test_each_preset_has_its_size_and_worlds_that_can_be_told_apart():
    assert SIZES.keys() == PRESETS.keys()
    for size in SIZES.values():
        names = [(world.ground, world.bound) for world in size.worlds]
        assert len(set(names)) == len(names)
    assert SIZES["smoke"].runs < SIZES["cpu"].runs < SIZES["paper"].runs


def test_with_as_many_runs_as_the_preset_has_no_failure_is_enough_for_every_claim():
    """Else a claim could never hold: 0 of 80 must be below delta."""
    for preset in ("cpu", "paper"):
        size = SIZES[preset]
        assert all(Frequency(0, size.runs).interval()[1] <= world.delta for world in size.worlds)
