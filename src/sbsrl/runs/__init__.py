"""Runs on disk: folder, checkpoint, resume."""

from .folder import RunFolder
from .train import Halted, Result, resume, train
from .view import RunView

__all__ = ["Halted", "Result", "RunFolder", "RunView", "resume", "train"]
