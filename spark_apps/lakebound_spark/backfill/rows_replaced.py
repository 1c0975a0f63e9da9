"""The policy of a redo: the rows of covered offsets leave each table in the commit in which their new rows come (decision 46).

The records are read from Kafka, decoded and transformed as a batch is, and newly bad ones go to quarantine first. What a table
has done is what its ``redo`` entries of this plan say; so a redo goes on after a kill with the same command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar, Literal

import numpy as np
from pyspark.sql import SparkSession

from lakebound.control.desired import Desired
from lakebound.control.folder import locked
from lakebound.control.replay_result import ReplayResult
from lakebound.control.turns import AskForTurn
from lakebound.inspection.proof.history import Spans, spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, spans_from
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, add, count, missing, new_commit_id
from lakebound.ledger.erased import ErasedFile
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.redo.announce import announce_redo
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.progress import done_by, pieces_left, to_do
from lakebound.operations.redo.quarantined import count_from_quarantine, quarantined_among
from lakebound.operations.redo.replacing import NewRows, check_as_planned, redo_chunk
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import Committed, Waits
from lakebound.tables.table import DataFile, Table
from lakebound_spark.backfill.coverage_decides import CoveredTables
from lakebound_spark.backfill.job import Backfill, CheckWanted
from lakebound_spark.batch.targets import UNTOLD, Counts, Origin, Target, Writer
from lakebound_spark.stream.source import read_offsets

_ANOTHER_REPAIR_SECONDS = 3600.0
"""As long as a repair, or a step of maintenance, may take."""
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

    def pieces(self) -> Sequence[Offsets]:
        """Return the pieces of which any table still has something to do."""
        orders = self.orders
        done = {}
        for one in orders.spec.tables:
            table, _ = owned_table(orders.spec, one, orders.places)
            done[one.id] = done_by(table.entries(), orders.plan)
        return pieces_left(orders.wanted, orders.replaces, done, orders.spec.limits.max_records_per_batch)

    def open(self, session: SparkSession, check_wanted: CheckWanted) -> RedoneTables:
        """Return the tables, ready for the first piece; no repair and no other redo runs until they are closed."""
        with ExitStack() as stack:
            stack.enter_context(locked(self.orders.control.repair, _ANOTHER_REPAIR_SECONDS))
            self.orders.check_code()
            tables = RedoneTables(self.orders, session, check_wanted)
            tables.on_close = stack.pop_all()
        return tables


class RedoneTables(CoveredTables):
    """The tables of a redo, and the offsets that are made anew in each."""

    def __init__(self, orders: RedoOrders, session: SparkSession, check_wanted: CheckWanted) -> None:
        self._redo = orders
        self.on_close = ExitStack()
        super().__init__(orders, session, check_wanted)

    def close(self) -> None:
        """Free the threads and the lock of repairs."""
        with self.on_close:
            super().close()

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
        )

    def _look(self, piece: Offsets) -> Offsets:
        """Read all ledgers and return what of a piece any table has still to make anew."""
        self._redo.check_code()
        targets = [target for target in self._targets if isinstance(target, RedoneTarget)]
        for target in targets:
            target.piece = piece
        self._refresh()
        return reduce(add, (target.left for target in targets), {})

    def _offsets_read(self, offsets: Offsets) -> Spans:
        """Return the offsets of which Kafka has a record: asked for only where it gave fewer records than there are offsets."""
        frame = read_offsets(self._session, self._spec, offsets).select("topic", "partition", "offset")
        found = frame.toArrow()
        places = zip(found["topic"].to_pylist(), found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True)
        by_key: dict[tuple[str, str, int], list[int]] = {}
        for topic, partition, offset in places:
            by_key.setdefault((topic, self._topic_ids[topic], partition), []).append(offset)
        return spans_from({key: np.sort(np.array(held, dtype=np.int64)) for key, held in by_key.items()})

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
        done: Offsets that this plan has made anew.
    """

    whole: Table = field(kw_only=True)
    replaces: Offsets = field(kw_only=True)
    orders: RedoOrders = field(kw_only=True)
    read: Callable[[Offsets], Spans] = field(kw_only=True)
    quarantined: Callable[[Offsets], Arrays] = field(kw_only=True)
    piece: Offsets = field(default_factory=dict)
    done: Offsets = field(default_factory=dict)

    @property
    def _changes_seen(self) -> int | None:
        return self.orders.changes_seen.get(self.id)

    @property
    def left(self) -> Offsets:
        """What of the piece is still to be made anew."""
        return to_do(self.piece, self.replaces, self.done)

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
        check_as_planned(self.whole, self.view, self.replaces, self._changes_seen)
        self.done = done_by(self.table.entries(), self.orders.plan)

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
        """Commit the new rows of offsets, and of those that were read without giving rows, in the place of their old ones.

        Raises:
            ValueError: Something else is to be committed: a redo opens no table, and releases nothing.
            LakeboundError: What ``lakebound.operations.redo.replacing.redo_chunk`` raises.
        """
        if kind is not None or releases or erased is not None:
            raise ValueError(f"a redo commits rows only: kind {kind}, releases {bool(releases)}, erased {erased is not None}")
        redone, counts = add(self.pending, landed), counts.plus(self.pending_counts)
        # Where Kafka gave as many records as there are offsets, each of them has one.
        is_whole = counts.read == count(redone)
        draft = self._draft(writer, redone, counts, files, origin)
        new = NewRows(draft, files, spans_of(redone) if is_whole else self.read(redone), self._changes_seen)
        committed = self._replace(new)
        self.view = committed.view
        self.pending, self.pending_counts = {}, Counts()
        self.done = add(self.done, redone)
        self.last_entry_at = time.monotonic()
        self.files += len(files)
        self.size_bytes += sum(file.size_bytes for file in files)
        self.commits += 1
        self.rows += counts.rows
        return committed

    def _draft(self, writer: Writer, redone: Offsets, counts: Counts, files: Sequence[DataFile], origin: Origin) -> Entry:
        return Entry(
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
            decision=self.orders.plan,
        )

    def _replace(self, new: NewRows) -> Committed:
        attempts = max(_FEWEST_ATTEMPTS, self.orders.spec.limits.commit_attempts)
        with AskForTurn(self.orders.control, self.id) as turn:

            def wait(seconds: float) -> None:
                turn()
                time.sleep(seconds)

            return redo_chunk(self.whole, new, attempts=attempts, waits=Waits(between=wait))
