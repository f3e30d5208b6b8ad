"""Makes the pictures in this folder: each task in the middle of an episode of a telling policy (`make pictures`)."""

import io
import math
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from PIL import Image

from sbsrl.atomic import write_atomically
from sbsrl.systems.drawable import MODE
from sbsrl.tasks import TASKS, make_task

HERE = Path(__file__).parent
COLOURS = 96
"""Of a picture: they are small files, and without gradients that would show it."""


class Moment(NamedTuple):
    """Which step of which episode is shown."""

    step: int
    seed: int
    behaviour: str = ""
    """One of the task's own."""
    push: Callable[[np.ndarray], float | tuple[float, ...]] = float
    """Otherwise the action, of the observation."""


def _harbour(x: np.ndarray) -> tuple[float, ...]:
    """Rows from the mouth into the basin, and then goes round under engine."""
    angle = math.atan2(x[1] + 7.0, x[0] + 20.0) + math.pi / 2
    return math.cos(angle), math.sin(angle), 1.0


SHOWN = {
    "pendulum": Moment(21, 0, push=lambda x: 1.0 if x[2] >= 0 else -1.0),
    "cartpole": Moment(11, 0, push=lambda x: 0.7 if x[4] * x[1] <= 0 else -0.7),
    "ledge": Moment(2, 0, push=lambda x: 0.3),
    "canal": Moment(16, 0, push=_harbour),
    "rwrl-cartpole": Moment(124, 3, "pump"),
    "rwrl-humanoid": Moment(240, 2, "stand"),
    "rwrl-quadruped": Moment(130, 2, "trot"),
    "go-to-goal": Moment(95, 1, "driver"),
    "race-car": Moment(170, 5, "careless"),
}


def picture(name: str, moment: Moment) -> bytes:
    """A PNG of that moment."""
    task, key = make_task(name), jax.random.key(moment.seed)
    with closing(task.connect(MODE)) as env:
        x, _ = env.reset(seed=moment.seed)
        policy: Any = task.behaviours[moment.behaviour](key) if moment.behaviour else None
        state = policy.init() if policy else None
        for t in range(moment.step):
            if policy:
                action, state, _ = policy.act(jax.device_put(x), state, jax.random.fold_in(key, t))
            else:
                action = np.atleast_1d(moment.push(x))
            x = env.step(np.asarray(action, float))[0]
        shown = Image.fromarray(np.asarray(env.render()))
    buffer = io.BytesIO()
    shown.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    for name in sys.argv[1:] or TASKS:
        write_atomically(HERE / f"{name}.png", picture(name, SHOWN[name]))
        print(HERE / f"{name}.png")
