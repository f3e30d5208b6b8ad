"""What is believed by several probabilistic networks (section 5.2 and appendix G of the paper)."""

from .belief import EnsembleBelief
from .settings import EnsembleSettings

__all__ = ["EnsembleBelief", "EnsembleSettings"]
