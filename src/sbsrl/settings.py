"""All settings of a run, in one flat record. Every field's text is its help on the command line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

from .errors import UserError, unknown

__all__ = ["PRESETS", "Settings", "make_settings", "parse_setting"]


def _setting(default: Any, text: str, least: float = -math.inf, most: float = math.inf) -> Any:
    return field(default=default, metadata={"help": text, "least": least, "most": most})


def _of_the_task(text: str, least: float = -math.inf) -> Any:
    """A setting that has no sensible value without a task: every task brings its own."""
    return field(metadata={"help": text, "least": least, "most": math.inf})


WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


@dataclass(frozen=True)
class Settings:
    """What can be set with `--set key=value`."""

    prior: str = _of_the_task(
        "what is known (pendulum: simulator, careful, none; cartpole: offline, none; ledge: slope, waves, motor)"
    )
    budget: float = _of_the_task("d: bound on the aggregated cost of an episode")
    tightening: float = _of_the_task("Delta: by how much plans must stay below the budget", 0)
    exploration_threshold: float = _of_the_task("d_sigma: nats of information an episode must promise to explore", 0)
    data: str = _setting("", "offline transitions, a file of 'sbsrl collect', in the place of those of the prior")
    episodes: int = _setting(10, "episodes on the true system before the final policy", 1, 10_000)
    samples: int = _setting(30, "M: dynamics sampled from the belief at each episode", 1, 10_000)
    accuracy: float = _setting(
        0.0, "epsilon: if positive, d_sigma^n shrinks with beta_n (theorem 2) and exploration_threshold is not used", 0
    )
    shrinking: bool = _setting(
        False, "multiply exploration_threshold by B / beta_n, as theorem 2 does, instead of keeping it fixed"
    )
    exploration_tolerance: float = _setting(
        0.05, "share of d_sigma that may be missing before exploration counts as infeasible", 0, 1
    )
    stop_when_learned: bool = _setting(
        False, "stop as soon as exploration is infeasible (Algorithm 1) instead of exploiting to the last episode"
    )
    actsafe_episodes: int = _setting(3, "episodes that the method actsafe explores before it exploits", 0)
    cost_penalty: float = _setting(1000.0, "lambda_c: weight of a violation, summed over the samples", 0)
    exploration_penalty: float = _setting(10.0, "lambda_sigma: weight of missing information", 0)
    slack: float = _setting(
        0.0, "by how much more the end of a plan should stay below the budget: room for the plans to come", 0
    )
    solver: str = _setting("icem", "icem plans actions; exact, gradient and evolution search the task's policies")
    horizon: int = _setting(20, "H: control steps a plan looks ahead", 2, 1000)
    candidates: int = _setting(504, "action sequences in the first iteration of iCEM", 4, 1_000_000)
    elites: int = _setting(24, "best sequences that the next iteration is fitted to", 2, 100_000)
    iterations: int = _setting(4, "iterations of iCEM a plan", 1, 1000)
    patience: int = _setting(3, "times the iterations may be repeated while no plan is safe on all samples", 1, 1000)
    decay: float = _setting(1.25, "factor by which the population shrinks each iteration", 1, 100)
    colour: float = _setting(2.0, "exponent of the coloured noise; 0 is white", 0, 10)
    momentum: float = _setting(0.1, "weight of the old mean and deviation", 0, 1)
    spread: float = _setting(0.5, "initial deviation, as a share of half the action range", 1e-6, 10)
    keep: float = _setting(0.3, "share of the elites carried to the next iteration and step, at least one", 0, 1)
    gradient_elites: int = _setting(0, "kept elites that each iteration improves by gradients; 0 is none", 0, 100_000)
    sampler: str = _setting("pathwise", "what samples are: pathwise, truncated or particles")
    features: int = _setting(128, "Fourier features of a sampled function (even)", 2, 1_000_000)
    estimator: str = _setting("paired", "how Fourier features are drawn: paired, phased or orthogonal")
    uncertainty: str = _setting("information", "s_n: information (nats) or deviation (units of the state)")
    delta: float = _setting(0.1, "probability with which confidence sets may fail", 1e-12, 1 - 1e-12)
    convention: str = _setting("corrected", "of the confidence width beta_n: corrected, or paper")
    form: str = _setting("sharp", "of the bounds on returns that theorem 2 uses: sharp, or paper")
    fitted: bool = _setting(False, "fit kernel, scale and noise after each episode; then no guarantee holds")

    def __post_init__(self) -> None:
        for item in fields(self):
            _check_range(item.name, getattr(self, item.name), item.metadata["least"], item.metadata["most"])
        if self.candidates < 2 * self.elites:
            raise UserError(
                f"candidates={self.candidates} is less than twice elites={self.elites}; "
                f"set candidates to at least {2 * self.elites}, or fewer elites."
            )
        if self.features % 2:
            raise UserError(
                f"features={self.features} must be even: half are cosines, half sines; use {self.features + 1}."
            )


def _check_kind(name: str, value: Any) -> None:
    kinds = get_type_hints(Settings)
    if name not in kinds:
        raise unknown("setting", name, kinds)
    if type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
        raise UserError(f"{name} wants {WANTED[kinds[name]]} and got {value!r}.")


def _check_range(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, str):
        return
    if not math.isfinite(value):
        raise UserError(f"{name}={value} is not a finite number.")
    if not least <= value <= most:
        limits = f"at least {least:g}" if math.isinf(most) else f"between {least:g} and {most:g}"
        raise UserError(f"{name}={value:g} is out of range; it must be {limits}.")


PRESETS: dict[str, dict[str, Any]] = {
    "cpu": {},
    "paper": {"candidates": 1000, "elites": 100, "iterations": 5, "momentum": 0.2, "colour": 0.2},
    "smoke": {"episodes": 3, "samples": 8, "candidates": 124, "elites": 12, "iterations": 3, "features": 64},
}


def parse_setting(text: str) -> tuple[str, Any]:
    """'key=value' with the value in the type of that key."""
    name, found, value = text.partition("=")
    if not found:
        raise UserError(f"--set wants key=value and got '{text}'; for example --set samples=50.")
    types = get_type_hints(Settings)
    if name not in types:
        raise unknown("setting", name, types)
    kind = types[name]
    try:
        return name, _convert(value, kind)
    except ValueError:
        raise UserError(f"{name} wants {WANTED[kind]} and got '{value}'.") from None


def _convert(value: str, kind: Any) -> Any:
    if kind is bool:
        answers = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if value.lower() not in answers:
            raise ValueError
        return answers[value.lower()]
    return kind(value)


def make_settings(task: Mapping[str, Any], preset: str, changes: Mapping[str, Any]) -> Settings:
    """The task's own settings, the preset's, then these changes; the later ones win."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    for name, value in changes.items():
        _check_kind(name, value)
    return Settings(**{**task, **PRESETS[preset], **changes})
