"""Runs on disk: folder, checkpoint, resume, and looking at them again."""

from .begin import begin, default_folder, resume
from .check import Finding, check
from .evaluate import evaluate
from .export import export
from .folder import RunFolder
from .load import load
from .look import look_at, look_at_last
from .prior import make_prior
from .replay import Replay, replays
from .train import Halted, Result, train
from .view import RunView

__all__ = [
    "Finding",
    "Halted",
    "Replay",
    "Result",
    "RunFolder",
    "RunView",
    "begin",
    "check",
    "default_folder",
    "evaluate",
    "export",
    "load",
    "look_at",
    "look_at_last",
    "make_prior",
    "replays",
    "resume",
    "train",
]
