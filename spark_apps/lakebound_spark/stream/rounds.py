"""Further rounds of a batch: what the driver's consumer has meanwhile lands at once, before Spark plans its next batch.

Spark takes 20 to 30 ms to end a batch and to plan the next one, as long as the rest of a small batch does. It is only done
where a commit leaves no file behind (decision 31), and where the driver reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.marks import NextOffsets, lag
from lakebound.spec.pipeline import parse_freshness
from lakebound_spark.batch.batch import BatchLander
from lakebound_spark.stream.stop_signal import StopSignal

_MOST_SECONDS = 10.0
"""Only Spark finds new partitions."""
_WAIT_SECONDS = 0.1
"""How soon an end that is asked for is noticed."""
_BACKLOG_RECORDS = 10_000
"""That many at once are a backlog, of which Spark plans a larger batch."""


class Rounds:
    """Says, batch by batch, what there is to land beyond what Spark has planned."""

    def __init__(self, run: RunSpec, lander: BatchLander, stop: StopSignal) -> None:
        """Read nothing yet.

        Args:
            run: The orders.
            lander: Reads what comes.
            stop: Ends the rounds.
        """
        self._is_wanted = may_have_rounds(run)
        self._most_records = run.spec.limits.max_records_per_batch
        self._lander = lander
        self._stop = stop

    def after_planned(self, position: Callable[[], NextOffsets]) -> Iterator[NextOffsets]:
        """Yield the next offsets of each further round, until Spark is to plan a batch again.

        Args:
            position: Returns the next offset to read of every partition, after what was yielded has landed.
        """
        deadline, landed = time.monotonic() + _MOST_SECONDS, 0
        while self._is_wanted and landed < self._most_records and time.monotonic() < deadline and not self._stop.is_set():
            start = position()
            ends = self._lander.arrived(start, _WAIT_SECONDS)
            if ends is None:
                return
            waiting = lag(start, ends) or 0
            if waiting >= min(_BACKLOG_RECORDS, self._most_records):
                return
            if waiting:
                yield ends
                landed += waiting


def may_have_rounds(run: RunSpec) -> bool:
    """Return whether the pipeline asks for what comes at once, without an end, and no commit of its leaves a file behind.

    Args:
        run: The orders.
    """
    return parse_freshness(run.freshness) == 0.0 and run.until is None and not run.spec.tables
