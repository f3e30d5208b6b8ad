"""Runs on disk: folder, checkpoint, resume."""

from .folder import RunFolder
from .train import Result, Specification, resume, train

__all__ = ["Result", "RunFolder", "Specification", "resume", "train"]
