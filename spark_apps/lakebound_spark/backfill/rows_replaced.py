"""The policy of a redo: the rows of covered offsets leave each table in the commit in which their new rows come (decision 46).

The records are read from Kafka, decoded and transformed as a batch is, and newly bad ones go to quarantine first. What a table
has done is what its ``redo`` entries of this plan say; so a redo goes on after a kill with the same command.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from lakebound.control.desired import Desired
from lakebound.control.folder import locked, locked_if_free
from lakebound.control.replay_result import ReplayResult
from lakebound.control.turns import AskForTurn
from lakebound.inspection.proof.history import Spans, spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, spans_from
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, add, common, count, intervals_of, missing, new_commit_id
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.hours import hours_between, row_hours
from lakebound.operations.backfill.half_done import check_no_undoing
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.redo.announce import announce_redo
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.progress import NOT_BEGUN, Standing, pieces_left, standing, to_do
from lakebound.operations.redo.quarantined import count_from_quarantine, quarantined_among
from lakebound.operations.redo.replacing import NewRows, Planned, RedoOvertakenError, check_as_planned, redo_chunk
from lakebound.operations.redo.takes_place import check_takes_place
from lakebound.operations.replay.plan import describe
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import Committed, Waits
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.table import DataFile, Table
from lakebound_spark.backfill.coverage_decides import CoveredTables
from lakebound_spark.backfill.job import Backfill, CheckWanted
from lakebound_spark.batch.targets import UNTOLD, Counts, Origin, Target, Writer
from lakebound_spark.stream.source import read_offsets

log = logging.getLogger(__name__)

_ANOTHER_REPAIR_SECONDS = 3600.0
"""As long as a repair, or a step of maintenance, may take."""
_LOOK_AGAIN_SECONDS = 2.0
_FEWEST_ATTEMPTS = 20
"""A stream may commit fifteen times a second."""


def redo(orders: RedoOrders) -> ReplayResult:
    """Make the rows of the orders' offsets anew, note what was done for those who read the tables, and return how it ended."""
    result = Backfill(orders, RowsReplaced(orders)).run()
    announce_redo(orders)
    return result


