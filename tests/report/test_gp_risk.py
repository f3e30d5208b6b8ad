"""The page about promised risks: what it counts, from made-up worlds."""

import csv
import io
import json
from concurrent.futures import Future

import pytest
from scipy.stats import binomtest

from sbsrl.laboratory.drawn_worlds import FURTHER, Line
from sbsrl.report import gp_risk
from sbsrl.report.figures import Request

SHOWN = {"risk/bound": 0.004, "risk/violations": 0.0, "risk/draws": 700.0, "risk/attempts": 1.0, "risk/tightening": 0.1}


EPISODES = gp_risk.EPISODES + 1


def line(risk, seed, episode, safe=True, elsewhere=3):
    metrics = {**SHOWN, **({} if episode else {"elsewhere": elsewhere})} if risk else {}
    phase = "final" if episode == gp_risk.EPISODES else "explore"
    return Line(risk, seed, episode, phase, -300.0 + 40 * episode + seed, 5.0, safe, 3.0 + seed, metrics)


def made_up(violating=()):
    """20 worlds; without a promise two. `violating` are pairs of risk and seed whose first episode violates."""
    worlds = {
        risk: {
            seed: [line(risk, seed, n, (risk, seed) not in violating or n > 0) for n in range(EPISODES)]
            for seed in (range(20) if risk else range(9, 20, gp_risk.FEWER))
        }
        for risk in (*gp_risk.RISKS, gp_risk.NOTHING)
    }
    return gp_risk.Study(worlds)


@pytest.mark.parametrize(("k", "n"), [(0, 20), (3, 20), (20, 20)])
def test_the_interval_is_that_of_scipy(k, n):
    """To 1e-8."""
    exact = binomtest(k, n).proportion_ci(0.95, "exact")
    assert gp_risk.interval(k, n) == pytest.approx((exact.low, exact.high), abs=1e-8)
    assert gp_risk.interval(0, 0) == (0.0, 1.0)


def test_violations_are_counted_by_risk_and_by_episode():
    study = made_up({(0.2, 4), (0.2, 7)})
    assert study.violating(0.2) == (2, 20 * EPISODES)
    assert study.violating(0.2, 0) == (2, 20)
    assert study.violating(0.2, 1) == study.violating(0.05, 0) == (0, 20)
    assert study.elsewhere(0.05) == [3 / FURTHER] * 20


def test_an_expectation_fails_if_more_is_violated_than_was_promised():
    def met(study):
        return {e.expected: e.met for e in gp_risk._expectations(study)}

    first = "risk 0.05: no more than 0.05 of the first episodes violate"
    assert met(made_up({(0.05, 4)}))[first]
    assert not met(made_up({(0.05, 4), (0.05, 5)}))[first]
    too_many = made_up()
    too_many.worlds[0.01][3] = [line(0.01, 3, n, elsewhere=11) for n in range(EPISODES)]
    assert not met(too_many)["risk 0.01: every first policy violates in no more than 0.01 of 1000 further worlds"]


def test_what_was_refused_is_no_episode():
    study = made_up()
    study.worlds[0.01][3] = [Line(0.01, 3, 0, "refused", 0.0, 0.0, True, 0.0, {})]
    assert study.refused(0.01) == 1
    assert study.violating(0.01, 0) == (0, 19)


def test_it_makes_a_picture_a_page_and_every_episode_and_runs_nothing_twice(tmp_path, monkeypatch):
    study, asked = made_up({(0.2, 4)}), []

    def run(home, arm, seed):
        asked.append((arm.label, seed))
        lines = study.worlds[gp_risk._risk(arm)][seed]
        gp_risk._place(home, arm, seed).write_text(json.dumps(lines))

    monkeypatch.setattr(gp_risk, "HOME", tmp_path)
    monkeypatch.setattr(gp_risk, "_finish", run)
    monkeypatch.setattr(gp_risk, "worker_pool", Inline)
    request = Request("gp-risk", seeds=20)
    made = gp_risk.files(request)
    assert set(made) == {"README.md", "episodes.csv", "gp-risk.png"}
    assert len(asked) == 62
    assert "`sbsrl reproduce gp-risk --seeds 20`" in made["README.md"].decode()
    assert "| 0.2 | 0 | 1 of 20 |" in made["README.md"].decode()
    assert len(list(csv.DictReader(io.StringIO(made["episodes.csv"].decode())))) == EPISODES * 62
    assert gp_risk.files(request)["README.md"] == made["README.md"]
    assert len(asked) == 62


class Inline:
    """A pool that works in this process."""

    def __init__(self, count):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *args):
        done = Future()
        done.set_result(function(*args))
        return done


def test_its_arms_can_be_run():
    for arm in gp_risk.arms():
        assert arm.specification(0, "cpu").settings.method.risk == gp_risk._risk(arm)


def test_few_worlds_are_not_compared_with_runs_without_a_promise(tmp_path, monkeypatch):
    """There are none yet: the page says less, and nothing wrong."""
    study = made_up()
    study.worlds[gp_risk.NOTHING].clear()
    expected = [e.expected for e in gp_risk._expectations(study)]
    assert not any("replan" in text for text in expected)
    assert study.arms == list(gp_risk.RISKS)
    assert gp_risk.png(gp_risk.draw(study)).startswith(b"\x89PNG")
