"""What a chart is, before it is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Unit = Literal["seconds", "count", "cores", "per_second", "share", "bytes"]
MarkKind = Literal["incident", "maintenance", "start", "end"]


@dataclass(frozen=True)
class Line:
    """One line of a chart; a value per point, None where nothing is known."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        id: In the page.
        title: What it shows, for people.
        unit: Of all values.
        lines: In the order of the legend.
        has_band: Whether the space between the first and the last line is filled.
    """

    id: str
    title: str
    unit: Unit
    lines: tuple[Line, ...]
    has_band: bool = False


@dataclass(frozen=True)
class TimeRange:
    """What of time is shown: ``since`` and ``until`` are epoch seconds, ``times`` is when each point begins."""

    since: float
    until: float
    times: tuple[int, ...]


@dataclass(frozen=True)
class Mark:
    """Something that happened ``at`` (epoch seconds), and lasted ``until`` then if it lasted."""

    kind: MarkKind
    at: float
    what: str
    until: float | None = None


def gathered(marks: Iterable[Mark], slot_seconds: float) -> list[Mark]:
    """Return one mark for those of one kind in one slot of time, so that a picture holds no thousands.

    Args:
        marks: Oldest first.
        slot_seconds: Length of a slot.
    """
    slots: dict[tuple[MarkKind, int], list[Mark]] = {}
    for mark in marks:
        slots.setdefault((mark.kind, int(mark.at // slot_seconds)), []).append(mark)
    return [_one(own) for own in slots.values()]


def _one(marks: list[Mark]) -> Mark:
    if len(marks) == 1:
        return marks[0]
    first, last = marks[0], marks[-1]
    return Mark(first.kind, first.at, f"{len(marks)} × {first.kind}; the last one: {last.what}", last.until)
