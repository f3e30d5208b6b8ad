"""Learn to control an unknown system without breaking it: Sampling-Based Safe Reinforcement Learning."""

from ._jax import configure

configure()

from .api import learn  # noqa: E402  (JAX is configured first)
from .errors import UserError  # noqa: E402
from .methods import METHODS  # noqa: E402
from .offline import OfflineData, collect  # noqa: E402
from .runs import Result, RunFolder, resume  # noqa: E402
from .tasks import TASKS, make_task  # noqa: E402

__all__ = [
    "METHODS",
    "TASKS",
    "OfflineData",
    "Result",
    "RunFolder",
    "UserError",
    "collect",
    "learn",
    "make_task",
    "resume",
]
