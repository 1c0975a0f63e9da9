"""A store as a target: rows or counters and the ledger entry are one commit, and the store's own entry is the checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from lakebound import faults
from lakebound.errors import (
    BadEntryError,
    CommitRefusedError,
    StoreIncompleteError,
    StoreLedgerLostError,
    StoreShapeError,
    TableMismatchError,
)
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.staged_rows import StagedRows
from lakebound.landing.to_stores.bucket_counts import counter_changes
from lakebound.landing.to_stores.shape import StoreShape, differences, shape_of
from lakebound.landing.to_stores.store import Held, StoreCommit, TargetStore
from lakebound.landing.to_stores.store_rows import Changes, are_tombstones, row_changes
from lakebound.landing.to_topics.ledger_record import LedgerRecord, TargetTotals, encode_record
from lakebound.ledger.entry import INCOMPLETE, Entry, check_owner
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.table import CommittedEntry, DataFile, LedgerView


class StoreTarget(OtherTarget):
    """One store; a ``LandingTarget``, committed by one thread."""

    def __init__(
        self,
        spec: ToStoreSpec,
        pipeline: str,
        store: TargetStore,
        *,
        schema: pa.Schema | None = None,
        scratch: Path | None = None,
        check_lease: Callable[[], None] | None = None,
        fills: bool = False,
    ) -> None:
        """Connect to nothing yet.

        Args:
            spec: What the pipeline says of the store.
            pipeline: The pipeline.
            store: Reads and writes it.
            schema: Columns of the files in which rows wait (``store_rows.staged_schema``); None for who only looks.
            scratch: Folder for these files; None for who only looks.
            check_lease: Raises LeaseLostError when the lease is gone; None for who only looks.
            fills: Fill the store from a table: an incomplete one is used.
        """
        self._fills = fills
        self._spec = spec
        self._pipeline = pipeline
        self._store = store
        self._staged = StagedRows(spec.id, schema, scratch)
        self._check_lease = check_lease
        self._held: Held | None = None
        self._was_read = False
        self._identity = ""
        self._shape = shape_of(spec, schema)
        self._told_shape = self._shape.model_dump(mode="json", exclude_defaults=True)

    @property
    def spec(self) -> ToStoreSpec:
        """What the pipeline says of it."""
        return self._spec

    def check_lease(self) -> None:
        """Raise LeaseLostError when the lease is gone."""
        assert self._check_lease is not None, "who only looks has no lease"
        self._check_lease()

    @property
    def held_shape(self) -> StoreShape | None:
        """The shape that its ledger names, as last read; None where it names none."""
        shape = None if self._held is None else self._held.record.shape
        return None if shape is None else self._read_shape(shape)

    @property
    def totals(self) -> TargetTotals | None:
        """What the commits up to the one last seen have counted; None before the first."""
        return None if self._held is None else self._held.record.totals

    def exists(self) -> bool:
        """Whether its ledger has an entry."""
        return self._store.newest(settled=False) is not None

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make what is not there yet, and commit the ``genesis`` entry where there is none.

        Args:
            schema: Columns of the files in which rows wait.
            genesis: The first entry.

        Raises:
            StoreNotEmptyError: It has rows that no entry explains.
            StoreRefusedError: It cannot take these rows.
        """
        if self.read_ledger().entry is None:
            self._identity = self._store.make(schema)
            self.commit([], genesis)

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Return the newest entry. Who writes waits for what is under way first.

        Args:
            to_reset: Is not used: a store is never reset.

        Raises:
            StoreIncompleteError: It is being filled from a table.
            StoreLedgerLostError: It had an entry, and has none any more.
            StoreShapeError: Who writes would write by other settings than those by which it was filled.
            LakeboundError: What ``TargetStore.newest`` raises.
        """
        writes = self._check_lease is not None
        found = self._store.newest(settled=writes)
        if found is None and self._held is not None and writes:
            # Not "nothing has landed": a start looks what is there before it makes anything, and this is no start.
            raise StoreLedgerLostError(self.spec.id, self.spec.place, self._held.commit)
        if found is not None and found.record.entry.is_incomplete and not self._fills:
            raise StoreIncompleteError(self.spec.id, self.spec.place, found.commit)
        if found is not None and self._held is None and writes:
            # Once, at the start: of what a later application writes, only its epoch has to be heard.
            self._compare_shape(found)
        self._held = found
        self._was_read = True
        if self._held is None:
            return LedgerView(None, "")
        return LedgerView(self._held.record.entry, str(self._held.record.offset))

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Change the store by the rows and tombstones of the files, together with its ledger: the new version.

        Args:
            files: Files of ``layout``; all that lie there are removed when the commit has succeeded.
            entry: Says what they hold.

        Raises:
            TableMismatchError: The files do not hold the rows that the entry counts: they lie on another machine.
            LeaseLostError: The lease is gone.
            CommitRefusedError: The ledger must be read again before.
            Exception: The outcome is unknown until the ledger is read again.
        """
        if self._check_lease is None or not self._was_read:
            raise CommitRefusedError(self.spec.id, "its ledger was not read")
        # A server that lost its last moments has forgotten epochs, too: then only the lease tells who is the writer.
        self._check_lease()
        totals = (self.totals or TargetTotals(topic_id=self._identity)).plus(entry)
        what = self._described(entry, totals)
        changes = self._changes(files, entry, what.now_ms // 1000)
        faults.reach("store_changes_made")
        # Whatever becomes of it, what was read before it is no longer what the next commit follows.
        self._was_read = False
        version = self._store.commit(what, changes)
        self._held = Held(entry.commit, LedgerRecord(version, what.now_ms, entry, totals, self._told_shape))
        self._was_read = True
        self._staged.remove()
        return str(version)

    def check(self) -> None:
        """Check, before anything is made, that the store can be written to, and that no other pipeline does.

        Raises:
            ForeignTableError: Another pipeline's entry is its newest.
            StoreShapeError: It was filled by other settings.
            LakeboundError: What ``TargetStore.check`` and ``TargetStore.newest`` raise.
        """
        self.check_ledger()
        self._store.check(self.schema())
        held = self._held
        if held is not None and held.record.shape is None:
            # An earlier version has filled it, and did not note by what.
            contradiction = self._store.contradiction(self._shape, held.record.timestamp_ms // 1000)
            if contradiction is not None:
                raise StoreShapeError(self.spec.id, self.spec.place, [contradiction])

    def check_ledger(self) -> None:
        """Check that its ledger names this pipeline and this shape, as far as the shape is known; only looks.

        Raises:
            ForeignTableError: Another pipeline's entry is its newest.
            StoreShapeError: It was filled by other settings.
            LakeboundError: What ``TargetStore.newest`` raises.
        """
        entry = self.read_ledger().entry
        if entry is not None and self._held is not None:
            check_owner(entry, self._pipeline, self.spec.id)
            self._compare_shape(self._held)

    def advice(self) -> str | None:
        """Return what a person should know of how the store is set up; None where nothing is to be said."""
        return self._store.advice()

    def held(self) -> int:
        """Return how many rows or keys it holds, whatever its ledger says."""
        return self._store.held()

    def empty(self) -> str:
        """Make it as if it had never been filled (``TargetStore.empty``), and return what was done, in words.

        Raises:
            LeaseLostError: The lease is gone.
            LakeboundError: What ``TargetStore.empty`` raises; then do it again.
        """
        self._forget_for_good()
        return self._store.empty()

    def begin_anew(self, first: Entry) -> str:
        """Make it as if it had never been filled (``TargetStore.begin_anew``), and return what was done, in words.

        Args:
            first: The first entry: from now on the store is incomplete, until an entry does not say so.

        Raises:
            LeaseLostError: The lease is gone.
            LakeboundError: What ``TargetStore.begin_anew`` raises; then do it again.
        """
        self._forget_for_good()
        entry = first.model_copy(update={"requires": (INCOMPLETE,)})
        return self._store.begin_anew(
            self.schema(), lambda identity: self._described(entry, TargetTotals(topic_id=identity).plus(entry))
        )

    def _forget_for_good(self) -> None:
        """Check that the store may be emptied, and forget what was read of it."""
        if self._check_lease is None:
            raise CommitRefusedError(self.spec.id, "nobody who only looks may empty a store")
        self._check_lease()
        self._held, self._was_read = None, False

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield the newest entry: a store keeps no other."""
        held = self._store.newest(settled=False)
        if held is not None:
            yield CommittedEntry(str(held.record.offset), held.record.timestamp_ms, held.record.entry)

    def close(self) -> None:
        """Disconnect."""
        self._store.close()

    def _described(self, entry: Entry, totals: TargetTotals) -> StoreCommit:
        return StoreCommit(
            expected=None if self._held is None else self._held.commit,
            epoch=entry.epoch,
            commit=entry.commit,
            pipeline=entry.pipeline,
            value=encode_record(entry, totals, self._told_shape),
            now_ms=int(time.time() * 1000),
        )

    def _compare_shape(self, held: Held) -> None:
        if held.record.shape is None:
            return
        if found := differences(self._read_shape(held.record.shape), self._shape):
            raise StoreShapeError(self.spec.id, self.spec.place, found)

    def _read_shape(self, shape: Any) -> StoreShape:
        try:
            return StoreShape.model_validate(shape)
        except ValidationError as exc:
            raise BadEntryError(f"{self.spec.id} at {self.spec.place}", f"its shape: {exc.errors()[0]['msg']}") from exc

    def _changes(self, files: Sequence[DataFile], entry: Entry, now: int) -> Changes:
        tombstones = sum(file.rows for file in files) - entry.rows
        if tombstones < 0:
            raise self._rows_elsewhere(entry.rows + tombstones, entry)
        if not files:
            return Changes()
        rows = pa.concat_tables([pq.read_table(file.path.path, schema=self.schema(), partitioning=None) for file in files])
        # An entry counts no tombstone as a row: its counts are those of the tables beside the store.
        if tombstones and pc.sum(are_tombstones(rows)).as_py() != tombstones:
            raise self._rows_elsewhere(entry.rows + tombstones, entry)
        if self.spec.counters is not None:
            return counter_changes(self.spec, rows, now)
        return row_changes(self.spec, rows, tombstones=tombstones > 0)

    def _rows_elsewhere(self, found: int, entry: Entry) -> TableMismatchError:
        reason = f"{found} of its {entry.rows} rows are on this machine; rows of a store must be written where the driver is"
        return TableMismatchError(self.spec.id, reason)
