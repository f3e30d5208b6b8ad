"""Problem (1) for policies that are networks, by gradients through episodes on every sampled model."""

from .settings import GradientSettings

__all__ = ["GradientSettings"]
