"""Runs with networks: an offline phase, then episodes; killed anywhere they end as if they had not been."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
import slider

from sbsrl import UserError, learn, resume
from sbsrl.belief.ensemble.belief import EnsembleBelief
from sbsrl.learner import context_of
from sbsrl.loop import algorithm_1, prepared
from sbsrl.offline import collect
from sbsrl.runs import train
from sbsrl.runs.folder import RunFolder
from sbsrl.runs.shared_phase import SharedPhase
from sbsrl.runs.train import Unobserved
from sbsrl.solve.gradient.settings import GradientSettings
from sbsrl.solve.network.solver import NetworkSolver
from sbsrl.solve.protocol import Preparing
from sbsrl.specification import Specification

METHODS = ("sbsrl", "mean")


@pytest.fixture(scope="module", autouse=True)
def known():
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory, left):
    """The run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return train(Specification.make("slider", "sbsrl", 0, "cpu", {}), folder), folder, left(folder)


def test_it_learns_offline_then_plays_what_passed_its_check(whole):
    result, folder, _ = whole
    assert [record.phase for record in result.records] == ["exploit"] * 3 + ["final"]
    offline = json.loads((folder / "offline.json").read_text())
    assert offline["belief/model_updates"] > 0
    for record in result.records:
        assert record.feasible == (record.metrics["worst_sample"] <= record.budget) or record.metrics["origin"] > 0
        assert {"checks", "origin", "predicted_return", "multiplier"} <= set(record.metrics)
    for record in result.records[:-1]:
        assert {"kappa", "covered", "predicted_most", "state_ratio"} <= set(record.metrics)
    assert bool(result.learner.prepared)


def test_the_first_episode_goes_on_from_exactly_what_was_learned_offline(monkeypatch):
    """Belief and solver as the first problem sees them are those of the offline phase, to the last bit."""
    experiment, learner = Specification.make("slider", "sbsrl", 0, "cpu", {}).start()
    ready, _ = prepared(experiment, learner)
    seen = {}

    class Stop(Exception):  # noqa: N818
        pass

    def solve(self, problem, state, key):
        seen["solver"] = state
        raise Stop

    def samples(self, key, count):
        seen["belief"] = self
        return drawn(self, key, count)

    drawn = EnsembleBelief.samples
    monkeypatch.setattr(NetworkSolver, "solve", solve)
    monkeypatch.setattr(EnsembleBelief, "samples", samples)
    with pytest.raises(Stop):
        next(algorithm_1(experiment, learner, lambda policy, turn: None))
    for name in ("belief", "solver"):
        found, kept = (jax.tree.leaves(eqx.filter(each, eqx.is_array)) for each in (seen[name], getattr(ready, name)))
        assert len(found) == len(kept) > 10
        for one, other in zip(found, kept, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_offline_episodes_stay_in_the_replay(whole):
    replay = whole[0].learner.belief.replay
    assert (int(replay.episodes), int(replay.new.sum())) == (12 + 3, 3)


PROGRAM = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import slider
slider.register()
from sbsrl import loop
from sbsrl.runs import folder as folders, train
from sbsrl.solve.network.solver import NetworkSolver
from sbsrl.solve.protocol import Preparing
from sbsrl.specification import Specification

def killed_before(owner, name, when):
    function, calls = getattr(owner, name), []
    def instead(*args, **options):
        calls.append(1)
        if len(calls) == when:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)
    setattr(owner, name, instead)