@dataclass(frozen=True)
class RowsReplaced:
    """See ``lakebound_spark.backfill.job.Policy``."""

    orders: RedoOrders
    name: ClassVar[str] = "redo"

    def goes_on_held(self, hold: Desired) -> bool:
        """Return whether it is the hold under which a person has applied the plan; one that comes later ends the redo."""
        return hold.since == self.orders.held_since

    def begun(self) -> ReplayResult:
        """Return the record as it is before anything has landed."""
        return ReplayResult(app_id=self.orders.app_id)

    @contextmanager
    def alone(self, check_wanted: CheckWanted) -> Iterator[None]:
        """Hold the lock of repairs: no repair, no erasure, no step of maintenance and no other redo runs meanwhile.

        Raises:
            LockHeldError: Somebody else has held it for too long.
        """
        repair, until = self.orders.control.repair, time.monotonic() + _ANOTHER_REPAIR_SECONDS
        while True:
            check_wanted()
            with locked_if_free(repair) as is_free:
                if is_free:
                    yield
                    return
            log.info("a repair, an erasure, a step of maintenance or another redo is under way, and ends first")
            if time.monotonic() > until:
                with locked(repair, 0.0):  # says who holds it
                    yield
                    return
            time.sleep(_LOOK_AGAIN_SECONDS)

    def pieces(self) -> Sequence[Offsets]:
        """Return the pieces of which any table still has something to do."""
        orders = self.orders
        done = {}
        for one in orders.spec.tables:
            table, _ = owned_table(orders.spec, one, orders.places)
            done[one.id] = standing(table.entries(), orders.plan).done
        return pieces_left(orders.wanted, orders.replaces, done, orders.spec.limits.max_records_per_batch)

    def open(self, session: SparkSession, check_wanted: CheckWanted) -> RedoneTables:
        """Return the tables, ready for the first piece.

        Raises:
            LakeboundError: What ``lakebound.operations.redo.takes_place.check_takes_place`` raises.
        """
        orders = self.orders
        orders.check_code()
        opened = {one.id: owned_table(orders.spec, one, orders.places) for one in orders.spec.tables}
        found = {name: (table, view.entry) for name, (table, view) in opened.items() if view.entry is not None}
        check_takes_place(orders.spec, orders.places, found, add(orders.wanted, orders.gone))
        return RedoneTables(orders, session, check_wanted)

    def finish(self) -> str:
        """Check that each table has all that the plan makes anew in it, and have it say that nothing is left.

        Returns:
            Of which offsets the rows stay; empty where of none.

        Raises:
            RedoOvertakenError: Somebody who does not see the lock has taken rows back, or made them anew.
        """
        attempts = self.orders.spec.limits.commit_attempts
        stays: Offsets = {}
        for one in self.orders.spec.tables:
            what = f"the end of a redo in {one.id}"
            stays = add(stays, retry_as_guest(partial(self._finish_in, one), what=what, attempts=attempts))
        if not count(stays):
            return ""
        return f"the rows of {count(stays):,} offsets stay as they are, because Kafka has no record of them: {describe(stays)}"

    def _finish_in(self, one: TableSpec) -> Offsets:
        table, view = owned_table(self.orders.spec, one, self.orders.places)
        so_far = standing(table.entries(), self.orders.plan)
        if left := count(missing(self.orders.replaces.get(one.id, {}), so_far.done)):
            raise RedoOvertakenError(one.id, f"{left:,} of its offsets have rows of before again")
        # Of an earlier run, before Kafka deleted what was left; its own entries may have expired.
        if view.redo_progress.plan == self.orders.plan and view.redo_progress.left:
            self.orders.run.mark(table, view, 0, first=so_far.first)
        return add(so_far.stays, missing(common(self.orders.gone, view.coverage), so_far.done))


class RedoneTables(CoveredTables):
    """The tables of a redo, and the offsets that are made anew in each."""

    _read: tuple[Offsets, Spans] | None

    def __init__(self, orders: RedoOrders, session: SparkSession, check_wanted: CheckWanted) -> None:
        self._redo = orders
        self._reading, self._read = threading.Lock(), None
        super().__init__(orders, session, check_wanted)

    def _target(self, one: TableSpec) -> Target:
        orders = self._redo
        table, view = owned_table(orders.spec, one, orders.places)
        return RedoneTarget(
            table,
            view,
            whole=table,
            replaces=orders.replaces.get(one.id, {}),
            orders=orders,
            read=self._offsets_read,
            quarantined=self._quarantined,
            over=view.redo_progress.plan,
        )

    def _look(self, piece: Offsets) -> Offsets:
        """Read all ledgers and return what of a piece any table has still to make anew."""
        self._redo.check_code()
        targets = [target for target in self._targets if isinstance(target, RedoneTarget)]
        for target in targets:
            target.piece = piece
        self._refresh()
        for target in targets:  # all of them before the first rows
            target.begin()
        return reduce(add, (target.left for target in targets), {})

    def _flush(self) -> None:
        """Commit the new rows of a piece, to all tables at once: each copies files of its own."""
        with ThreadPoolExecutor(len(self._targets), thread_name_prefix="redo") as pool:
            futures = [pool.submit(target.flush, self._writer) for target in self._targets]
        # All have ended before an error is raised: a commit that nobody waits for could land after the next start.
        for future in futures:
            future.result()

    def _offsets_read(self, offsets: Offsets) -> Spans:
        """Return the offsets of which Kafka has a record: asked for only where it gave fewer records than there are offsets."""
        with self._reading:  # tables ask at the same time for the same
            if self._read is None or self._read[0] != offsets:
                self._read = offsets, self._ask_kafka(offsets)
            return self._read[1]

    def _ask_kafka(self, offsets: Offsets) -> Spans:
        found = read_offsets(self._session, self._spec, offsets).select("topic", "partition", "offset").toArrow()
        return spans_read(found, offsets)

    def _quarantined(self, offsets: Offsets) -> Arrays:
        return quarantined_among(self._spec.quarantine_table, self._places, offsets)


