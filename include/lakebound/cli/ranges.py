"""Ranges of offsets in one line, as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebound.ledger.entry import Offsets

MAX_INTERVALS_SHOWN = 6


def ranges(offsets: Offsets) -> str:
    """Return the first ranges, and how many more there are; "-" without any."""
    shown = [
        f"{topic}/{partition} [{start}, {end})"
        for topic, found in sorted(offsets.items())
        for partition, intervals in sorted(found.partitions.items())
        for start, end in intervals
    ]
    rest = len(shown) - MAX_INTERVALS_SHOWN
    return ", ".join(shown[:MAX_INTERVALS_SHOWN]) + (f" and {rest} more" if rest > 0 else "") or "-"
