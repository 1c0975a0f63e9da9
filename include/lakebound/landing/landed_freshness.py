"""How fresh records were when they landed, over the last minutes, as the application itself sees it. Never flatters.

Of a batch it knows how many records it had and when the oldest of them was produced. Each of them counts as old as that one,
so the figure is too high by up to the time that a batch spans, and never too low. What a reader sees is measured from outside
(``lakebound.inspection.visible_freshness``).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field

WINDOW_SECONDS = 300.0
_SLICE_SECONDS = 1.0
_MOST_SLICES = 1000
"""More than there are in the window, for clocks that are set back."""
_NOISE_MS = 1e-3
"""What the difference of two times in seconds is wrong by."""


@dataclass
class _Slice:
    """What landed within a second: the records by their age in milliseconds, rounded up."""

    began_at: float
    newest_at: float
    records: Counter[int] = field(default_factory=Counter)


class LandedFreshness:
    """The records of the last five minutes, counted by their age: there may be 30 batches in a second."""

    def __init__(self) -> None:
        self._slices: deque[_Slice] = deque()
        self._records: Counter[int] = Counter()

    def add(self, committed_at: float, oldest_record_ms: int, records: int) -> None:
        """Remember a batch.

        Args:
            committed_at: Epoch seconds.
            oldest_record_ms: Kafka's timestamp of its oldest record.
            records: How many it had.
        """
        if records <= 0:
            return
        if not self._slices or not 0 <= committed_at - self._slices[-1].began_at < _SLICE_SECONDS:
            self._slices.append(_Slice(committed_at, committed_at))
        age_ms = math.ceil(max(0.0, committed_at * 1000 - oldest_record_ms) - _NOISE_MS)
        self._slices[-1].newest_at = committed_at
        self._slices[-1].records[age_ms] += records
        self._records[age_ms] += records

    def p99_seconds(self, now: float) -> float | None:
        """Return the age that 99 of 100 records of the last five minutes had at most; None without any."""
        while self._slices and (self._slices[0].newest_at < now - WINDOW_SECONDS or len(self._slices) > _MOST_SLICES):
            self._forget(self._slices.popleft())
        if not self._slices:
            return None
        left = self._records.total() * 0.01
        for age_ms in sorted(self._records, reverse=True):
            left -= self._records[age_ms]
            if left < 0:
                return age_ms / 1000
        return 0.0

    def _forget(self, old: _Slice) -> None:
        for age_ms, records in old.records.items():
            self._records[age_ms] -= records
            if not self._records[age_ms]:
                del self._records[age_ms]
