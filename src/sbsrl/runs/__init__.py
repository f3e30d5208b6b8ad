"""Runs on disk: folder, checkpoint, resume."""

from .begin import begin, default_folder, resume
from .folder import RunFolder
from .train import Halted, Result, train
from .view import RunView

__all__ = ["Halted", "Result", "RunFolder", "RunView", "begin", "default_folder", "resume", "train"]
