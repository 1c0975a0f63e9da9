"""What the quarantine says of a late record, written and read in one place: which window it missed, by which watermark.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from lakebound.formats.reasons import LATE, LATE_IN_PART
from lakebound.spec.times import in_utc

_TOLD = re.compile(
    r"(?:its window|(\d+) of its (\d+) windows, the first of them) "
    r"from (.+ UTC) to (.+ UTC) was closed by the watermark (.+? UTC)(?:, which was (\d+) ms behind)?"
)


@dataclass(frozen=True)
class MissedWindow:
    """The first window of a record that was closed when the record came.

    Attributes:
        start_ms: Its start, in epoch milliseconds.
        end_ms: Its end.
        watermark_ms: With which Spark ran the batch before: windows that end at or before it were closed.
        closed: How many windows of the record were closed.
        windows: How many windows the record has; more than one where windows slide.
        delay_ms: The watermark's delay in the YAML at that time; None where the text does not name it.
    """

    start_ms: int
    end_ms: int
    watermark_ms: int
    closed: int = 1
    windows: int = 1
    delay_ms: int | None = None

    @property
    def reason(self) -> str:
        """The reason in the quarantine."""
        return LATE if self.closed == self.windows else LATE_IN_PART

    @property
    def late_ms(self) -> int:
        """How long its first window had been closed: a watermark that is longer by more than this would have kept it open."""
        return self.watermark_ms - self.end_ms

    def __str__(self) -> str:
        which = "its window" if self.windows == 1 else f"{self.closed} of its {self.windows} windows, the first of them"
        start, end, watermark = map(in_utc, (self.start_ms, self.end_ms, self.watermark_ms))
        behind = "" if self.delay_ms is None else f", which was {self.delay_ms} ms behind"
        return f"{which} from {start} to {end} was closed by the watermark {watermark}{behind}"


def read_missed(error: str | None) -> MissedWindow | None:
    """Return what the error of a late record says; None where it is no such text.

    Args:
        error: Of the quarantine.
    """
    told = _TOLD.fullmatch(error or "")
    if told is None:
        return None
    start_ms, end_ms, watermark_ms = (_milliseconds(text) for text in told.groups()[2:5])
    delay_ms = None if told[6] is None else int(told[6])
    return MissedWindow(start_ms, end_ms, watermark_ms, int(told[1] or 1), int(told[2] or 1), delay_ms)


def _milliseconds(text: str) -> int:
    moment = datetime.fromisoformat(text.removesuffix(" UTC")).replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
