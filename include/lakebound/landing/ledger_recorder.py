"""Notes each batch of an application, and writes the newest ones down every ten seconds. The stream never waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import TableProgress
from lakebound.control.recent_ledger import (
    MOST_BATCHES,
    LandedBatch,
    Ranges,
    RecentLedger,
    TableCommit,
    bounded_ranges,
    read_recent_ledger,
    write_recent_ledger,
)
from lakebound.landing.recorder import Recorder
from lakebound.ledger.entry import Offsets, common

log = logging.getLogger(__name__)

_EVERY_SECONDS = 10.0
_EVERY_SECONDS_IN_A_STORE = 60.0


class LedgerRecorder(Recorder):
    """The newest batches. ``hold`` and ``add`` are for the stream's thread; ``tick``, ``end`` and ``close`` are for others."""

    def __init__(
        self,
        control: ControlFolder,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("the newest batches")
        self._control = control
        self._clock = clock
        self._monotonic = monotonic
        self._every = _EVERY_SECONDS_IN_A_STORE if control.is_shared else _EVERY_SECONDS
        self._noting = threading.Lock()
        self._batches: deque[LandedBatch] = deque(maxlen=MOST_BATCHES)
        self._coverages: tuple[Offsets, ...] = ()
        self._seen: Mapping[str, TableProgress] = {}
        self._earlier: tuple[LandedBatch, ...] | None = None
        self._written_at = monotonic()
        self._has_more = False

    def hold(self, coverages: Sequence[Offsets]) -> None:
        """Note what each table holds before the first batch, which may be long in coming."""
        with self._noting:
            self._coverages, self._has_more = tuple(coverages), True

    def add(self, batch: LandedBatch, read: Offsets, coverages: Sequence[Offsets], tables: Mapping[str, TableProgress]) -> None:
        """Note a batch.

        Args:
            batch: What it did; its ranges and tables are filled in here.
            read: What it read.
            coverages: What each table holds now.
            tables: All that this application has committed so far, by table id.
        """
        try:
            ranges = {topic: offsets.partitions for topic, offsets in read.items()}
            count = sum(map(len, ranges.values()))
            committed = _newly_committed(self._seen, tables)
            noted = replace(batch, ranges=bounded_ranges(ranges), partitions=count, tables=committed)
            with self._noting:
                self._batches.append(noted)
                self._coverages, self._seen, self._has_more = tuple(coverages), tables, True
        except Exception:
            log.exception("a batch is missing in the list of the newest batches")

    def tick(self) -> None:
        """Write what is new, every ten seconds, each minute in a store; called about once a second by who has the lease."""
        if self._has_more and self._monotonic() - self._written_at >= self._every:
            self._write()

    def end(self) -> None:
        """Write what is new, and nothing any more afterwards."""
        if self._has_more:
            self._write()
        self.close()

    def _write(self) -> None:
        if not self._guarded(self._write_batches):
            self._has_more = True

    def _write_batches(self) -> None:
        with self._noting:
            self._has_more, self._written_at = False, self._monotonic()
            batches, coverages = tuple(self._batches), self._coverages
        if self._earlier is None:
            self._earlier = _earlier(self._control)
        write_recent_ledger(self._control, RecentLedger(self._clock(), _held_by_all(coverages), (*self._earlier, *batches)))


def _held_by_all(coverages: Sequence[Offsets]) -> Ranges:
    both = reduce(common, coverages) if coverages else {}
    return {topic: offsets.partitions for topic, offsets in both.items()}


def _earlier(control: ControlFolder) -> tuple[LandedBatch, ...]:
    """Return the batches of applications before; none where the file is torn."""
    try:
        known = read_recent_ledger(control)
    except ValueError:
        return ()
    return known.batches if known is not None else ()


def _newly_committed(before: Mapping[str, TableProgress], tables: Mapping[str, TableProgress]) -> dict[str, TableCommit]:
    found = {}
    for table, now in tables.items():
        seen = before.get(table)
        if seen is None or now.version != seen.version:
            found[table] = TableCommit(now.version, max(0, now.rows - (seen.rows if seen is not None else 0)))
    return found
