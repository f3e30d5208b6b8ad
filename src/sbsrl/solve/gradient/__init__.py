"""Problem (1) for policies that are networks, by gradients through whole episodes on every sampled model."""

from .settings import GradientSettings
from .solver import PolicyGradient

__all__ = ["GradientSettings", "PolicyGradient"]
