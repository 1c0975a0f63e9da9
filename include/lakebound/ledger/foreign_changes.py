"""Commits by which others changed rows of a table, as entries remember them until a person has acknowledged them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import Field

from lakebound.frozen import FrozenRecord

MOST_REMEMBERED = 20
"""In an entry; each commit repeats them. Of more, the newest are remembered."""
_MOST_TEXT = 80


class ForeignChange(FrozenRecord):
    """One commit without an entry that added or removed rows.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        at_ms: When it was committed, by the clock of who did it.
        operation: Such as DELETE, MERGE, or Iceberg's overwrite.
        by: The user, else the program, as far as the commit says.
        added: Rows that it added; None where it does not say.
        removed: Rows that it removed; None where it does not say.
    """

    version: str
    at_ms: int = 0
    operation: str = ""
    by: str = ""
    added: int | None = Field(default=None, ge=0)
    removed: int | None = Field(default=None, ge=0)

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"version {self.version} ({self.operation or 'unknown operation'}{by}: {self._rows()})"

    def _rows(self) -> str:
        if self.added is None and self.removed is None:
            return "number of rows unknown"
        parts = [f"{count:,} rows {what}" for count, what in ((self.added, "added"), (self.removed, "removed")) if count]
        return ", ".join(parts) or "rows rewritten"


def short(text: object) -> str:
    """Return a text of somebody else's commit as an entry remembers it."""
    return str(text or "")[:_MOST_TEXT]


def remembered(
    known: Iterable[ForeignChange], found: Iterable[ForeignChange], acknowledged: Collection[str] = ()
) -> tuple[ForeignChange, ...]:
    """Return what the next entry remembers, oldest first.

    Args:
        known: Of the entry before it.
        found: Committed since.
        acknowledged: Versions of which a person has said that they are right.
    """
    every = {one.version: one for one in (*known, *found)}
    kept = [one for version, one in every.items() if version not in acknowledged]
    return tuple(kept[-MOST_REMEMBERED:])
