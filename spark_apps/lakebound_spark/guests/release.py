"""A release: quarantined records are decoded again as of today, and what fits is landed, as a guest of the running stream.

Kafka is not asked: the quarantine has the bytes. What keeps two releases from landing a record twice is each table itself: its
rows say what it has, and its compare-and-swap and the count of released offsets say whether that still holds.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from lakebound.control.desired import read_desired
from lakebound.control.replay_result import TableLanded, write_result
from lakebound.errors import HeldError
from lakebound.inspection.proof.history import spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, beyond, both, size
from lakebound.operations.release.candidates import Held, as_offsets, chunks, look_at, offsets_in
from lakebound.operations.release.orders import ReleaseOrders, ReleaseResult, Verdicts
from lakebound.operations.release.plan import owned
from lakebound.operations.release.reading import read_index
from lakebound.operations.release.released import released_offsets
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.table import Table
from lakebound_spark.batch.row_hours import hour_column_of
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.guests.release_batch import ReleaseBatch, Released
from lakebound_spark.guests.replay import StoppedError, reason_of, state_of
from lakebound_spark.session import make_session

log = logging.getLogger(__name__)


class _Lacking:
    """The tables of a release, and what each holds and lacks of the quarantined records."""

    def __init__(self, tables: list[Table], quarantined: Arrays) -> None:
        self.tables, self._quarantined = tables, quarantined
        self.held: dict[str, Held] = {}
        self.look_again()

    def look_again(self) -> None:
        """Read the tables."""
        self.held |= {table.spec.id: self.look_at(table) for table in self.tables}

    def look_at(self, table: Table) -> Held:
        """Return what a table holds and lacks now."""
        return look_at(table, self._quarantined)


class Release:
    """Lands what fits, piece after piece, each table on its own."""

    def __init__(self, orders: ReleaseOrders) -> None:
        self._orders = orders
        self._spec = orders.spec
        self._result = ReleaseResult(app_id=orders.app_id, is_trial=orders.is_trial)
        self._verdicts: dict[str, Counter[str]] = {}
        self._landed: dict[str, TableLanded] = {}

    def run(self) -> ReleaseResult:
        """Run to the end and return how it ended; that is also written to the pipeline's folder, after each piece."""
        error: Exception | None = None
        try:
            self._release()
        except Exception as exc:
            log.exception("release of %s ended", self._spec.pipeline)
            error = exc
        changes = {"state": state_of(error), "reason": reason_of(error, self._result), "ended_at": time.time()}
        self._change(**changes, error_class=type(error).__name__ if error else None)
        return self._result

    def _release(self) -> None:
        self._change()
        tables = [owned(self._spec, table, self._orders.places) for table in self._spec.tables]
        index = read_index(self._spec.quarantine_table, self._orders.places, self._orders.reasons, copies=False)
        lacking = _Lacking(tables, offsets_in(index))
        pieces = list(chunks(lacking.held, self._spec.limits.max_records_per_batch))
        self._change(chunks=len(pieces))
        if not pieces:
            return
        session = make_session(f"lakebound-release-{self._spec.pipeline}")
        try:
            self._land_all(ReleaseBatch(self._orders, session, tables), lacking, pieces)
        finally:
            session.stop()

    def _land_all(self, batch: ReleaseBatch, lacking: _Lacking, pieces: list[Arrays]) -> None:
        for number, piece in enumerate(pieces):
            self._check_wanted()
            retry_as_guest(
                partial(self._land, batch, lacking, piece),
                what=f"piece {number}",
                attempts=self._spec.limits.commit_attempts,
                look_again=partial(self._look_again, batch, lacking, self._verdicts, self._result),
            )
            self._change(chunks_done=number + 1)
            log.info("piece %d of %d: %s", number + 1, len(pieces), self._result)

    def _look_again(
        self, batch: ReleaseBatch, lacking: _Lacking, verdicts: dict[str, Counter[str]], result: ReleaseResult
    ) -> None:
        """Prepare another attempt at a piece: what it counted is forgotten, and the tables are read again."""
        self._verdicts, self._result = verdicts, result
        self._check_wanted()
        lacking.look_again()
        batch.check_columns()

    def _land(self, batch: ReleaseBatch, lacking: _Lacking, piece: Arrays) -> None:
        """Land a piece in each table that lacks it; tables that lack the same get the same rows."""
        held, seen = lacking.held, False
        for wanted, members in _groups(lacking.tables, held, piece):
            found = batch.decode(wanted, members, write=not self._orders.is_trial)
            if not seen:
                self._count(found)
                seen = True
            for table in members if not self._orders.is_trial else ():
                held[table.spec.id] = self._commit(table, lacking, found, batch.reference_versions)
            batch.forget()

    def _commit(self, table: Table, lacking: _Lacking, found: Released, references: Callable[[], Mapping[str, str]]) -> Held:
        """Commit what fits, and return the table as it then stands."""
        held = lacking.held[table.spec.id]
        fits = both(held.lacking, found.fits)
        named, _ = released_offsets(table.entries(), held.view.released)
        is_new = size(beyond(fits, named)) > 0
        if not size(fits) or not (found.written.rows or is_new):
            return held
        target = Target(table, held.view)
        records = found.written.records
        counts = Counts(read=size(fits), filtered=size(fits) - records, landed=records, rows=found.written.rows)
        attempts, epoch = self._spec.limits.commit_attempts, held.view.epoch
        writer = Writer(self._spec.pipeline, epoch, lambda: None, attempts, kind="release", references=references)
        files = found.written.files.get(table.spec.id, [])
        hour_column = hour_column_of(self._spec)
        hours = None if hour_column is None else hour_column.told(found.written.hours)
        origin = Origin(lane=found.written_by, hours=hours)
        target.commit(writer, {}, counts, files, origin, releases=as_offsets(fits))
        known = self._landed.get(table.spec.id, TableLanded())
        self._landed[table.spec.id] = TableLanded(commits=known.commits + 1, rows=known.rows + counts.rows)
        if target.view.released != held.view.released + size(fits):
            # Another release was committed after the rows were read: after a commit whose answer was lost, nothing refuses it.
            return lacking.look_at(table)
        return Held(target.view, beyond(held.lacking, spans_of(as_offsets(fits))), held.landed, held.uncovered)

    def _count(self, found: Released) -> None:
        """Add a piece's verdicts to the result; of tables that lack different records, those of the one that lacks most."""
        for reason, verdict in found.verdicts.items():
            self._verdicts = {**self._verdicts, reason: self._verdicts.get(reason, Counter()) + verdict}
        fit, records = size(found.fits), found.written.records
        before = self._result
        self._result = before.model_copy(
            update={
                "read": before.read + found.read,
                "landed": before.landed + records,
                "filtered": before.filtered + (fit - records if not self._orders.is_trial else 0),
                "quarantined": before.quarantined + found.read - fit,
            }
        )

    def _check_wanted(self) -> None:
        control = self._orders.control
        if control.stop_marker(self._orders.app_id).exists():
            raise StoppedError(self._spec.pipeline)
        desired = read_desired(control)
        if desired.state == "held" and not self._orders.is_trial:
            raise HeldError(self._spec.pipeline, desired.reason)

    def _change(self, **changes: object) -> None:
        verdicts = {reason: Verdicts(fit=found["fit"], stay=found["stay"]) for reason, found in self._verdicts.items()}
        self._result = self._result.model_copy(update={**changes, "verdicts": verdicts, "tables": dict(self._landed)})
        write_result(self._orders.control, self._result)


def _groups(tables: list[Table], held: dict[str, Held], piece: Arrays) -> list[tuple[Arrays, list[Table]]]:
    """Return the tables grouped by what of the piece they lack, the most first; those that lack nothing are left out."""
    groups: list[tuple[Arrays, list[Table]]] = []
    for table in tables:
        lacking = both(held[table.spec.id].lacking, piece)
        if not lacking:
            continue
        same = next((members for known, members in groups if as_offsets(known) == as_offsets(lacking)), None)
        if same is None:
            groups.append((lacking, [table]))
        else:
            same.append(table)
    return sorted(groups, key=lambda group: -size(group[0]))
