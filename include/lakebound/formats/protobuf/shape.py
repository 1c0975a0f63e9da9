"""What is read of messages of one kind. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """What is read of messages.

    Attributes:
        names: Of all their fields, by number.
        path: Names that lead to them.
        wanted: Tags (number and kind) of the fields that are needed.
        oneofs: Tags of the fields of which a message has one at most.
    """

    names: Mapping[int, str]
    path: tuple[str, ...] = ()
    wanted: set[int] = field(default_factory=set)
    oneofs: set[frozenset[int]] = field(default_factory=set)

    def told(self, number: int) -> str:
        """Return a field in words."""
        return ".".join((*self.path, self.names.get(number, f"field {number}")))
