"""The numbers of a comparison, computed by hand from made-up episodes."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from sbsrl.report import comparison as module
from sbsrl.report.comparison import Comparison, compare, markdown_table, page
from sbsrl.report.figures import Request
from sbsrl.runs.study import Arm
from sbsrl.runs.view import Reference

FAST, SLOW = Arm("fast", "pendulum", "sbsrl"), Arm("slow, and unsafe", "pendulum", "greedy", (("samples", 5),))


@pytest.fixture
def compared(record):
    """Two seeds of three training episodes and a final one. Idle is -500 and the oracle -200: 300 is all there is."""

    def run(rewards, costs=(5.0, 5.0, 5.0, 5.0), plans=(0, 0, 0, 0), seconds=1.0):
        phases = ("explore", "exploit", "exploit", "final")
        return [
            record(n, phase, reward, cost, metrics={"infeasible_plans": bad}, seconds=seconds)
            for n, (phase, reward, cost, bad) in enumerate(zip(phases, rewards, costs, plans, strict=True))
        ]

    runs = {
        FAST: [run((-500.0, -230.0, -200.0, -200.0)), run((-350.0, -231.0, -215.0, -170.0), seconds=4.0)],
        SLOW: [
            run((-500.0, -500.0, -380.0, -260.0), (7.0, 5.0, 6.25, 8.0), (1, 2, 0, 7)),
            run((-500.0, -440.0, -350.0, -200.0), (6.0, 5.0, 6.5, 5.0)),
        ],
    }
    return Comparison(runs, {"pendulum": Reference(-500.0, -200.0)}, (4, 5))


def test_returns_are_normalised_and_the_final_policy_is_not_training(compared):
    np.testing.assert_allclose(compared.returns(FAST), [[0, 0.9, 1], [0.5, 269 / 300, 0.95]])
    np.testing.assert_allclose(compared.cumulative(FAST), [1.9 / 3, (0.5 + 269 / 300 + 0.95) / 3])
    np.testing.assert_allclose(compared.final(FAST), [1, 1.1])


def test_costs_are_of_training_and_the_worst_violation_of_all_episodes(compared):
    np.testing.assert_array_equal(compared.costs(SLOW), [[7, 5, 6.25], [6, 5, 6.5]])
    np.testing.assert_array_equal(compared.worst(SLOW), [2, 0.5])
    np.testing.assert_array_equal(compared.worst(FAST), [0, 0])


def test_learned_is_the_first_training_episode_with_nine_tenths(compared):
    """-230 is just enough and -231 is not; the slow one never gets there, and its final policy does not count."""
    assert compared.learned(FAST) == [1, 2]
    assert compared.learned(SLOW) == [None, None]
    np.testing.assert_array_equal(compared.episodes_until(FAST, compared.learned(FAST)), [2, 3])
    np.testing.assert_array_equal(compared.episodes_until(SLOW, compared.learned(SLOW)), [4, 4])


@pytest.mark.parametrize(
    ("rewards", "learned", "settled"),
    [
        ((-200.0, -300.0, -200.0, -200.0), 0, 2),
        ((-200.0, -200.0, -200.0, -300.0), 0, 0),
        ((-300.0, -200.0, -300.0, -200.0), 1, None),
    ],
)
def test_settled_is_to_have_learned_for_good(record, rewards, learned, settled):
    """Three training episodes and a final one, which does not count."""
    run = [record(n, "final" if n == 3 else "exploit", reward) for n, reward in enumerate(rewards)]
    compared = Comparison({FAST: [run]}, {"pendulum": Reference(-500.0, -200.0)}, (0,))
    assert compared.learned(FAST) == [learned]
    assert compared.settled(FAST) == [settled]


def test_infeasible_plans_are_a_share_of_all_plans(compared):
    """Ten of four episodes of 50 steps."""
    np.testing.assert_allclose(compared.infeasible(SLOW), [5, 0])


def test_an_episode_that_ended_early_has_no_more_plans_than_steps(record):
    """One of 50 + 30 plans."""
    run = [record(0, metrics={"infeasible_plans": 1}, steps=30, ended="terminated"), record(1, "final")]
    compared = Comparison({FAST: [run]}, {"pendulum": Reference(-500.0, -200.0)}, (0,))
    np.testing.assert_allclose(compared.infeasible(FAST), [100 / 80])


def test_the_file_has_a_line_for_each_episode_and_can_be_read_back(compared):
    lines = list(csv.DictReader(io.StringIO(compared.csv().decode())))
    records = [(arm, r) for arm in (FAST, SLOW) for r in compared.records(arm)]
    assert len(lines) == len(records) == 16
    for line, (arm, r) in zip(lines, records, strict=True):
        assert (line["label"], line["task"], line["method"]) == (arm.label, arm.task, arm.method)
        assert (int(line["episode"]), line["phase"], line["safe"]) == (r.episode, r.phase, str(r.safe))
        assert (float(line["reward"]), float(line["cost"])) == (r.reward, r.cost)
        assert (int(line["infeasible_plans"]), int(line["steps"])) == (r.infeasible_plans, 50)
        np.testing.assert_allclose(float(line["normalised"]), (r.reward + 500) / 300, atol=1e-5)
    assert {line["changes"] for line in lines} == {"", "samples=5"}
    assert [line["seed"] for line in lines] == (["4"] * 4 + ["5"] * 4) * 2


def test_the_table_has_a_line_for_each_arm(compared):
    head, rule, fast, slow = markdown_table(compared, [FAST, SLOW]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, rule, fast, slow)]
    assert {len(line) for line in cells} == {9}
    assert set(cells[1]) == {"---"}
    assert cells[2][0] == "fast"
    assert cells[2][2].startswith("1.050 ± 0.050")
    assert cells[2][3:] == ["1, 2", "1, 2", "0 of 8", "0.000", "0", "4 to 16"]
    assert cells[3][3:8] == ["-, -", "-, -", "4 of 8", "2.000", "10"]


def test_the_page_says_how_it_was_made(compared):
    request = Request("gp-safety", preset="smoke")
    text = page(request, compared, {"pendulum": [FAST, SLOW]}, "Who is fast", "Words.").decode()
    assert text.startswith("# Who is fast\n\n![Who is fast](gp-safety.png)\n")
    assert f"Made by `{request.command}` with python " in text
    assert f", jax {jax.__version__}, " in text
    assert ". Words." in text
    assert "## pendulum, 2 seeds" in text
    assert "(-500.0)" in text
    assert "(-200.0" in text
    assert markdown_table(compared, [FAST, SLOW]) in text


def test_every_arm_is_run_once_with_every_seed_and_every_task_has_an_oracle(monkeypatch):
    asked, oracles = [], []

    def run_study(arms, seeds, preset, home, workers, progress):
        asked.append((list(arms), list(seeds), preset, workers))
        return {}

    def reference(task, preset):
        oracles.append((task, preset))
        return Reference(-1.0, 0.0)

    monkeypatch.setattr(module, "run_study", run_study)
    monkeypatch.setattr(module, "_reference", reference)
    monkeypatch.setattr(module, "worker_pool", ThreadPoolExecutor)
    other = Arm("other", "ledge", "sbsrl")
    found = compare(Request("gp-safety", seed=3, seeds=2, preset="smoke"), {"a": [FAST, other], "b": [SLOW, FAST]})
    compare(Request("gp-safety"), {"a": [FAST]})
    compare(Request("gp-safety", preset="smoke"), {"a": [SLOW]})
    assert asked == [
        ([FAST, other, SLOW], [3, 4], "smoke", 1),
        ([FAST], [0, 1, 2, 3, 4], "cpu", 1),
        ([SLOW], [0], "smoke", 1),
    ]
    assert oracles == [("pendulum", "smoke"), ("ledge", "smoke"), ("pendulum", "cpu"), ("pendulum", "smoke")]
    assert list(found.references) == ["pendulum", "ledge"]
