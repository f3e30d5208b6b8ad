"""The library in one function."""

from pathlib import Path
from typing import Any

from .runs import Result, Specification, train

__all__ = ["learn"]


def learn(
    task: str = "pendulum",
    method: str = "sbsrl",
    *,
    seed: int = 0,
    preset: str = "cpu",
    out: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Learns the task and returns every episode and the policy.

    **Arguments:** the names of `sbsrl tasks` and `sbsrl methods`; `out`, a new run folder (by default nothing is
    written); and any setting of `sbsrl.settings.Settings` by its name, such as `episodes=5`.
    """
    spec = Specification.make(task, method, seed, preset, settings)
    return train(spec, None if out is None else Path(out))
