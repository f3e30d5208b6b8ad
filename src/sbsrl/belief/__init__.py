"""What is believed about the dynamics: nominal, samples, uncertainty."""

from .gp import GPBelief
from .protocol import Belief, Samples, Uncertainty

__all__ = ["Belief", "GPBelief", "Samples", "Uncertainty"]
