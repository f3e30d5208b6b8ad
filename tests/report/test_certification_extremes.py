"""`sbsrl certify --kernel` answers or refuses for any numbers, soon, and never with a number that is none.

An answer takes about a second on one core. The limit here is generous, for slow and busy machines: only work that grows
with the numbers themselves exceeds it.
"""

import argparse
import io
import json
import math
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from sbsrl import UserError
from sbsrl.report.certification import KERNELS, add_options, as_json, read_options, show
from sbsrl.theory import certify, tradeoff

SECONDS = 20.0

USUAL = {
    "kernel": "se",
    "dim": 2,
    "lengthscale": 1.0,
    "limits": 1.0,
    "horizon": 10,
    "noise": 0.1,
    "bound": 1.0,
    "budget": 2.0,
    "samples": 1000,
}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UserError(message)


def answer(**options):
    """What is printed, as a table and as JSON: all that `sbsrl certify` computes."""
    parser = Parser()
    add_options(parser)
    words = [f"--{name}={value}" for name, value in {**USUAL, **options}.items()]
    premises, facts = read_options(parser.parse_args(words))
    result = certify(premises, facts)
    console = Console(file=io.StringIO(), width=100)
    show(console, result, "extreme")
    return console.file.getvalue(), as_json(result, tradeoff(premises), "extreme")


