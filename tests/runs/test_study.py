"""A study runs what is missing, once, and goes on where it stopped; one small study serves all tests."""

import json
import shutil
from pathlib import Path

import pytest

import sbsrl
from sbsrl import RunFolder, UserError, imports
from sbsrl.runs import study, train
from sbsrl.runs.study import Arm, run_study
from sbsrl.settings import PRESETS

FEW = (("prior", "motor"), ("episodes", 2), ("samples", 30))
USUAL, OTHER = Arm("usual", "ledge", "sbsrl", FEW), Arm("other", "ledge", "greedy", FEW)
TWIN = Arm("the same by another name", "ledge", "sbsrl", FEW[::-1])
SEEDS = (0, 1)


def folder_of(home, arm, seed):
    return home / study.run_name(arm.specification(seed, "cpu"))


@pytest.fixture(scope="module")
def done(tmp_path_factory, interrupts):
    """Two arms and a twin, two seeds. One of the four runs was interrupted in its second episode, of three steps."""
    home = tmp_path_factory.mktemp("study")
    interrupted = folder_of(home, USUAL, 1)
    with pytest.raises(KeyboardInterrupt):
        train(USUAL.specification(1, "cpu"), interrupted, interrupts(4))
    assert len(RunFolder.open(interrupted).records()) == 1
    first = (interrupted / "episodes.jsonl").read_text()
    shares: list[float] = []
    runs = run_study([USUAL, OTHER, TWIN], SEEDS, "cpu", home, 1, shares.append)
    return home, runs, shares, first


def test_every_arm_has_all_episodes_of_every_seed(done):
    home, runs, _, _ = done
    assert list(runs) == [USUAL, OTHER, TWIN]
    for arm, seeds in runs.items():
        assert len(seeds) == len(SEEDS)
        for seed, run in zip(SEEDS, seeds, strict=True):
            assert [r.phase for r in run][-1] == "final"
            assert run == RunFolder.open(folder_of(home, arm, seed)).records()
    assert runs[USUAL][0] != runs[USUAL][1]
    assert {r.phase for r in runs[OTHER][0]} == {"exploit", "final"}


def test_a_folder_is_what_was_asked_for(done):
    config = RunFolder.open(folder_of(done[0], OTHER, 1)).config
    assert (config["task"], config["method"], config["seed"]) == ("ledge", "greedy", 1)
    assert config["settings"]["method"]["samples"] == 30


def test_arms_with_equal_settings_share_their_runs(done):
    home, runs, _, _ = done
    assert len([path for path in home.iterdir() if path.is_dir()]) == 4
    assert runs[TWIN] == runs[USUAL]


def test_an_interrupted_run_is_completed_and_not_begun_anew(done):
    """The line of its first episode stays as it was, with the seconds it took."""
    home, runs, _, first = done
    assert (folder_of(home, USUAL, 1) / "episodes.jsonl").read_text().startswith(first)
    assert len(runs[USUAL][1]) == 3


def test_progress_is_told_after_every_run(done):
    assert done[2] == [0.25, 0.5, 0.75, 1.0]


def test_nothing_is_run_twice(done, monkeypatch):
    """No process is asked for anything, and no file changes."""
    home, runs, _, _ = done
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    monkeypatch.setattr(study, "worker_pool", NoWork)
    assert run_study([TWIN, OTHER], SEEDS, "cpu", home, 1) == {TWIN: runs[USUAL], OTHER: runs[OTHER]}
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_two_studies_cannot_work_in_one_place(done, monkeypatch):
    """They would meet in the same run folders."""
    monkeypatch.setattr(study, "worker_pool", NoWork)
    with RunFolder(done[0]) as held:
        held.lock()
        with pytest.raises(UserError, match=r"another process is running in .*; wait for it"):
            run_study([USUAL], SEEDS, "cpu", done[0], 1)
    assert run_study([USUAL], SEEDS, "cpu", done[0], 1) == {USUAL: done[1][USUAL]}


def test_a_preset_of_few_episodes_shortens_pure_exploration():
    """Else ActSafe could not be run with it at all."""
    arm = Arm("ActSafe-5", "pendulum", "actsafe", (("actsafe_episodes", 5),))
    assert arm.specification(0, "smoke").settings.method.actsafe_episodes == PRESETS["smoke"]["run.episodes"] < 5
    assert arm.specification(0, "cpu").settings.method.actsafe_episodes == 5


