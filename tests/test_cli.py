"""The program as a user meets it: exit codes, one-line complaints, nothing half-written."""

import dataclasses
import json
import re
import subprocess
import sys
from time import perf_counter, sleep

import gymnasium
import numpy as np
import pytest

from sbsrl import METHODS, TASKS, OfflineData, UserError, collect, make_task
from sbsrl.cli import main
from sbsrl.report.figures import FIGURES
from sbsrl.specification import Specification


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def complaint(capsys, *arguments):
    """The one line on standard error of a call that must fail with 2."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("sbsrl: ")
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "pendulun"], "no task 'pendulun'; did you mean 'pendulum'?"),
        (["train", "pendulum", "--method", "sbrsl"], "did you mean 'sbsrl'"),
        (["train", "pendulum", "--preset", "paperr"], "did you mean 'paper'"),
        (["train", "pendulum", "--seed", "-1"], "seed=-1 is out of range"),
        (["train", "pendulum", "--seed", "one"], "invalid int value: 'one'"),
        (["train", "pendulum", "--episodes", "0"], "episodes=0 is out of range"),
        (["train", "pendulum", "--episodes", "many"], "episodes wants a whole number"),
        (["train", "pendulum", "--set", "budget=nan"], "budget=nan is not a finite number"),
        (["train", "pendulum", "--set", "budget=-2"], "no policy can meet budget=-2"),
        (["train", "pendulum", "--set", "budget=0.01"], "no policy can meet the tightened budget"),
        (["train", "pendulum", "--set", "exploration_threshold=2000"], "no episode can meet exploration_threshold"),
        (["train", "pendulum", "--method", "actsafe", "--episodes", "2"], "actsafe would explore for 3 episodes"),
        (["train", "pendulum", "--set", "accuracy=0.1"], "accuracy needs uncertainty=deviation"),
        (
            ["train", "pendulum", "--set", "prior=none", "--set", "shrinking=true"],
            "a threshold that shrinks needs a bound on the mismatch",
        ),
        (["train", "ledge", "--set", "form=sharpest"], "'sharpest'; did you mean 'sharp'"),
        (["train", "pendulum", "--set", "gradient_elites=8"], "more than the 7 elites that are kept"),
        (["train", "pendulum", "--set", "data=nowhere.npz"], "nowhere.npz cannot be read as offline data"),
        (["collect", "pendulun"], "did you mean 'pendulum'"),
        (["collect", "pendulum", "--behaviour", "wonder"], "did you mean 'wander'"),
        (["collect", "pendulum", "--transitions", "0"], "transitions=0 is out of range"),
        (["collect", "pendulum", "--strength", "2"], "strength=2 is out of range"),
        (["collect", "ledge", "--behaviour", "scatter"], "use --behaviour wander"),
        (["collect", "pendulum", "--transitions", "2", "--out", "/proc/nowhere/a.npz"], "cannot use /proc/nowhere"),
        (["collect"], "required: TASK"),
        (["train", "pendulum", "--set", "sampels=3"], "there is no setting 'sampels'; did you mean 'samples'?"),
        (
            ["train", "pendulum", "--set", "solver.horizn=9"],
            "no setting 'solver.horizn'; did you mean 'solver.horizon'",
        ),
        (["train", "pendulum", "--set", "run.horizon=9"], "there is no setting 'run.horizon'; did you mean"),
        (["train", "pendulum", "--set", "solver.horizon=1"], "solver.horizon=1 is out of range"),
        (["train", "pendulum", "--set", "horizon=long"], "solver.horizon wants a whole number and got 'long'"),
        (["train", "pendulum", "--set", "horizon"], "--set wants key=value and got 'horizon'"),
        (["train", "pendulum", "--set", "solver=icme"], "there is no solver 'icme'; did you mean 'icem'?"),
        (["train", "ledge", "--set", "horizon=9"], "horizon is a setting of solver=icem, and the solver is exact"),
        (["train", "pendulum", "--set", "actsafe_episodes=1"], "there is no setting 'actsafe_episodes'"),
        (["train", "pendulum", "--set", "inconsistent=prior"], "needs a prior policy to fall back to"),
        (["train", "pendulum", "--set", "tightening=0.1,0.2"], "tightening has 2 numbers for 1 costs"),
        (["train", "pendulum", "--set", "prior=simulater"], "did you mean 'simulator'"),
        (["train", "pendulum", "--out", "/proc/nowhere/run"], "cannot use /proc/nowhere/run"),
        (["train", "pendulum", "--out", "x" * 300], "File name too long"),
        (["train", "pendulum", "--episodes", "10000"], "use at most 200 episodes"),
        (["train"], "required: TASK"),
        (["train", "pendulum", "--sed", "1"], "unrecognized arguments: --sed 1"),
        (["resume", "nowhere"], "nowhere holds no run"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_nothing_behind(capsys, tmp_path, arguments, hint):
    assert hint in complaint(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("command", "names"), [("tasks", TASKS), ("methods", METHODS), ("figures", FIGURES)])
def test_the_lists_have_a_line_each_with_the_summaries_below_each_other(capsys, command, names):
    assert main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(names)
    assert [line[max(map(len, names)) + 2 :] for line in lines] == [entry.summary for entry in names.values()]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_help_of_train_has_a_section_for_each_group_with_a_sentence(capsys, monkeypatch, columns):
    """No line is wider than the terminal; every setting is there by its full name, with its default."""
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["train", "--help"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    text = " ".join(out.split())
    for heading in (
        "run: What is run, for how long, and when it stops.",
        "method: How Problem (1) is posed: samples, tightening, exploration.",
        "method, with --method actsafe: Problem (1), and for how long to explore before.",
        "belief gp, the default: An exact Gaussian process around the prior mean",
        "solver icem, the default: Plans actions over a shorter horizon",
        "solver exact, chosen by --set solver=exact: Tries every policy",
    ):
        assert heading in text
    settings = Specification.make("pendulum", "actsafe", 0, "cpu", {}).settings.plain()
    named = {f"{group}.{name}" for group, values in settings.items() for name in values if name != "name"}
    assert named <= set(text.split())
    assert "H: control steps that a plan looks ahead [20]" in text
    assert "(Algorithm 1) instead of going on greedily [false]" in text
    assert "must stay below the budget, one for all costs or one per cost [the task's]" in text


def test_a_setting_has_a_full_name_and_a_short_one(capsys, tmp_path):
    assert "solver.horizon=7000 is out of range" in complaint(capsys, "train", "pendulum", "--set", "horizon=7000")
    names = ("step_timeout", "run.step_timeout")
    for name in names:
        assert main(["train", "ledge", "--episodes", "1", "--set", f"{name}=7", "--out", name]) == 0
    one, other = (json.loads((tmp_path / name / "config.json").read_text()) for name in names)
    assert one["settings"]["run"]["step_timeout"] == 7
    assert one == other


def test_without_arguments_it_explains_itself(capsys):
    assert main([]) == 0
    assert "train" in capsys.readouterr().out


def test_training_fills_the_run_folder_and_sums_up(capsys, tmp_path, tiny_flags):
    assert main(["train", "pendulum", *tiny_flags]) == 0
    folder = tmp_path / "runs" / "pendulum-sbsrl-s0"
    names = {path.name for path in folder.iterdir()}
    files = {
        ".lock",
        "config.json",
        "episodes.jsonl",
        "certificate.json",
        "reference.json",
        "learning.png",
        "trajectory.png",
    }
    expected = files | {"trajectories", "checkpoint"}
    assert names == expected
    out = capsys.readouterr().out
    assert "violating episodes" in out
    assert "normalised" in out
    assert (folder / "learning.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_kept(capsys, tmp_path, tiny_flags):
    flags = ["train", "pendulum", *tiny_flags, "--episodes", "1", "--out", "here"]
    assert main(flags) == 0
    before = (tmp_path / "here" / "episodes.jsonl").read_text()
    capsys.readouterr()
    assert "sbsrl resume here" in complaint(capsys, *flags)
    assert (tmp_path / "here" / "episodes.jsonl").read_text() == before


def test_without_a_prior_the_log_says_that_episode_0_is_not_certified(capsys, tiny_flags):
    assert main(["train", "pendulum", *tiny_flags, "--episodes", "1", "--set", "prior=none"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "episode 0 is not certified to be safe" in out
    assert "plans were infeasible" in out


def test_a_folder_may_be_called_anything(capsys, tmp_path, tiny_flags):
    """Square brackets are markup to the terminal's library, not to us."""
    assert main(["train", "pendulum", *tiny_flags, "--episodes", "1", "--out", "br[/b]x[bold]"]) == 0
    assert "br[/b]x[bold]" in capsys.readouterr().out
    assert (tmp_path / "br[/b]x[bold]" / "learning.png").exists()


