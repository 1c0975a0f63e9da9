"""How it is told that values of a record do not fit the schema: ``amount: 'abc' is not a DECIMAL(12,2)``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from lakebound.plain_text import visible_text

MOST_NAMED = 3
"""Number of fields that are named; then the text says that there are more."""
MOST_SHOWN = 60
"""Number of characters of a name or value that are shown."""
_MOST_NAMES = 20
"""Of fields that the schema does not have; who adds them to it wants to see all of them."""
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_text_of = msgspec.json.Decoder(str).decode


class MisfitError(ValueError):
    """Values do not fit: the path to each of the first, and what is wrong with it."""

    def __init__(self, told: str = "") -> None:
        super().__init__(told)
        self.found: list[tuple[str, str]] = [("", told)] if told else []

    @property
    def is_enough(self) -> bool:
        """Whether no more need be looked for."""
        return len(self.found) > MOST_NAMED

    def add(self, step: str, inside: MisfitError) -> None:
        """Add what was found in a part of the value.

        Args:
            step: From the value to the part.
            inside: What was found there.
        """
        self.found += [(step + path, told) for path, told in inside.found]

    def told(self) -> str:
        """Return the first ones in one line."""
        named = [f"{path.removeprefix('.')}: {told}" for path, told in self.found[:MOST_NAMED]]
        return "; ".join(named) + ("; and more" if self.is_enough else "")


def names_told(names: Sequence[str]) -> str:
    """Return names of a record's fields in one line: a record may have any number of any length."""
    told = ", ".join(visible_text(name)[:MOST_SHOWN] for name in names[:_MOST_NAMES])
    return told if len(names) <= _MOST_NAMES else f"{told} and {len(names) - _MOST_NAMES} more"


def field_step(name: str) -> str:
    """Return the step to a field of an object."""
    return "." + (name if _PLAIN.fullmatch(name) else f"`{name[:MOST_SHOWN]}`")


def key_step(key: str) -> str:
    """Return the step to the value of a map's key."""
    return f"[{_quoted(key)}]"


def shown(raw: bytes) -> str:
    """Return a JSON value as its reader knows it, cut."""
    first = raw[:1]
    if first in (b"{", b"["):
        return "an object" if first == b"{" else "an array"
    if first == b'"':
        return _quoted(_text_of(raw))
    return raw.decode() if len(raw) <= MOST_SHOWN else raw[:MOST_SHOWN].decode() + "..."


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= MOST_SHOWN else repr(text[:MOST_SHOWN]) + "..."
