"""Objects that a run began with and that have no name to be found by: said once more by whoever goes on with it."""

from collections.abc import Mapping
from typing import Any

from ..errors import UserError
from ..own.names import LOCAL, bind

__all__ = ["bind_again", "words_in"]


def bind_again(config: Mapping[str, Any], things: Mapping[str, Any]) -> None:
    """Lets the local words of a configuration stand for these things, in the order of the words."""
    for what, thing in things.items():
        prefix = f"{LOCAL}{what}-"
        found = {word for word in words_in(config) if word.startswith(prefix)}
        words = sorted(found, key=lambda word: int(word.rpartition("-")[2]))
        several = list(thing) if isinstance(thing, list) else [thing]
        if len(words) != len(several):
            raise UserError(
                f"{len(several)} objects were given as {what}, and the run began with {len(words)} that have no name; "
                "give as many."
            )
        for word, each in zip(words, several, strict=True):
            bind(word, each)


def words_in(content: Any) -> list[str]:
    """All texts in a configuration; of NAME=SOURCE the source."""
    if isinstance(content, str):
        return [content.rpartition("=")[2]]
    parts = content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ()
    return [word for part in parts for word in words_in(part)]
