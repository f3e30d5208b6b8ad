"""Figures from the command line."""

import subprocess
import sys

import pytest

from sbsrl.cli import main
from sbsrl.report.figures import FIGURES


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
