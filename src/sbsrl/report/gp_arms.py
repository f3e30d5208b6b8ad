"""The arms that the figures of the Gaussian-process experiments compare.

Arms of two figures that have equal settings share their runs (runs/study.py).
"""

from ..runs.study import Arm
from ..tasks import TASKS

__all__ = ["GP_TASKS", "actsafe", "demanding", "own", "sbsrl"]

GP_TASKS = ("pendulum", "cartpole")


def own(task: str, setting: str) -> float:
    """The task's own value of a setting, such as d_sigma^0 or the tightening."""
    return float(TASKS[task].own(setting))


def sbsrl(task: str, label: str = "SBSRL", **changes: float | str | bool) -> Arm:
    """SBSRL with these settings."""
    return Arm(label, task, "sbsrl", tuple(changes.items()))


def demanding(task: str, label: str, factor: float) -> Arm:
    """SBSRL with so many times the task's own d_sigma^0; with none of it, that is the greedy method."""
    if factor == 0:
        return Arm(label, task, "greedy")
    return sbsrl(task, label, exploration_threshold=factor * own(task, "exploration_threshold"))


def actsafe(task: str, switch: int) -> Arm:
    """ActSafe that explores purely for so many episodes."""
    return Arm(f"ActSafe-{switch}", task, "actsafe", (("actsafe_episodes", switch),))
