"""The one exception that is the user's to repair."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UserError", "unknown"]


class UserError(Exception):
    """A mistake in what was asked: one line that says what was seen and what to do. The program exits with 2."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"choose one of: {', '.join(names)}."
    return UserError(f"there is no {kind} '{name}'; {hint}")
