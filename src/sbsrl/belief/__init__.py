"""What is believed about the system: nominal model, sampled models, uncertainty.

Each kind of belief is in modules of its own, which are imported when it is chosen (`sbsrl.parts`).
"""

from .protocol import Belief, Calibrated, Samples, Uncertainty

__all__ = ["Belief", "Calibrated", "Samples", "Uncertainty"]
