"""Offsets that are permanently lost. Values only."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LostRange(BaseModel):
    """Offsets [start, end) of one partition that nothing can bring back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    partition: int
    start: int
    end: int

    @property
    def records(self) -> int:
        """How many offsets; markers and compacted records are among them."""
        return self.end - self.start
