"""What `sbsrl certify` shows: a table that fits, JSON that is strict, a picture."""

import io
import json

import matplotlib.image
import pytest
from rich.console import Console

from sbsrl.kernels import Linear, Tanh
from sbsrl.report.certification import as_json, show
from sbsrl.report.tradeoff import draw_tradeoff
from sbsrl.theory import Premises, certify, tradeoff


def premises(**changes):
    known = {"kernel": Linear((1.0, 1.0)), "limits": (1.0, 1.0), "outputs": 1, "horizon": 5, "noise": 0.5, "bound": 0.5}
    return Premises(**{**known, "budget": 2.0, "samples": 30, "tightening": 0.1, **changes})


@pytest.fixture(scope="module")
def result():
    return certify(premises())


def shown(result, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(console, result, "toy [brackets]")
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_table_fits_the_terminal_and_names_every_quantity(result, width):
    text = shown(result, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    for group in (
        "tightening",
        "samples",
        "what M samples buy",
        "confidence",
        "exploration",
        "episodes",
        "assumptions",
    ):
        assert group in lines
    for quantity in result.quantities:
        (line,) = (line for line in lines if line.startswith(f"{quantity.symbol} "))
        assert quantity.name in line
        assert quantity.text in line
        assert quantity.status in line
    together = " ".join(text.split())
    for words in (*result.conclusions, *(quantity.how for quantity in result.quantities)):
        assert " ".join(words.split()[:2]) in together
    assert lines[0].startswith("toy [brackets]: T = 5 steps")
    assert "\x1b" not in text


def strict(text):
    """Reads JSON and refuses NaN and Infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_the_json_holds_everything_and_nothing_that_json_does_not_know(result):
    curve = tradeoff(result.premises, points=5)
    document = strict(as_json(result, curve, "toy"))
    assert [row["symbol"] for row in document["quantities"]] == [quantity.symbol for quantity in result.quantities]
    for row, quantity in zip(document["quantities"], result.quantities, strict=True):
        assert row == quantity._asdict()
    assert document["conclusions"] == list(result.conclusions)
    assert {row["label"]: row["standing"] for row in document["assumptions"]}["rkhs"] == "given"
    assert [point["zeta"] for point in document["tradeoff"]] == [point.zeta for point in curve]
    assert document["setting"]["kernels"] == ["Linear([1, 1])"]
    assert document["setting"]["samples"] == 30


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": None},
        {"kernel": Linear((1.0, 1.0)).on(Tanh((1.0, 1.0))), "limits": (float("inf"), float("inf"))},
        {"budget": 50.0, "samples": None, "tightening": None},
        {"bound": 0.0},
    ],
)
def test_what_has_no_finite_value_is_null(changes):
    odd = premises(**changes)
    document = strict(as_json(certify(odd), tradeoff(odd, points=3), "odd"))
    assert all(row["how"] for row in document["quantities"] if row["value"] is None)


@pytest.mark.parametrize(
    "changes", [{}, {"bound": None}, {"budget": 50.0}, {"bound": 30.0, "margin": 1.0, "tightening": None}]
)
def test_the_trade_off_can_be_drawn(changes):
    odd = premises(**changes)
    picture = draw_tradeoff(odd, tradeoff(odd, points=5), "toy")
    height, width, _ = matplotlib.image.imread(io.BytesIO(picture)).shape
    assert width > 1000
    assert height > 900
