"""`learn`: a run in one call, for use from Python."""

from pathlib import Path
from typing import Any

from .methods import DEFAULT
from .runs import Result, train
from .specification import Specification
from .validation import Place

__all__ = ["learn"]


def learn(
    task: str = "pendulum",
    method: str = DEFAULT.name,
    *,
    seed: int = 0,
    preset: str = "cpu",
    out: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Learns the task and returns every episode and the policy.

    **Arguments:** the names of `sbsrl tasks` and `sbsrl methods`; `out`, a new run folder (by default nothing is
    written); and any setting of `sbsrl train --help` by its name, such as `episodes=5`, or by its full name, such as
    `**{"solver.horizon": 25}`.
    """
    spec = Specification.make(task, method, seed, preset, settings)
    return train(spec, None if out is None else Place().read("out", out))