def settled(**options):
    """The JSON document, or None after a refusal in one line. In time, and without NaN."""
    start, refusal = time.monotonic(), ""
    try:
        table, document = answer(**options)
    except UserError as error:
        table, document, refusal = "", None, str(error)
    assert time.monotonic() - start < SECONDS
    if document is None:
        assert len(refusal.splitlines()) == 1
        return None
    assert "nan" not in table.lower()
    return json.loads(document, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


HUGE = "1" + 400 * "0"
"""A whole number that no float holds."""

ODD = ("nan", "inf", "-inf", "-1", "0", "1e300", "1e-300", "1e400")
EXTREMES = {
    "lengthscale": (*ODD, "1e-30", "1e-12", "1e30"),
    "limits": (*ODD, "1e-30", "499", "1e30"),
    "dim": ("1", "50", "100", "101", "1000000000", "0", "-1", HUGE),
    "noise": (*ODD, "1e-30", "1e-12", "1e6", "1e30"),
    "horizon": ("1", "1000000000", "1000000000000000", "1000000000000001", HUGE, "0", "-1"),
    "samples": (*ODD, "1", "1e9", "1e100", "1e308", HUGE),
    "bound": (*ODD, "1e-30", "100", "1e6", "1e30", "1e200"),
    "delta": (*ODD, "1e-310", "1e-16", "0.5", "0.9999999999999999", "1"),
    "zeta": (*ODD, "1e-30", "1e-12", "1e-3"),
    "budget": (*ODD, "1e-30", "1e-6", "1e15", "1e30"),
    "margin": (*ODD, "1e-30", "1"),
    "epsilon": (*ODD, "1e-30", "1e30"),
    "cost": (*ODD, "1e-30", "1e30"),
    "reward": (*ODD, "1e-30", "1e30"),
    "outputs": ("1", "10", "1000000", "1000001", "0", "-1", HUGE),
}


SHAPE = ("limits", "dim")
"""What the bounds of a kernel depend on; the others enter through formulas that all kernels share."""


@pytest.mark.parametrize(
    ("kernel", "name"),
    [("linear", name) for name in EXTREMES] + [(kernel, name) for kernel in ("se", "matern12") for name in SHAPE],
)
def test_each_extreme_is_answered_or_refused(kernel, name):
    answers = [settled(kernel=kernel, **{name: value}) for value in EXTREMES[name]]
    assert any(answer is None for answer in answers)
    assert any(answer is not None for answer in answers)


@pytest.mark.parametrize(
    "options",
    [
        {"dim": 50, "limits": 400.0, "samples": 1e300},
        {"dim": 100, "limits": 499.0, "zeta": 1e-30},
        {"dim": 20, "limits": 30.0, "noise": 1e-12, "horizon": 10**9},
        {"kernel": "matern12", "dim": 1, "limits": 1e30, "zeta": 1e-30, "samples": 1e300},
        {"kernel": "matern12", "dim": 8, "limits": 3.0, "bound": 0.0, "budget": 9.9},
        {"kernel": "matern52", "dim": 50, "lengthscale": 1e-30, "budget": 1e-30},
        {"kernel": "linear", "dim": 100, "limits": ",".join(str(1.1**i) for i in range(100)), "samples": 1e300},
        {"kernel": "linear", "dim": 100, "lengthscale": 1e-30, "limits": 1e30},
        {"horizon": 10**15, "noise": 1e-30, "cost": 1e30, "budget": 1e-30},
        {"horizon": 10**15, "budget": 1e-30, "form": "paper", "delta": 1e-300, "samples": 1e300},
        {"outputs": 10**6, "bound": 1e30, "convention": "paper", "delta": 1e-300},
        {"aggregation": "statewise", "delay": 0, "horizon": 1, "budget": 0.5},
    ],
    ids=str,
)
def test_several_extremes_at_once_are_answered(options):
    assert settled(**options) is not None


def decimal(low, high):
    """Numbers of all sizes between 10^low and 10^high."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


NUMBERS = {
    "dim": st.sampled_from([1, 2, 3, 5, 8, 20, 50, 100]),
    "lengthscale": decimal(-31, 31),
    "limits": decimal(-31, 31) | st.just(math.inf),
    "horizon": st.integers(1, 10**16),
    "noise": decimal(-12, 6),
    "samples": decimal(0, 301).map(math.floor),
    "bound": st.just(0.0) | decimal(-6, 6),
    "budget": decimal(-31, 31),
    "delta": decimal(-301, 0),
    "zeta": decimal(-31, 3),
    "outputs": st.integers(1, 1000),
    "cost": decimal(-6, 6),
    "form": st.sampled_from(["sharp", "paper"]),
    "aggregation": st.sampled_from(["sum", "statewise"]),
    "convention": st.sampled_from(["corrected", "paper"]),
}


@given(kernel=st.sampled_from(sorted(KERNELS)), options=st.fixed_dictionaries({}, optional=NUMBERS))
@settings(max_examples=10, deadline=None)
@example(kernel="se", options={"dim": 50, "zeta": 1e-12})
def test_any_numbers_are_answered_or_refused(kernel, options):
    document = settled(kernel=kernel, **options)
    if document is None:
        return
    for row in document["quantities"]:
        assert row["value"] is not None or row["how"]
        assert row["value"] is None or math.isfinite(row["value"])


def test_what_has_no_bound_is_impossible_with_the_reason():
    """Inputs without limits leave the small ball without a bound, and say so; the rest is answered."""
    rows = {row["symbol"]: row for row in settled(kernel="se", limits="inf")["quantities"]}
    assert rows["phi"]["status"] == "impossible"
    assert "give finite limits" in rows["phi"]["how"]
    assert rows["Delta_zeta"]["status"] == "certified"
    assert rows["gamma_10"]["how"].startswith("trivial")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": "1e400"}, r"--samples: more than 1e\+300 cannot be computed with"),
        ({"horizon": HUGE}, "the horizon T=1e308 or more is more than can be computed with, 1000000000000000"),
        ({"dim": 101}, "the number of inputs=101 is more than can be computed with, 100"),
        ({"noise": 1e-31}, "sigma_w=1e-31 cannot be computed with: .* use other units"),
        ({"lengthscale": 1e31}, r"a parameter of SquaredExponential=1e\+31 cannot be computed with"),
        ({"limits": 1e31}, r"a limit of the inputs=1e\+31 cannot be computed with"),
        ({"delta": 1e-301}, "delta=1e-301 must be finite and at least 1e-300"),
    ],
)
def test_what_is_too_large_or_too_small_is_refused_in_a_sentence(options, said):
    with pytest.raises(UserError, match=said):
        answer(**options)
