"""`learn`: a run in one call, for use from Python."""

from pathlib import Path
from typing import Any

from .methods import DEFAULT
from .own.wording import in_words
from .runs import Result, begin
from .validation import Place

__all__ = ["learn"]


def learn(
    system: Any = "pendulum",
    method: str = DEFAULT.name,
    *,
    seed: int = 0,
    preset: str = "cpu",
    out: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Learns to control a system and returns every episode and the policy.

    **Arguments:**

    - `system`: one of `sbsrl tasks`; or a system of your own: `"gymnasium:ID"`, a `gymnasium.Env`, a function that
      makes one, a pair of functions `reset(rng)`, `step(x, a, rng)`, a module that has both, or the name of any of
      these, `"module:name"`;
    - `method`: one of `sbsrl methods`;
    - `out`: a new run folder, with pictures (by default nothing is written);
    - any setting of `sbsrl train --help` by its name, such as `episodes=5`, or by its full name, such as
      `**{"solver.horizon": 25}`.

    Of a system of your own `budget` must be said: how much an episode may cost. `cost` is where the cost of a step is:
    `"info"` (that is `info["cost"]`), `"info:KEY"`, a function of (observation, action, next observation), or a
    mapping from names to these, when `budget` is one, too. `reward` and `simulator` may be functions as well.
    """
    spec, changes = in_words(system, settings)
    result = begin(spec, method, seed, preset, changes, None if out is None else Place().read("out", out))
    if result.folder is not None:
        from .report.pictures import draw_pictures  # noqa: PLC0415  (importing matplotlib takes a second)

        draw_pictures(result)
    return result
