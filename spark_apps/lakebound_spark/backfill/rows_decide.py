"""The policy of a release: a covered offset lands in each table that has no row of it (decision 8).

Kafka is not asked: the quarantine has the bytes, which are decoded as of today. What keeps two releases from landing a record
twice is each table itself: its rows say what it has, and its compare-and-swap and the count of released offsets say whether
that still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pyspark.sql import SparkSession

from lakebound.control.desired import Desired
from lakebound.control.replay_result import PieceCounts, TableLanded
from lakebound.inspection.proof.history import spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, beyond, both, size
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.release.candidates import Held, as_offsets, chunks, look_at, offsets_in
from lakebound.operations.release.orders import ReleaseOrders, ReleaseResult
from lakebound.operations.release.reading import read_index
from lakebound.operations.release.released import released_offsets
from lakebound.tables.table import Table
from lakebound_spark.backfill.job import Backfill, CheckWanted
from lakebound_spark.backfill.quarantined import QuarantinedRecords, Released
from lakebound_spark.batch.row_hours import hour_column_of
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer


def release(orders: ReleaseOrders) -> ReleaseResult:
    """Land the quarantined records that fit today, and return how that ended."""
    result = Backfill(orders, RowsDecide(orders)).run()
    assert isinstance(result, ReleaseResult), "it begins as one"
    return result


class Lacking:
    """The tables of a pipeline, and what each holds and lacks of the quarantined records."""

    def __init__(self, tables: Sequence[Table], quarantined: Arrays) -> None:
        self.tables, self._quarantined = tables, quarantined
        self.held: dict[str, Held] = {}
        self.look_again()

    def look_again(self) -> None:
        """Read the tables."""
        self.held |= {table.spec.id: self.look_at(table) for table in self.tables}

    def look_at(self, table: Table) -> Held:
        """Return what a table holds and lacks now."""
        return look_at(table, self._quarantined)

    def groups(self, piece: Arrays) -> list[tuple[Arrays, list[Table]]]:
        """Return the tables grouped by what of a piece they lack, the most first; those that lack nothing are left out."""
        groups: list[tuple[Arrays, list[Table]]] = []
        for table in self.tables:
            lacking = both(self.held[table.spec.id].lacking, piece)
            if not lacking:
                continue
            same = next((members for known, members in groups if as_offsets(known) == as_offsets(lacking)), None)
            if same is None:
                groups.append((lacking, [table]))
            else:
                same.append(table)
        return sorted(groups, key=lambda group: -size(group[0]))


@dataclass(frozen=True)
class RowsDecide:
    """See ``lakebound_spark.backfill.job.Policy``."""

    orders: ReleaseOrders
    name: ClassVar[str] = "release"

    def goes_on_held(self, hold: Desired) -> bool:
        """Return whether it is a trial, which only counts: a held pipeline gets no rows of a release."""
        return self.orders.is_trial

    def begun(self) -> ReleaseResult:
        """Return the record as it is before anything has landed."""
        return ReleaseResult(app_id=self.orders.app_id, is_trial=self.orders.is_trial)

    @cached_property
    def lacking(self) -> Lacking:
        """What the tables lack, read once before the first piece."""
        spec, places = self.orders.spec, self.orders.places
        tables = [owned_table(spec, table, places)[0] for table in spec.tables]
        return Lacking(tables, offsets_in(read_index(spec.quarantine_table, places, self.orders.reasons, copies=False)))

    def alone(self, check_wanted: CheckWanted) -> AbstractContextManager[None]:
        """Keep nobody out: the tables tell who was faster."""
        return nullcontext()

    def pieces(self) -> Sequence[Arrays]:
        """Return what any table lacks, in pieces."""
        return list(chunks(self.lacking.held, self.orders.spec.limits.max_records_per_batch))

    def open(self, session: SparkSession, check_wanted: CheckWanted) -> RowTables:
        """Return the tables, ready for the first piece."""
        return RowTables(self.orders, self.lacking, QuarantinedRecords(self.orders, session, self.lacking.tables))

    def finish(self) -> str:
        """Say nothing: what the tables lack, another run lands."""
        return ""


class RowTables:
    """The tables of a release."""

    def __init__(self, orders: ReleaseOrders, lacking: Lacking, records: QuarantinedRecords) -> None:
        self._spec, self._is_trial = orders.spec, orders.is_trial
        self._lacking = lacking
        self._records = records
        self._landed: dict[str, TableLanded] = {}

    def land(self, piece: Arrays, number: int) -> PieceCounts:
        """Land a piece in each table that lacks it; tables that lack the same get the same rows.

        Counted is what the tables lack that lack most.
        """
        counted: PieceCounts | None = None
        for wanted, members in self._lacking.groups(piece):
            found = self._records.decode(wanted, members, write=not self._is_trial)
            counted = counted or self._counts(found)
            for table in members if not self._is_trial else ():
                self._lacking.held[table.spec.id] = self._commit(table, found)
            self._records.forget()
        return counted or PieceCounts()

    def look_again(self) -> None:
        """Read the tables again, and check that they have the columns still with which the records are decoded."""
        self._lacking.look_again()
        self._records.check_columns()

    def landed(self) -> Mapping[str, TableLanded]:
        """Return what was committed until now, by the table's id."""
        return self._landed

    def close(self) -> None:
        """Free what is kept."""
        self._records.forget()

    def _commit(self, table: Table, found: Released) -> Held:
        """Commit what fits, and return the table as it then stands."""
        held = self._lacking.held[table.spec.id]
        fits = both(held.lacking, found.fits)
        named, _ = released_offsets(table.entries(), held.view.released)
        is_new = size(beyond(fits, named)) > 0
        if not size(fits) or not (found.written.rows or is_new):
            return held
        target = Target(table, held.view)
        records = found.written.records
        counts = Counts(read=size(fits), filtered=size(fits) - records, landed=records, rows=found.written.rows)
        attempts, references = self._spec.limits.commit_attempts, self._records.reference_versions
        writer = Writer(self._spec.pipeline, held.view.epoch, lambda: None, attempts, kind="release", references=references)
        files = found.written.files.get(table.spec.id, [])
        hour_column = hour_column_of(self._spec)
        hours = None if hour_column is None else hour_column.told(found.written.hours)
        origin = Origin(lane=found.written_by, hours=hours)
        target.commit(writer, {}, counts, files, origin, releases=as_offsets(fits))
        known = self._landed.get(table.spec.id, TableLanded())
        self._landed[table.spec.id] = TableLanded(commits=known.commits + 1, rows=known.rows + counts.rows)
        if target.view.released != held.view.released + size(fits):
            # Another release was committed after the rows were read: after a commit whose answer was lost, nothing refuses it.
            return self._lacking.look_at(table)
        return Held(target.view, beyond(held.lacking, spans_of(as_offsets(fits))), held.landed, held.uncovered)

    def _counts(self, found: Released) -> PieceCounts:
        fit, records = size(found.fits), found.written.records
        return PieceCounts(
            read=found.read,
            landed=records,
            filtered=0 if self._is_trial else fit - records,
            quarantined=found.read - fit,
            verdicts=found.verdicts,
            left_out=self._records.left_out,
        )