killed_before({owner}, {name!r}, {when})
train(Specification.make("slider", "sbsrl", 0, "cpu", {{}}), {out!r})
"""

MOMENTS = {
    "in the offline phase": ("folders.RunFolder", "save_offline", 1),
    "after the offline phase": ("folders.RunFolder", "keep", 1),
    "between a trajectory and its line": ("folders.RunFolder", "add", 2),
    "in the second episode": ("loop", "_updated", 2),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_process_resumes_exactly(moment, whole, tmp_path, left):
    owner, name, when = MOMENTS[moment]
    out = tmp_path / "run"
    tests = str(Path(slider.__file__).parent)
    source = PROGRAM.format(tests=tests, owner=owner, name=name, when=when, out=str(out))
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    resume(out)
    assert left(out) == whole[2]


AC = {"updates": 3, "first_fit": 3, "rollouts": 2, "critic_updates": 2, "cloning_updates": 100}
PIECES = {"pieces": 5, "radius": 0.2, "recent": 0.75, "solver.units": "quantiles", "ensemble.units": "quantiles"}
WAYS = {
    "mean": ("mean", {}),
    "mbpo": ("mbpo", {}),
    "sooper": ("sooper", {}),
    "actsafe": ("actsafe", {"actsafe_episodes": 1}),
    "monitor": ("sbsrl", {"monitor": 5}),
    "sooper under watch": ("sooper", {"monitor": 5}),
    "actor-critic": ("sbsrl", {"solver": "actor-critic", **AC}),
    "sooper with the actor-critic": ("sooper", {"solver": "actor-critic", **AC}),
    "pieces": ("sbsrl", {"segment": 5, "test_steps": 5, **PIECES}),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_methods_resume_exactly(way, tmp_path, left, monkeypatch):
    """Stopped after two of three episodes, and gone on with by a fresh learner from the checkpoint."""
    method, changes = WAYS[way]
    hasty = {"offline_updates": 50, "offline_blocks": 1, "checks": 1, **changes}
    spec = Specification.make("slider", method, 0, "cpu", hasty)
    train(spec, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "add", stopping(RunFolder.add, 2))
        with pytest.raises(KeyboardInterrupt):
            train(spec, tmp_path / "stopped")
    resume(tmp_path / "stopped")
    assert left(tmp_path / "stopped") == left(tmp_path / "whole")
    assert len(left(tmp_path / "whole").ledger) == 4


def stopping(function, calls):
    """The function, which is interrupted after so many calls."""
    count = 0

    def instead(*args, **options):
        nonlocal count
        found = function(*args, **options)
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        return found

    return instead


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"task": "pendulum", "monitor": 5}, "monitor=5 hands over to a prior policy, and solver=icem makes none"),
        ({"task": "pendulum", "method": "sooper"}, "sooper hands over to a prior policy, and solver=icem makes none"),
        ({"task": "pendulum", "method": "mbpo"}, "mbpo and sooper follow another network at each step, and belief=gp"),
        (
            {"task": "pendulum", "solver": "gradient", "method": "sooper"},
            "sooper hands over to a prior policy, which solver=gradient makes of offline data, and pendulum has none",
        ),
    ],
)
def test_without_a_prior_policy_nothing_can_be_handed_over_to_it(changes, complaint):
    asked = {"method": "sbsrl", **changes}
    with pytest.raises(UserError, match=f"^{complaint}"):
        learn(asked.pop("task"), asked.pop("method"), **asked)


class Elder:
    """A solver of somebody else, which was written before there were monitors."""

    def __init__(self, solver):
        self.init, self.prepare, self.learned, self.solve = solver.init, solver.prepare, solver.learned, solver.solve


def test_a_solver_that_knows_no_way_out_keeps_its_offline_phase_and_has_no_monitor(monkeypatch):
    create = GradientSettings.create
    monkeypatch.setattr(GradientSettings, "create", lambda choices, task: Elder(create(choices, task)))
    experiment = Specification.make("slider", "sbsrl", 0, "cpu", {}).experiment()
    assert isinstance(experiment.solver, Preparing)
    with pytest.raises(UserError, match="solver=gradient does not say to which"):
        Specification.make("slider", "sbsrl", 0, "cpu", {"monitor": 5}).experiment()


def test_runs_that_share_an_offline_seed_share_what_was_learned_offline_exactly(tmp_path):
    """Seed and method are those of the run; the state that it starts from is that of the offline seed."""
    started = []
    for method, seed in (("sbsrl", 1), ("unsafe", 3)):
        folder = tmp_path / method
        learn("slider", method, seed=seed, offline_seed=7, episodes=1, out=folder)
        started.append(numbers_of(folder))
    assert started[0] == started[1]
    alone = learn("slider", seed=7, episodes=1, out=tmp_path / "alone")
    assert numbers_of(tmp_path / "alone") == started[0]
    assert alone.records


def numbers_of(folder):
    """What the offline phase reported, but for how long it took."""
    return {k: v for k, v in json.loads((folder / "offline.json").read_text()).items() if k != "seconds"}


def test_a_phase_that_was_done_before_is_not_done_again_and_changes_nothing(tmp_path, monkeypatch):
    """The same run alone, and after another method had the phase. A damaged one is done again."""
    spec = {
        method: Specification.make("slider", method, 2, "cpu", {"offline_seed": 7, "episodes": 1}) for method in METHODS
    }
    shared = SharedPhase(tmp_path / "slider-7")
    alone = train(spec["sbsrl"], tmp_path / "alone")
    train(spec["mean"], tmp_path / "first", shared=shared)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["sbsrl.runs.train"], "prepared", lambda *_: pytest.fail("it was done before"))
        after = train(spec["sbsrl"], tmp_path / "after", shared=shared)
    for one, other in zip(alone.records, after.records, strict=True):
        assert one._replace(seconds=0.0) == other._replace(seconds=0.0)
    assert numbers_of(tmp_path / "alone") == numbers_of(tmp_path / "after")
    for file in (tmp_path / "slider-7").glob("*.safetensors"):
        file.write_bytes(b"broken")
    again = train(spec["sbsrl"], tmp_path / "again", shared=shared)
    assert again.records[0].reward == alone.records[0].reward


def test_a_policy_of_a_run_is_called_with_an_observation(whole):
    result, _, _ = whole
    action = result.policy(np.array([0.1, 0.0]))
    assert action.shape == (1,)
    assert np.abs(action) <= 1


def test_methods_differ_in_their_constraint_only(tmp_path):
    problems = {}
    for method in ("sbsrl", "mean", "unsafe"):
        spec = Specification.make("slider", method, 0, "cpu", {})
        experiment, learner = spec.start()
        problems[method] = experiment.method.problem(context_of(experiment, learner))
    assert problems["sbsrl"].constraint == "each"
    assert problems["mean"].constraint == "mean"
    np.testing.assert_array_equal(problems["sbsrl"].samples.weights, problems["mean"].samples.weights)
    assert problems["unsafe"].samples is None


def test_without_a_constraint_it_learns_to_push_on():
    """The data earn 8 on average; pushing all the time earns 17.7."""
    result = learn("slider", "unsafe", trust=0.0, judged=16, **{"gradient.rounds": 4})
    assert result.records[-1].metrics["true_return"] > 16
    assert result.records[-1].metrics["true_cost"] > 10


def test_with_one_it_learns_to_stay_near_the_line():
    """At most 10.3 can be earned within the budget, 1; the data earn 8. Tiny networks err by as much as the budget."""
    result = learn("slider", episodes=6, judged=16, **{"gradient.rounds": 4})
    assert np.mean([r.metrics["true_return"] for r in result.records[-3:]]) > 8.5
    assert max(r.metrics["true_cost"] for r in result.records) < 2


def test_information_is_demanded_until_it_cannot_be_had():
    """A fixed threshold that an episode meets once; one that shrinks with what is left to learn; one out of reach."""
    fixed, shrinking, hopeless = (
        learn("slider", exploration_threshold=threshold, exploration_decay=decay)
        for threshold, decay in ((0.15, 1.0), (0.15, 0.5), (19.0, 1.0))
    )
    assert [r.phase for r in shrinking.records] == ["explore"] * 3 + ["final"]
    assert fixed.records[0].phase == "explore"
    for record in (r for result in (fixed, shrinking) for r in result.records if r.exploring):
        assert record.metrics["planned_information"] >= 0.15 * 0.5**record.episode * 0.8
    assert [r.phase for r in hopeless.records] == ["exploit"] * 3 + ["final"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"data": "nobody:3:0"}, "no behaviour of slider 'nobody'"),
        ({"data": "pusher:0:0"}, "episodes=0 is out of range"),
        ({"belief.networks": 1}, "networks=1 is out of range"),
        ({"solver.penalty": "none"}, "penalty"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(changes, complaint):
    with pytest.raises(UserError, match=complaint):
        learn("slider", **changes)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: data._replace(task="glider"), "these offline data come from glider, and the task is slider"),
        (lambda data: with_part(data, "states", lambda x: x[:, :1]), r"the states .* have shape \(40, 1\)"),
        (lambda data: with_part(data, "rewards", lambda r: r * np.nan), "the rewards .* are not all finite"),
        (lambda data: with_part(data, "costs", lambda c: c * np.nan), "the costs .* are not all finite"),
        (lambda data: with_part(data, "costs", lambda c: 0 * c), "no transition .* costs anything, so no network can"),
    ],
)
def test_data_that_cannot_be_learned_from_are_refused_before_anything_is_written(change, complaint, tmp_path):
    change(collect(slider.make(), "pusher", episodes=2)).save(tmp_path / "data.npz")
    with pytest.raises(UserError, match=complaint):
        learn("slider", data=str(tmp_path / "data.npz"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def with_part(data, name, change):
    part = change(getattr(data.transitions, name))
    return data._replace(transitions=data.transitions._replace(**{name: part}))


def test_a_budget_below_what_the_data_cost_is_said_before_anything_is_played():
    told = []

    class Listener(Unobserved):
        def note(self, text):
            told.append(("note", text))

        def stepped(self):
            told.append(("step", ""))

    train(Specification.make("slider", "sbsrl", 0, "cpu", {"budget": 0.01, "episodes": 1}), None, Listener())
    assert told[0][0] == "note"
    assert "an episode of the offline data costs" in told[0][1]


def test_what_the_offline_policies_are_worth_is_written_down(tmp_path):
    learn("slider", episodes=1, judged=8, out=tmp_path / "run")
    offline = json.loads((tmp_path / "run" / "offline.json").read_text())
    assert {"clone/true_return", "clone/true_cost", "prior/true_return", "prior/true_cost"} <= set(offline)
    assert 5 < offline["clone/true_return"] < 10


def test_the_same_solver_may_know_the_truth():
    """An oracle's forecasts are what happens, but for the noise of few initial states."""
    result = learn("slider", "oracle", judged=64, trust=0.0, **{"gradient.rounds": 4})
    for record in result.records:
        np.testing.assert_allclose(record.metrics["predicted_return"], record.metrics["true_return"], rtol=0.1)
    assert result.records[-1].metrics["true_return"] > 8.5


def test_a_second_run_of_the_same_kind_compiles_nothing():
    compiled = []

    def listener(name, *_, **__):
        if "backend_compile" in name:
            compiled.append(name)

    learn("slider", seed=5)
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        learn("slider", seed=6)
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert not compiled