class NoWork:
    """Workers that refuse to."""

    def __init__(self, count):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def submit(self, work, *arguments):
        raise AssertionError(f"asked for {arguments}")


def test_only_what_is_missing_is_asked_for(done, monkeypatch):
    """Another seed, other settings and another preset are other runs."""
    monkeypatch.setattr(study, "worker_pool", NoWork)
    other = Arm("more", "ledge", "sbsrl", (*FEW[:2], ("samples", 31)))
    for arm, seed, preset in ((USUAL, 2, "cpu"), (other, 0, "cpu"), (USUAL, 0, "smoke")):
        with pytest.raises(AssertionError, match="asked for"):
            run_study([arm], [seed], preset, done[0], 1)


def test_what_cannot_work_is_refused_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "worker_pool", NoWork)
    hopeless = Arm("hopeless", "ledge", "sbsrl", (("tightening", 9.0),))
    with pytest.raises(UserError, match="no policy can meet the tightened budget"):
        run_study([USUAL, hopeless], SEEDS, "cpu", tmp_path / "home", 1)
    assert not (tmp_path / "home").exists()


PENDULUM = Arm("planned", "pendulum", "sbsrl")
SEARCHED = Arm("searched", "ledge", "sbsrl")


@pytest.fixture(scope="module")
def names_in_copy(tmp_path_factory):
    """A copy of the package, the names that a planned and a searched run have with it now, and those at first."""
    copy = tmp_path_factory.mktemp("copy") / "sbsrl"
    shutil.copytree(Path(sbsrl.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    remembered = (imports.modules, imports.named_modules, imports.imported_modules, study.code_digest)

    def forget():
        for function in remembered:
            function.cache_clear()

    def names():
        forget()
        return [study.run_name(arm.specification(0, "cpu")) for arm in (PENDULUM, SEARCHED)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imports, "PACKAGE", copy)
        yield copy, names, names()
    forget()


@pytest.mark.parametrize(
    ("part", "planned", "searched"),
    [
        ("loop.py", True, True),
        ("methods.py", True, True),
        ("systems/episode.py", True, True),
        ("solve/icem.py", True, True),  # searching policies by evolution is iCEM, in the same module as exact search
        ("solve/receding.py", True, False),
        ("solve/policy_search.py", False, True),
        ("tasks/ledge.py", False, True),
        ("tasks/registry.py", False, False),  # of the registries only the entries of a run count
        ("parts.py", False, False),
        ("tasks/cartpole.py", False, False),
        ("tasks/data/cartpole.npz", False, False),
        ("report/charts.py", False, False),
        ("laboratory/world.py", False, False),
        ("runs/certificate.py", False, False),
        ("cli.py", False, False),
    ],
)
def test_a_run_has_another_name_if_code_that_it_uses_changes(names_in_copy, part, planned, searched):
    copy, names, before = names_in_copy
    source = (copy / part).read_bytes()
    (copy / part).write_bytes(source + b"\n")
    after = names()
    (copy / part).write_bytes(source)
    assert [new != old for new, old in zip(after, before, strict=True)] == [planned, searched]


def test_the_same_code_gives_the_same_name(names_in_copy):
    _, names, before = names_in_copy
    assert names() == before


def test_data_of_a_task_count_for_its_runs(names_in_copy):
    copy, *_ = names_in_copy
    arm = Arm("from data", "cartpole", "sbsrl")
    before = study.run_name(arm.specification(0, "cpu"))
    study.code_digest.cache_clear()
    data = copy / "tasks" / "data" / "cartpole.npz"
    recorded = data.read_bytes()
    data.write_bytes(b"other data")
    after = study.run_name(arm.specification(0, "cpu"))
    data.write_bytes(recorded)
    assert after != before


def test_a_file_that_is_no_code_changes_no_name(names_in_copy):
    copy, names, before = names_in_copy
    (copy / "notes.txt").write_text("nothing to run")
    assert names() == before


def test_names_are_of_settings_and_not_of_labels():
    names = {json.dumps(study.run_name(arm.specification(0, "cpu"))) for arm in (USUAL, TWIN)}
    assert len(names) == 1
    assert study.run_name(USUAL.specification(0, "cpu")) != study.run_name(USUAL.specification(1, "cpu"))
