"""Every example runs, is as short as the documentation says, and what a researcher adds is found by its name."""

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import sbsrl
from sbsrl import UserError

EXAMPLES = Path(__file__).parents[1] / "examples"
SYSTEMS = ("pendulum_speed", "cart_bound", "heater_model", "heater_csv")


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    """As if the program had been started in the folder of the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(EXAMPLES)


def code_lines(name):
    """Lines of code, without the page's docstring and blank ones."""
    text = (EXAMPLES / f"{name}.py").read_text()
    begin = ast.parse(text).body[0].end_lineno
    return [line for line in text.splitlines()[begin:] if line.strip()]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_takes_fifteen_lines_at_most(name):
    assert len(code_lines(name)) <= 15


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_learned_safely(name, tmp_path):
    """One planned episode and the final policy, with a small planner: what five seeds do is in results/own-systems."""
    module = __import__(name)
    real = sbsrl.learn
    small = {"candidates": 64, "elites": 8, "iterations": 3, "features": 64, "method.samples": 8}

    def briefly(system, **options):
        return real(system, **{**options, **small, "episodes": 1, "steps": 25})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sbsrl, "learn", briefly)
        run = module.learn(out=tmp_path / "run", seed=1)
    assert [record.phase for record in run.records if record.episode >= 0][-1] == "final"
    assert all(record.safe for record in run.records)


class TestResearch:
    """A method, a solver and a belief of one's own, chosen by module:name."""

    @pytest.mark.parametrize(
        ("method", "parts"),
        [
            ("own_method:METHOD", {}),
            ("sbsrl", {"solver": "own_solver:ShootingSettings", "shots": 64, "exploration_threshold": 0.0}),
            ("sbsrl", {"belief": "own_belief:LinearSettings"}),
        ],
        ids=["method", "solver", "belief"],
    )
    def test_it_runs_to_the_end_and_is_found_again(self, method, parts, tiny, tmp_path):
        if "solver" in parts:
            tiny = {name: tiny[name] for name in ("episodes", "samples", "features")}
        if "belief" in parts:
            tiny.pop("features")
        run = sbsrl.learn("pendulum", method, out=tmp_path / "run", **tiny, **parts)
        assert run.records[-1].phase == "final"
        again = sbsrl.load(run.folder)
        assert len(again.records) == len(run.records)
        assert sbsrl.resume(run.folder).records == run.records

    def test_the_budget_of_the_method_opens_slowly(self):
        from own_method import patient

        from sbsrl.learner import Learner, context_of
        from sbsrl.specification import Specification

        experiment = Specification.make("pendulum", "own_method:METHOD", 0, "smoke", {}).experiment()
        context = context_of(experiment, Learner.create(experiment, 0))
        first, later = (float(patient(replace(context, episode=n)).bounds[0]) for n in (0, 3))
        assert first == pytest.approx(0.8 * 5.9, rel=1e-6)
        assert later == pytest.approx(0.975 * 5.9, rel=1e-6)

    @pytest.mark.parametrize(
        ("choice", "said"),
        [
            (
                {"method": "own_method:patient"},
                r"^the method own_method:patient is a function; make it a sbsrl.methods.Method",
            ),
            ({"method": "nowhere:METHOD"}, r"^the method nowhere:METHOD: there is no module 'nowhere'"),
            ({"solver": "own_solver:Shooting"}, r"must be a dataclass of settings with name = 'own_solver:Shooting'"),
            ({"belief": "own_belief:Nothing"}, r"^the belief own_belief:Nothing: own_belief has no 'Nothing'; it has "),
        ],
    )
    def test_what_is_no_such_part_is_explained(self, choice, said):
        with pytest.raises(UserError, match=said):
            sbsrl.learn("pendulum", **choice)


def test_the_recording_is_what_its_script_makes(tmp_path, monkeypatch):
    module = __import__("record_heater")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "record_heater.py"))
    module.main()
    assert (tmp_path / "heater.csv").read_text() == (EXAMPLES / "heater.csv").read_text()
    assert "heater_plant" in sys.modules
