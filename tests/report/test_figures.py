"""Figures from the command line."""

import subprocess
import sys

import pytest

from sbsrl import UserError
from sbsrl.cli import main
from sbsrl.report import figures
from sbsrl.report.figures import FIGURES, Figure, Request, reproduce


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_list_has_a_line_for_each_figure(capsys):
    assert main(["figures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FIGURES)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["gp-sampels"], "no figure 'gp-sampels'; did you mean 'gp-samples'?"),
        (["gp-samples", "--seed", "-1"], "seed -1 is out of range"),
        (["gp-samples", "--seed", "one"], "invalid int value: 'one'"),
        (["gp-samples", "--out", "/proc/nowhere/figure"], "cannot use /proc/nowhere/figure"),
        (["theorems", "--preset", "smok"], "no preset 'smok'; did you mean 'smoke'?"),
        (["theorems", "--seeds", "0"], "--seeds 0 makes no run; it must be at least 1."),
        (["deep-mean", "--priors", "0"], "--priors 0 makes no run; it must be at least 1."),
        (["gp-safety", "--priors", "2"], "the runs of gp-safety have no offline phase"),
        (["theorems", "--workers", "0"], "--workers 0 does no work; it must be at least 1."),
        ([], "required: FIGURE"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_nothing_behind(capsys, tmp_path, arguments, hint):
    assert main(["reproduce", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert hint in captured.err
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_made_where_it_is_wanted_and_again_the_same(capsys, tmp_path):
    assert main(["reproduce", "gp-samples"]) == 0
    default = tmp_path / "results" / "gp-samples"
    names = {"gp-samples.png", "gp-samples.npz", "README.md"}
    assert {path.name for path in default.iterdir()} == names
    assert (default / "gp-samples.png").read_bytes().startswith(b"\x89PNG")
    assert set(capsys.readouterr().out.split()) == {f"results/gp-samples/{name}" for name in names}
    assert main(["reproduce", "gp-samples", "--seed", "0", "--out", "else/where"]) == 0
    for name in names:
        assert (tmp_path / "else" / "where" / name).read_bytes() == (default / name).read_bytes()


def test_another_seed_is_another_figure(tmp_path):
    for seed in ("0", "1"):
        assert main(["reproduce", "gp-samples", "--seed", seed, "--out", seed]) == 0
    assert (tmp_path / "0" / "gp-samples.npz").read_bytes() != (tmp_path / "1" / "gp-samples.npz").read_bytes()


def test_listing_figures_does_not_import_matplotlib():
    code = "import sys; from sbsrl.cli import main; main(['figures']); sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (Request("theorems"), "sbsrl reproduce theorems"),
        (Request("theorems", workers=7, say=print), "sbsrl reproduce theorems"),  # neither changes what comes out
        (Request("theorems", 3, 20, "smoke"), "sbsrl reproduce theorems --seed 3 --seeds 20 --preset smoke"),
    ],
)
def test_the_command_is_what_to_type_to_get_the_same_again(request_, command):
    assert request_.command == command


@pytest.fixture
def asked(monkeypatch):
    """What a figure that costs nothing was asked for."""
    seen = []

    def draw(request):
        seen.append(request)
        request.say("half of it [is] done")
        return {"README.md": request.command.encode()}

    monkeypatch.setitem(figures.FIGURES, "theorems", Figure("for free", draw))
    return seen


def test_the_command_line_asks_for_what_was_typed(asked, capsys, tmp_path):
    typed = ["theorems", "--seed", "3", "--seeds", "20", "--preset", "smoke", "--workers", "2", "--out", "there"]
    assert main(["reproduce", *typed]) == 0
    assert asked[0]._replace(say=None, progress=None) == Request("theorems", 3, 20, "smoke", 2, None, None)
    assert capsys.readouterr().out.splitlines() == ["half of it [is] done", "there/README.md"]
    again = asked[0].command.split()
    assert (tmp_path / "there" / "README.md").read_text() == " ".join(again)
    assert main(again[1:]) == 0
    assert asked[1][:4] == asked[0][:4]


def test_a_request_that_cannot_be_met_makes_nothing(asked, tmp_path):
    """From Python as well: it is looked at before anything is made."""
    for bad in ({"figure": "theorem"}, {"seed": 2**32}, {"seeds": 0}, {"workers": -1}, {"preset": "large"}):
        with pytest.raises(UserError):
            reproduce(Request(**{"figure": "theorems", **bad}), tmp_path / "out")
    assert not asked
    assert not (tmp_path / "out").exists()