def test_a_picture_that_cannot_be_written_does_not_cost_the_summary(capsys, tmp_path, tiny_flags, monkeypatch):
    monkeypatch.setattr("sbsrl.report.pictures.write_atomically", full_disk)
    assert main(["train", "pendulum", *tiny_flags, "--episodes", "1", "--out", "run"]) == 2
    captured = capsys.readouterr()
    assert "violating episodes" in captured.out
    assert "No space left" in captured.err


def full_disk(*arguments):
    raise UserError("cannot use run/learning.png (No space left on device)")


def test_the_time_of_the_summary_is_what_the_user_waited(capsys, tiny_flags, monkeypatch):
    """From when the program was started: imports, compilation and the oracle included."""
    monkeypatch.setattr("sbsrl.cli.STARTED", perf_counter() - 5000)
    assert main(["train", "pendulum", *tiny_flags, "--episodes", "1", "--out", "run"]) == 0
    waited, played = re.search(r"time +(\d+) s, of which episodes (\d+) s", capsys.readouterr().out).groups()
    assert 5000 <= int(waited) < 5600
    assert int(played) < 600


class Failing(gymnasium.Wrapper):
    """The second episode fails at step 5, in one of these ways; later ones do not."""

    def __init__(self, env, way):
        super().__init__(env)
        self.way, self.episode, self.steps = way, -1, 0

    def reset(self, **options):
        self.episode, self.steps = self.episode + 1, 0
        return super().reset(**options)

    def step(self, action):
        self.steps += 1
        x, reward, *rest = super().step(action)
        if (self.episode, self.steps) != (1, 5):
            return x, reward, *rest
        if self.way == "raises":
            raise OSError("the cable\nis cut")
        if self.way == "hangs":
            sleep(3600)
        return (x * np.nan, reward, *rest) if self.way == "state" else (x, float("nan"), *rest)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("state", "the observation at step 5 is not finite: 'cos th' is nan, 'sin th' is nan, 'omega' is nan"),
        ("reward", "the reward of step 5 is not finite: entry 0 is nan"),
        ("raises", "step 5 raised OSError: the cable"),
        ("hangs", "step 5 did not return within 1 s"),
    ],
)
def test_a_system_that_fails_is_one_line_and_the_run_can_go_on(capsys, monkeypatch, tmp_path, tiny_flags, way, reason):
    task = make_task("pendulum")
    broken = dataclasses.replace(task, open=lambda: Failing(task.open(), way))
    with monkeypatch.context() as patch:
        patch.setattr(Specification, "make_task", lambda self: broken)
        assert main(["train", "pendulum", *tiny_flags, "--set", "step_timeout=1", "--out", "run"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"sbsrl: episode 1 was cut short: {reason}")
    assert captured.err.endswith("look after the system; continue with 'sbsrl resume run'.\n")
    assert "fault after 4 steps" in captured.out
    lines = [json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()]
    assert [(line["steps"], line["ended"]) for line in lines] == [(50, "horizon"), (4, "fault")]
    assert main(["resume", "run"]) == 0
    assert "final return" in capsys.readouterr().out


def test_an_edited_configuration_is_refused_unless_one_insists(capsys, tmp_path, tiny_flags):
    assert main(["train", "pendulum", *tiny_flags, "--episodes", "1", "--out", "run"]) == 0
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    config["settings"]["run"]["episodes"] = 2
    path.write_text(json.dumps(config))
    capsys.readouterr()
    assert "config.json was edited" in complaint(capsys, "resume", "run")
    assert main(["resume", "run", "--insist"]) == 0


def test_ctrl_c_exits_with_130_and_says_how_to_go_on(tiny_flags, tmp_path):
    """An interrupt in the middle of an episode, in a process of its own."""
    code = (
        "import os, signal, sys\n"
        "from sbsrl.report.terminal import Terminal\n"
        "from sbsrl.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background inherits: ignore
        "steps = iter(range(70))\n"
        "def stepped(self):\n"
        "    if next(steps, None) is None: os.kill(os.getpid(), signal.SIGINT)\n"
        "Terminal.stepped = stepped\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "pendulum", *tiny_flags, "--out", "run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "sbsrl resume run" in done.stdout
    assert "Traceback" not in done.stderr
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    assert [json.loads(line)["episode"] for line in lines] == [0]


def test_collected_data_are_written_and_summed_up(capsys, tmp_path):
    typed = ["collect", "pendulum", "--behaviour", "scatter", "--transitions", "7", "--seed", "3", "--strength", "0.5"]
    assert main(typed) == 0
    out = capsys.readouterr().out
    data = OfflineData.load(tmp_path / "data" / "pendulum-scatter-s3.npz")
    assert data[:3] == ("pendulum", "scatter", 3)
    again = collect(make_task("pendulum"), "scatter", 7, 3, 0.5)
    for one, other in zip(data.transitions, again.transitions, strict=True):
        assert np.array_equal(one, other)
    fastest = np.abs(data.transitions.next_states[:, 2]).max()
    assert f"fastest turn |omega| (rad/s): largest in a step {fastest:.3f}, budget 6\n7 transitions\n" in out
    assert "'sbsrl train pendulum --set data=data/pendulum-scatter-s3.npz'" in out


def test_collected_data_go_where_they_are_wanted(tmp_path):
    assert main(["collect", "pendulum", "--transitions", "2", "--out", "else/where.npz"]) == 0
    assert len(OfflineData.load(tmp_path / "else" / "where.npz").transitions.actions) == 2


def test_a_system_of_the_users_is_collected_by_its_run(capsys):
    said = complaint(capsys, "collect", "gymnasium:Pendulum-v1")
    assert "'sbsrl train' plays cautious first episodes itself and keeps them in DIR/offline.npz" in said


def test_data_that_do_not_fit_are_one_clear_line_and_no_run(capsys, tmp_path):
    """Of another task, of another shape, and none at all."""
    data = collect(make_task("pendulum"), "wander", 3)
    data._replace(task="ledge").save(tmp_path / "other.npz")
    narrow = data.transitions._replace(states=data.transitions.states[:, :2])
    data._replace(transitions=narrow).save(tmp_path / "narrow.npz")
    (tmp_path / "junk.npz").write_bytes(b"junk")
    for name, hint in (
        ("other", "these offline data come from ledge, and the task is pendulum."),
        ("narrow", "the states of these offline data have shape (3, 2); pendulum wants (3, 3)."),
        ("junk", "junk.npz cannot be read as offline data"),
    ):
        assert hint in complaint(capsys, "train", "pendulum", "--set", f"data={name}.npz", "--out", "run")
    assert not (tmp_path / "run").exists()


TOY = ["--kernel", "linear", "--dim", "2", "--horizon", "5", "--noise", "0.5", "--bound", "0.5", "--budget", "2"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "certify wants a task"),
        (["pendulum", "--kernel", "se"], "--kernel is for certify without a task"),
        (["pendulum", "--horizon", "5"], "--horizon is for certify without a task"),
        (["pendulun"], "did you mean 'pendulum'"),
        (["pendulum", "--set", "sampels=3"], "did you mean 'samples'"),
        (["pendulum", "--delta", "1.5"], "delta=1.5 is a probability"),
        (["pendulum", "--zeta", "0.1"], "zeta must be below 9.895e-05"),
        (["pendulum", "--form", "paper"], "use form='sharp'"),
        (["cartpole"], "nothing can be certified: the cost of a step of cartpole has no bound"),
        (["--kernel", "mattern32"], "did you mean 'matern32'"),
        (["--kernel", "se", "--noise", "1"], "certify --kernel needs --horizon, --budget as well"),
        ([*TOY, "--set", "samples=3"], "--set changes the settings of a task"),
        ([*TOY, "--delta", "0"], "delta=0 is a probability"),
        ([*TOY, "--zeta", "1"], "zeta=1 is too large"),
        ([*TOY, "--bound", "-1"], "the RKHS bound B=-1"),
        ([*TOY, "--horizon", "0"], "the horizon T=0"),
        ([*TOY, "--limits", "inf"], "Linear([1, 1]) has no known bound on k(z, z)"),
        ([*TOY, "--limits", "-1"], "--limits must be positive"),
        ([*TOY, "--lengthscale", "1,2,3"], "--lengthscale has 3 numbers for 2 inputs"),
        ([*TOY, "--lengthscale", "long"], "invalid list of numbers value: 'long'"),
        ([*TOY, "--dim", "0"], "the number of inputs=0"),
        ([*TOY, "--samples", "2.5"], "invalid whole number value: '2.5'"),
        ([*TOY, "--margin", "3"], "the margin Delta=3 is more than the budget leaves"),
        ([*TOY, "--plot", "nowhere/a.png"], "cannot use nowhere/a.png"),
    ],
)
def test_a_mistake_in_a_question_to_the_theory_is_one_clear_line(capsys, tmp_path, arguments, hint):
    assert hint in complaint(capsys, "certify", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_certify_tells_a_task_the_truth(capsys):
    assert main(["certify", "pendulum"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "With M = 30 samples no guarantee holds" in out
    assert "30 heuristic" in out


def test_certify_answers_for_a_kernel_in_json_and_draws(capsys, tmp_path):
    assert main(["certify", *TOY, "--samples", "1e6", "--json", "--plot", "a.png"]) == 0
    document = json.loads(capsys.readouterr().out)
    status = {row["symbol"]: row["status"] for row in document["quantities"]}
    assert status["M"] == status["M(zeta)"] == "certified"
    assert document["setting"]["samples"] == 10**6
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_options_of_certify_reach_the_formulas(capsys):
    shape = [
        "--kernel",
        "se",
        "--lengthscale",
        "2,3",
        "--limits",
        "1",
        "--horizon",
        "4",
        "--noise",
        "1",
        "--budget",
        "3",
    ]
    more = ["--outputs", "2", "--cost", "2", "--reward", "5", "--delay", "0", "--margin", "1", "--epsilon", "0.5"]
    assert main(["certify", *shape, *more, "--convention", "paper", "--form", "paper", "--zeta", "1e-3", "--json"]) == 0
    setting = json.loads(capsys.readouterr().out)["setting"]
    assert setting["kernels"] == ["SquaredExponential([2, 3])"]
    assert setting["limits"] == [1, 1]
    expected = {"outputs": 2, "horizon": 4, "noise": 1, "bound": None, "cost": 2, "reward": 5, "delay": 0, "margin": 1}
    expected |= {"epsilon": 0.5, "convention": "paper", "form": "paper", "zeta": 1e-3, "delta": 0.1, "samples": None}
    assert expected.items() <= setting.items()
