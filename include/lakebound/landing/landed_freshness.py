"""How fresh records were when they landed, over the last minutes, as the application itself sees it. Never flatters.

Of a batch it knows how many records it had and when the oldest of them was produced. Each of them counts as old as that one,
so the figure is too high by up to the time that a batch spans, and never too low. What a reader sees is measured from outside
(``lakebound.inspection.visible_freshness``).
"""

from __future__ import annotations

from collections import deque

WINDOW_SECONDS = 300.0
_MAX_BATCHES = 4096


class LandedFreshness:
    """The batches of the last five minutes."""

    def __init__(self) -> None:
        self._batches: deque[tuple[float, float, int]] = deque(maxlen=_MAX_BATCHES)

    def add(self, committed_at: float, oldest_record_ms: int, records: int) -> None:
        """Remember a batch.

        Args:
            committed_at: Epoch seconds.
            oldest_record_ms: Kafka's timestamp of its oldest record.
            records: How many it had.
        """
        if records > 0:
            self._batches.append((committed_at, max(0.0, committed_at - oldest_record_ms / 1000), records))

    def p99_seconds(self, now: float) -> float | None:
        """Return the age that 99 of 100 records of the last five minutes had at most; None without any."""
        while self._batches and self._batches[0][0] < now - WINDOW_SECONDS:
            self._batches.popleft()
        left = sum(records for _, _, records in self._batches) * 0.01
        if not self._batches:
            return None
        for _, age, records in sorted(self._batches, key=lambda batch: -batch[1]):
            left -= records
            if left < 0:
                return round(age, 3)
        return 0.0
