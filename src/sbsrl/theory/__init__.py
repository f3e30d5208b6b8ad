"""The paper's theory as pure functions."""

from .confidence import CONVENTIONS, confidence_width

__all__ = ["CONVENTIONS", "confidence_width"]
