"""What a batch did, and how long each of its steps took."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.trace import Span
from lakebound_spark.batch.lanes import WrittenBy
from lakebound_spark.batch.targets import Counts


@dataclass
class BatchReport:
    """What a batch did. Commits to different tables, which are timed, too, run side by side.

    Without a ``lane`` there was nothing to land.
    ``reasons`` are those of its quarantined records (``lakebound_spark.batch.bad_reasons``): they hold no values.
    ``ended_early`` says that a batch in pieces was left when an end was asked for.
    """

    batch: int
    lane: Lane | None = None
    written_by: WrittenBy | None = None
    counts: Counts = field(default_factory=Counts)
    reasons: Counter[str] = field(default_factory=Counter)
    newest_record_ms: int | None = None
    oldest_record_ms: int | None = None
    spans: list[Span] = field(default_factory=list)
    ended_early: bool = False

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Note how long what is inside took."""
        began_ms, started = time.time() * 1000, time.perf_counter()
        try:
            yield
        finally:
            self.spans.append(Span(step=step, began_ms=began_ms, milliseconds=(time.perf_counter() - started) * 1000))

    @property
    def durations_ms(self) -> dict[str, float]:
        """Milliseconds per step."""
        spent: dict[str, float] = {}
        for span in self.spans:
            spent[span.step] = round(spent.get(span.step, 0.0) + span.milliseconds, 1)
        return spent
