"""The figures that `sbsrl reproduce` makes, by name."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..atomic import disk, write_atomically
from ..errors import UserError, unknown
from ..settings import PRESETS

__all__ = ["FIGURES", "Figure", "reproduce"]


def _silent(text: str) -> None:
    pass


def _motionless(share: float) -> None:
    pass


class Request(NamedTuple):
    """What is asked for."""

    figure: str
    seed: int = 0
    seeds: int | None = None
    """How many runs; None takes as many as the preset says."""
    preset: str = "cpu"
    workers: int = 1
    """Processes that work side by side, one core each."""
    say: Callable[[str], None] = _silent
    """Hears of what has been found so far."""
    progress: Callable[[float], None] = _motionless
    """Hears of the share that is done."""
    priors: int | None = None
    """With networks: from how many offline phases; None takes as many as the figure has."""

    @property
    def command(self) -> str:
        """What to type to get the same again."""
        words = ["sbsrl reproduce", self.figure]
        words += [f"--seed {self.seed}"] if self.seed else []
        words += [f"--priors {self.priors}"] if self.priors else []
        words += [f"--seeds {self.seeds}"] if self.seeds else []
        words += [f"--preset {self.preset}"] if self.preset != "cpu" else []
        return " ".join(words)

    def check(self) -> "Request":
        """Refuses what cannot be."""
        if self.figure not in FIGURES:
            raise unknown("figure", self.figure, FIGURES)
        if self.preset not in PRESETS:
            raise unknown("preset", self.preset, PRESETS)
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed {self.seed} is out of range; it must be between 0 and 4294967295.")
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"--seeds {self.seeds} makes no run; it must be at least 1.")
        if self.priors is not None and self.priors < 1:
            raise UserError(f"--priors {self.priors} makes no run; it must be at least 1.")
        if self.priors and not FIGURES[self.figure].priors:
            raise UserError(f"the runs of {self.figure} have no offline phase, so that --priors means nothing here.")
        if self.workers < 1:
            raise UserError(f"--workers {self.workers} does no work; it must be at least 1.")
        return self


class Figure(NamedTuple):
    """What it shows, and how its files are made."""

    summary: str
    draw: Callable[[Request], dict[str, bytes]]
    """To the content of each file: the picture, its raw numbers, a README with the command."""
    priors: bool = False
    """Whether its runs begin with one of several offline phases."""


def _module(name: str) -> Callable[[Request], dict[str, bytes]]:
    """The function `files` of a module of this folder, imported when it is needed: matplotlib takes a second."""

    def files(request: Request) -> dict[str, bytes]:
        made: dict[str, bytes] = import_module(f".{name}", __package__).files(request)
        return made

    return files


FIGURES = {
    "flagship": Figure(
        "the method in one picture: a race car on every sample and in truth, before and after", _module("flagship")
    ),
    "gp-safety": Figure(
        "all methods on pendulum and cartpole: returns, violations, learning curves", _module("gp_safety")
    ),
    "gp-exploration": Figure("exploration as a constraint against phases of exploration", _module("gp_exploration")),
    "gp-detour": Figure(
        "a task where exploration must be demanded: against none, phases, and a bonus", _module("gp_detour")
    ),
    "gp-ablation": Figure("how much exploration to demand, from nothing to too much", _module("gp_ablation")),
    "gp-samples": Figure(
        "samples of the prior, cut to the confidence sets, and the one near the truth", _module("gp_samples")
    ),
    "gp-choices": Figure("what the samples are, and whether the exploration threshold shrinks", _module("gp_choices")),
    "gp-margins": Figure("how safety depends on the number of samples and on the tightening", _module("gp_margins")),
    "gp-risk": Figure("a promised risk against how often worlds drawn from the prior violate", _module("gp_risk")),
    "deep-mean": Figure(
        "networks: a constraint on every sample against one on their mean, on all tasks of the paper",
        _module("deep_mean"),
        priors=True,
    ),
    "deep-baselines": Figure(
        "networks: sbsrl, its mean, mbpo and sooper on all tasks of the paper, with both solvers where that was tuned",
        _module("deep_baselines"),
        priors=True,
    ),
    "deep-bodies": Figure(
        "networks on MuJoCo: sbsrl, mean, mbpo and sooper on quadruped, humanoid and go-to-goal",
        _module("deep_bodies"),
        priors=True,
    ),
    "deep-monitor": Figure(
        "networks: what a monitor removes and costs, on race car and cartpole", _module("deep_monitor"), priors=True
    ),
    "car": Figure("the race car from 25,000 transitions over 75 episodes", _module("car"), priors=True),
    "deep-calibration": Figure(
        "networks: what makes samples cover the true cost, piece by piece", _module("deep_calibration"), priors=True
    ),
    "theorems": Figure(
        "every promise of the theory, measured; and how the set of safe policies grows", _module("theorems")
    ),
}


def reproduce(request: Request, out: Path) -> list[Path]:
    """Makes a figure in a folder and returns the files. Made again, it replaces them."""
    request.check()
    with disk(out):
        out.mkdir(parents=True, exist_ok=True)
    made = FIGURES[request.figure].draw(request)
    for file, content in made.items():
        write_atomically(out / file, content)
    return [out / file for file in made]
