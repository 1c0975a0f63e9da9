"""Offsets that are permanently lost. Values only."""

from __future__ import annotations

from lakebound.frozen import Frozen


class LostRange(Frozen):
    """Offsets [start, end) of one partition that nothing can bring back."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def records(self) -> int:
        """How many offsets; markers and compacted records are among them."""
        return self.end - self.start
