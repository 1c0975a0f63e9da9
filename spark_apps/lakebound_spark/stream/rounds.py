"""Further rounds of a batch: what the driver's consumer has meanwhile lands at once, before Spark plans its next batch.

Spark takes 20 to 30 ms to end a batch and to plan the next one, as long as the rest of a small batch does. It is only done
for pipelines with topics or stores (decision 31), and where the driver reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.marks import NextOffsets, lag
from lakebound.spec.pipeline import parse_freshness
from lakebound_spark.landing.lander import BatchLander

_MOST_SECONDS = 10.0
"""Only Spark finds new partitions, and records of a partition of which the consumer gets nothing."""
_WAIT_SECONDS = 0.1
"""How soon an end that is asked for is noticed."""
_BACKLOG_RECORDS = 10_000
"""That many at once are a backlog, of which Spark plans a larger batch."""


class Rounds:
    """Says, batch by batch, what there is to land beyond what Spark has planned."""

    def __init__(self, run: RunSpec, lander: BatchLander) -> None:
        """Read nothing yet.

        Args:
            run: The orders.
            lander: Reads what comes.
        """
        self._is_wanted = may_have_rounds(run)
        self._most_ahead = run.spec.limits.max_records_per_batch
        self._lander = lander

    def after(
        self, planned: NextOffsets, position: Callable[[], NextOffsets], may_go_on: Callable[[], bool]
    ) -> Iterator[NextOffsets]:
        """Yield the next offsets of each further round, until Spark is to plan a batch again.

        Args:
            planned: Next offset to read of every partition after the batch that Spark has planned. Spark's next batch goes on
                from there by ``max_records_per_batch`` at most, so the position must not be further ahead.
            position: Returns the next offset to read of every partition, after what was yielded has landed.
            may_go_on: Whether the driver reads, and nobody has asked for an end.
        """
        deadline = time.monotonic() + _MOST_SECONDS
        while self._is_wanted and may_go_on() and time.monotonic() < deadline:
            start = position()
            if (lag(planned, start) or 0) >= self._most_ahead:
                return
            ends = self._lander.arrived(start, _WAIT_SECONDS)
            if ends is None:
                return
            waiting = lag(start, ends) or 0
            if waiting >= min(_BACKLOG_RECORDS, self._most_ahead):
                return
            if waiting:
                yield ends


def may_have_rounds(run: RunSpec) -> bool:
    """Return whether the pipeline asks for what comes at once, without an end, for a topic or a store.

    Args:
        run: The orders.
    """
    return parse_freshness(run.freshness) == 0.0 and run.until is None and bool(run.spec.other_targets)
