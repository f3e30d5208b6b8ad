"""Runs on disk: folder, checkpoint, resume, and looking at them again."""

from .begin import begin, default_folder, resume
from .evaluate import evaluate
from .folder import RunFolder
from .load import load
from .look import look_at, look_at_last
from .train import Halted, Result, train
from .view import RunView

__all__ = [
    "Halted",
    "Result",
    "RunFolder",
    "RunView",
    "begin",
    "default_folder",
    "evaluate",
    "load",
    "look_at",
    "look_at_last",
    "resume",
    "train",
]
