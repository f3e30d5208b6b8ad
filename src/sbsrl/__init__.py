"""Learn to control an unknown system without breaking it: Sampling-Based Safe Reinforcement Learning."""

from ._jax import configure

configure()

from .experiment import make_experiment, make_learner  # noqa: E402
from .loop import Experiment, Learner, algorithm_1  # noqa: E402
from .tasks import make_task  # noqa: E402

__all__ = ["Experiment", "Learner", "algorithm_1", "make_experiment", "make_learner", "make_task"]
