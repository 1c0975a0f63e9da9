"""The tables and topics of a running application: what each holds, and what was read for it without giving rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, add, count, high_water_marks, missing, new_commit_id
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.hours import RowHours
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.sources import UNKNOWN, Source, SourceVersion, remembered
from lakebound.ledger.topics import TopicIdPartition
from lakebound.ledger.windows import WindowState
from lakebound.tables.commit import Committed, commit_entry
from lakebound.tables.erased import erased_among, lacking, read_erased
from lakebound.tables.erasing import ErasesRows
from lakebound.tables.table import DataFile, LedgerView
from lakebound.tables.target import LandingTarget


@dataclass(frozen=True)
class Counts:
    """Records of a range: ``read = filtered + landed + quarantined``; ``rows`` are of the table."""

    read: int = 0
    filtered: int = 0
    landed: int = 0
    quarantined: int = 0
    rows: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(
            self.read + other.read,
            self.filtered + other.filtered,
            self.landed + other.landed,
            self.quarantined + other.quarantined,
            self.rows + other.rows,
        )


@dataclass(frozen=True)
class Writer:
    """Who writes: what every commit of this application has in common.

    Attributes:
        pipeline: The pipeline.
        epoch: Of its lease.
        check_lease: Raises LeaseLostError when the lease is gone.
        attempts: How often a commit is tried.
        kind: That of its batches.
        quarantine: Id of the pipeline's quarantine table, for the entries with which an application opens its tables.
        give_turn: Waits while somebody slower wants to commit to a table (``lakebound.control.turns``).
        take_over: Commits what maintenance has prepared for a table, and returns the ledger as it then stands
            (``lakebound.tables.take_over``).
        references: Versions of the reference data that the transform reads at present, by name.
        delivery: How rows come to topics; None: exactly once, with the entry.
        source: The code that makes the rows, for the entries with which an application opens its tables.
        schemas: What entries say of the schemas that records are read with at present, by registry.
    """

    pipeline: str
    epoch: int
    check_lease: Callable[[], None]
    attempts: int
    kind: Literal["land", "replay", "release"] = "land"
    quarantine: str | None = None
    give_turn: Callable[[str, Callable[[], bool]], float] = lambda table, has_moved_on: 0.0
    take_over: Callable[[LandingTarget, LedgerView], LedgerView] = lambda table, view: view
    references: Callable[[], Mapping[str, str]] = dict
    delivery: Literal["at_least_once"] | None = None
    source: Source = UNKNOWN
    schemas: Callable[[], Mapping[str, Mapping[str, str]]] = dict


@dataclass(frozen=True)
class Origin:
    """Where the rows of a commit come from, as the entry says it; None is left out.

    Attributes:
        batch: Number of Spark's batch.
        lane: Who wrote the files.
        timestamps_ms: Kafka's earliest and latest timestamp of the records, in epoch milliseconds.
        hours: To which hours the rows belong.
        windows: Of a pipeline with state: the batch, and from where its open windows are rebuilt.
    """

    batch: int | None = None
    lane: Literal["driver", "cluster"] | None = None
    timestamps_ms: tuple[int, int] | None = None
    hours: RowHours | None = None
    windows: WindowState | None = None


UNTOLD = Origin()
"""Of a commit without rows."""


@dataclass
class Target:
    """One table. ``pending`` are offsets that were read and gave no row of this table, so no commit carries them yet.

    ``was_real_time`` says that the newest entry before this application's own was one of real time. ``erased`` are offsets of
    rows that were erased by decision, as far as the table did not hold them when its ledger was read: they are not landed.
    """

    table: LandingTarget
    view: LedgerView
    pending: Offsets = field(default_factory=dict)
    pending_counts: Counts = field(default_factory=Counts)
    last_entry_at: float = field(default_factory=time.monotonic)
    last_commit_at: float | None = None
    commits: int = 0
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    was_real_time: bool = False
    erased: Mapping[TopicIdPartition, Intervals] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The table's id."""
        return self.table.spec.id

    @property
    def coverage(self) -> Offsets:
        """What is landed, or was read and gives no row."""
        return add(self.view.coverage, self.pending)

    def refresh(self) -> None:
        """Read the ledger again and forget what is pending: it will be read again."""
        self.view = self.table.read_ledger()
        self.pending, self.pending_counts = {}, Counts()
        self.know_erased()

    def know_erased(self) -> None:
        """Read which rows were erased from the table, as the ledger that was read last names them; mostly none."""
        entry, table = self.view.entry, self.table
        if entry is None or entry.erased is None or not isinstance(table, ErasesRows):
            self.erased = {}
            return
        self.erased = lacking(read_erased(table, entry), self.view.coverage)

    def leave_out_erased(self, wanted: Offsets) -> None:
        """Take erased offsets among those that are to be landed as read: they give no row."""
        if self.erased:
            self.remember(missing(erased_among(wanted, self.erased), self.coverage), Counts())

    def remember(self, landed: Mapping[str, TopicOffsets], counts: Counts) -> None:
        """Keep offsets without rows until the next commit."""
        self.pending = add(self.pending, landed)
        self.pending_counts = self.pending_counts.plus(counts)

    def commit(
        self,
        writer: Writer,
        landed: Mapping[str, TopicOffsets],
        counts: Counts,
        files: list[DataFile],
        origin: Origin = UNTOLD,
        *,
        kind: Literal["open", "recall"] | None = None,
        releases: Mapping[str, TopicOffsets] | None = None,
        erased: ErasedFile | None = None,
    ) -> Committed:
        """Commit the files with an entry for ``landed`` and everything pending, or for what is released from quarantine.

        Args:
            writer: What all commits of this application have in common.
            landed: Offsets of the batch, by topic; empty when nothing new is covered.
            counts: Records and rows of these offsets.
            files: Data files that lie in the table's folder already; an entry may come without any.
            origin: Where the rows come from.
            kind: Kind of the entry; None takes the writer's own kind.
            releases: Covered offsets whose outcome this commit changes, by topic; None without any.
            erased: How the entry names the rows that were erased from the table; None: as the entry before it.

        Raises:
            LeaseLostError: A later application writes to the table.
            BatchOverlapError: Somebody else landed some of these offsets meanwhile.
            ReleaseOvertakenError: What is to be released is no longer what it was.
            CommitUnknownError: No attempt succeeded.
        """
        counts = counts.plus(self.pending_counts)
        draft = Entry(
            kind=kind or writer.kind,
            pipeline=writer.pipeline,
            epoch=writer.epoch,
            commit=new_commit_id(),
            batch=origin.batch,
            range=add(self.pending, landed),
            releases=dict(releases or {}),
            read=counts.read,
            filtered=counts.filtered,
            landed=counts.landed,
            quarantined=counts.quarantined,
            rows=counts.rows,
            lane=origin.lane,
            timestamps_ms=origin.timestamps_ms,
            references=dict(writer.references()) if kind is None else {},
            schemas={name: dict(one) for name, one in writer.schemas().items()} if kind is None else {},
            hours=origin.hours,
            windows=origin.windows,
            quarantine=writer.quarantine if kind == "open" else None,
            sources=self._sources(writer.source) if kind == "open" else (),
            erased=erased,
            delivery=writer.delivery if self.table.spec.format == "topic" else None,
        )
        writer.give_turn(self.id, self.table.has_moved_on)
        committed = commit_entry(
            self.table,
            self.view,
            files,
            draft,
            own_epoch=writer.epoch,
            check_lease=writer.check_lease,
            attempts=writer.attempts,
        )
        self.view = committed.view
        self.pending, self.pending_counts = {}, Counts()
        self.last_entry_at = time.monotonic()
        self.files += len(files)
        self.size_bytes += sum(file.size_bytes for file in files)
        if counts.rows:
            self.last_commit_at = time.time()
            self.commits += 1
            self.rows += counts.rows
        # After the batch, which is visible by now, and before the next is read.
        self.view = writer.take_over(self.table, self.view)
        return committed

    def _sources(self, source: Source) -> tuple[SourceVersion, ...]:
        known = self.view.entry.sources if self.view.entry else ()
        return remembered(known, source, high_water_marks(self.view.coverage), int(time.time() * 1000))

    def flush(self, writer: Writer, *, older_than_seconds: float = 0.0) -> bool:
        """Commit what is pending, if anything is and the last entry is old enough; return whether it did."""
        if not count(self.pending) or time.monotonic() - self.last_entry_at < older_than_seconds:
            return False
        self.commit(writer, {}, Counts(), [])
        return True
