"""What the page says of a row's lanes, and of whether commits wait for the disk. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

NOT_LOOKED_AT = "–"


def lanes_told(of_runs: Iterable[Mapping[str, int]]) -> str:
    """Return which lanes made the batches of some runs, most first: ``direct 98%, cluster 2%``."""
    batches: Counter[str] = Counter()
    for lanes in of_runs:
        batches.update(lanes)
    if not batches.total():
        return NOT_LOOKED_AT
    return ", ".join(f"{lane} {times / batches.total():.0%}" for lane, times in batches.most_common() if times)


def syncs_told(of_runs: Iterable[float | None]) -> str:
    """Return the median of some runs' syncs per second, of those in which somebody counted."""
    rates = [rate for rate in of_runs if rate is not None]
    return f"{statistics.median(rates):,.1f}" if rates else NOT_LOOKED_AT
