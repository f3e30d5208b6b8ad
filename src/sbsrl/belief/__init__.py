"""What is believed about the dynamics: nominal, samples, uncertainty."""

from .gp import SAMPLERS, GPBelief, GPOptions
from .protocol import Belief, Samples, Uncertainty
from .weights import WeightBelief

__all__ = ["SAMPLERS", "Belief", "GPBelief", "GPOptions", "Samples", "Uncertainty", "WeightBelief"]