@dataclass
class RedoneTarget(Target):
    """A table in which the rows of offsets are replaced: for a batch it lacks what of the piece is still to be done.

    Attributes:
        whole: The table, as one whose rows can be taken out.
        replaces: The offsets that the plan makes anew in it.
        orders: The redo's.
        read: Returns of which offsets Kafka has a record.
        quarantined: Returns which of the offsets are in quarantine.
        piece: What is read at present.
        held: New files that are not committed yet.
        origin: Where their rows come from.
        so_far: What this plan has done.
        own: Id of the newest commit of this plan in the table; empty before the first one.
        over: Hash of the plan whose place may be taken, as it was looked at.
    """

    whole: Table = field(kw_only=True)
    replaces: Offsets = field(kw_only=True)
    orders: RedoOrders = field(kw_only=True)
    read: Callable[[Offsets], Spans] = field(kw_only=True)
    quarantined: Callable[[Offsets], Arrays] = field(kw_only=True)
    piece: Offsets = field(default_factory=dict)
    held: list[DataFile] = field(default_factory=list)
    origin: Origin | None = None
    so_far: Standing = NOT_BEGUN
    own: str = ""
    over: str = ""

    @property
    def _changes_seen(self) -> int | None:
        return self.orders.changes_seen.get(self.id)

    @property
    def left(self) -> Offsets:
        """What of the piece is still to be made anew."""
        return to_do(self.piece, self.replaces, self.so_far.done)

    @property
    def coverage(self) -> Offsets:
        """All but what is left of the piece: that a batch of it lands."""
        return add(missing(add(self.view.coverage, self.piece), self.left), self.pending)

    def refresh(self) -> None:
        """Read the ledger again, and what this plan has done by now.

        Raises:
            RedoOvertakenError: The table was rewound, or rows of these records were erased or changed, since the plan was made.
        """
        super().refresh()
        self._forget()
        check_as_planned(self.whole, self.view, self.replaces, Planned(self._changes_seen))
        if self.own and self.view.newest_redo == self.own:
            return
        before, self.so_far = self.so_far, standing(self.table.entries(), self.orders.plan)
        if count(missing(before.done, self.so_far.done)):
            raise RedoOvertakenError(self.id, "rows that were redone have been taken back, or redone by another")
        self.own = self.view.newest_redo if self.so_far.first else ""

    def begin(self) -> None:
        """Have the table say that the redo has begun, if it is part of it and does not say so yet.

        Raises:
            UndoUnfinishedError: Another redo is undone in part.
        """
        if self.so_far.first or not count(self.replaces):
            return
        orders = self.orders
        check_no_undoing(orders.spec.pipeline, self.id, self.view.entry, known=self.over)
        committed = orders.run.mark(
            self.whole, self.view, count(self.replaces), attempts=max(_FEWEST_ATTEMPTS, orders.spec.limits.commit_attempts)
        )
        self.view, self.own = committed.view, committed.entry.commit
        self.so_far = Standing(committed.entry.commit)

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
        """Keep the new rows of offsets for ``flush``, which makes one commit of all that a piece gives.

        A piece with records on which the transform raises lands in many parts, and each commit copies files.

        Returns:
            What was committed last.

        Raises:
            ValueError: Something else is to be committed: a redo opens no table, and releases nothing.
        """
        if kind is not None or releases or erased is not None or self.view.entry is None:
            raise ValueError(f"a redo commits rows only: kind {kind}, releases {bool(releases)}, erased {erased is not None}")
        self.remember(landed, counts)
        self.held = [*self.held, *files]
        self.origin = origin if self.origin is None else both(self.origin, origin)
        return Committed(self.view.version, self.view.entry, 0)

    def flush(self, writer: Writer, *, older_than_seconds: float = 0.0) -> bool:
        """Commit the new rows of what was read, and that the others give none, in the place of their old ones.

        Raises:
            LakeboundError: What ``lakebound.operations.redo.replacing.redo_chunk`` raises.
        """
        redone, counts, files = self.pending, self.pending_counts, self.held
        if not count(redone):
            return False
        # Where Kafka gave as many records as there are offsets, each of them has one.
        is_whole = counts.read == count(redone)
        draft = self._draft(writer, redone, counts, files, self.origin or UNTOLD)
        new = NewRows(draft, files, spans_of(redone) if is_whole else self.read(redone), Planned(self._changes_seen, self.own))
        committed = self._replace(new)
        self.view, self.own = committed.view, committed.entry.commit
        self.so_far = Standing(self.so_far.first, add(self.so_far.done, redone))
        self._forget()
        self.last_entry_at = time.monotonic()
        self.files += len(files)
        self.size_bytes += sum(file.size_bytes for file in files)
        self.commits += 1
        self.rows += counts.rows
        return True

    def _forget(self) -> None:
        self.pending, self.pending_counts, self.held, self.origin = {}, Counts(), [], None

    def _draft(self, writer: Writer, redone: Offsets, counts: Counts, files: Sequence[DataFile], origin: Origin) -> Entry:
        draft = Entry(
            kind="redo",
            pipeline=writer.pipeline,
            epoch=writer.epoch,
            commit=new_commit_id(),
            redoes=redone,
            read=counts.read,
            filtered=counts.filtered,
            landed=counts.landed,
            quarantined=counts.quarantined,
            rows=counts.rows,
            lane=origin.lane,
            timestamps_ms=origin.timestamps_ms,
            references=dict(writer.references()),
            schemas={name: dict(one) for name, one in writer.schemas().items()},
            hours=origin.hours,
            from_quarantine=count_from_quarantine(files, self.quarantined(redone)),
        )
        left = count(missing(self.replaces, add(self.so_far.done, redone)))
        return self.orders.run.named(draft, self.so_far.first, left)

    def _replace(self, new: NewRows) -> Committed:
        attempts = max(_FEWEST_ATTEMPTS, self.orders.spec.limits.commit_attempts)
        with AskForTurn(self.orders.control, self.id) as turn:

            def wait(seconds: float) -> None:
                turn()
                time.sleep(seconds)

            return redo_chunk(self.whole, new, attempts=attempts, waits=Waits(between=wait))


def spans_read(found: pa.Table, offsets: Offsets) -> Spans:
    """Return the offsets of which there is a record. Pure.

    Args:
        found: Topic, partition and offset of each record.
        offsets: What was asked for.
    """
    by_key: dict[tuple[str, str, int], npt.NDArray[np.int64]] = {}
    for topic, partition, _ in intervals_of(offsets):
        own = pc.and_(pc.equal(found["topic"], topic), pc.equal(found["partition"], partition))
        by_key[topic, offsets[topic].topic_id, partition] = np.sort(found.filter(own)["offset"].to_numpy())
    return spans_from({key: held for key, held in by_key.items() if len(held)})


def both(left: Origin, right: Origin) -> Origin:
    """Return where the rows of two parts of a piece come from. Pure but for the clock."""
    times = [one for one in (left.timestamps_ms, right.timestamps_ms) if one is not None]
    hours = None
    if left.hours is not None and right.hours is not None and left.hours.column == right.hours.column:
        every = hours_between(left.hours.intervals) | hours_between(right.hours.intervals)
        hours = row_hours(left.hours.column, every, int(time.time() * 1000))
    return Origin(
        batch=right.batch,
        lane="cluster" if "cluster" in (left.lane, right.lane) else right.lane,
        timestamps_ms=(min(first for first, _ in times), max(last for _, last in times)) if times else None,
        hours=hours,
    )
