"""An application without Spark: it lands made-up records of one source partition in a store, batch by batch.

As a module, ``python -m tests.support.stores.landing HOME SPEC EPOCH BATCHES`` is such an application in a process of its own,
which ``LAKEBOUND_FAULTS`` can kill. SPEC is the store as JSON.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebound.errors import LeaseLostError
from lakebound.landing.to_stores.open_store import connect_store
from lakebound.landing.to_stores.store_rows import staged_schema, tombstone_rows
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, high_water_marks, new_commit_id
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.commit import Committed, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.fitting import fit_rows
from lakebound.tables.table import KAFKA_TYPE, DataFile
from tests.support.stores.expected import amount, card

SOURCE = "source"
PIPELINE = "payments"
BATCH = 20
COLUMNS = pa.schema(
    [
        pa.field("card", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("amount", pa.int32()),
        pa.field("paid_at", pa.timestamp("us", tz="UTC")),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)


def offsets(start: int, end: int) -> Offsets:
    """Return a range of the one source partition."""
    return {SOURCE: TopicOffsets(topic_id="source-id", partitions={0: ((start, end),)})}


class StoreLander:
    """One application that lands in one store."""

    def __init__(self, home: Path, spec: ToStoreSpec, epoch: int, pipeline: str = PIPELINE) -> None:
        """Take the lease, and commit an ``open`` entry."""
        self.epoch, self.lease, self.spec, self.pipeline = epoch, home / "lease", spec, pipeline
        self.lease.write_text(str(epoch))
        first = home / "first_second"
        self.first_second = int(first.read_text()) if first.exists() else 0
        schema, scratch = staged_schema(spec, COLUMNS), home / f"scratch-{epoch}"
        self._scratch = scratch
        store = connect_store(spec, "to_stores[0]")
        self.target = StoreTarget(spec, pipeline, store, schema=schema, scratch=scratch, check_lease=self.check_lease)
        self.target.check()
        if not self.target.exists():
            self.target.create(schema, self._draft("genesis", 0, 0))
        self.view = self.target.read_ledger()
        self._commit([], self._draft("open", 0, 0))

    def check_lease(self) -> None:
        """Raise LeaseLostError when another application has it."""
        owner = int(self.lease.read_text())
        if owner != self.epoch:
            raise LeaseLostError(self.pipeline, self.epoch, owner)

    @property
    def next_offset(self) -> int:
        """The first source offset that the ledger does not hold."""
        return high_water_marks(self.view.coverage).get(SOURCE, {}).get(0, 0)

    @property
    def waiting(self) -> list[Path]:
        """Files that wait for a commit."""
        return sorted(self._scratch.rglob("*.parquet"))

    def land(self, start: int, end: int) -> Committed:
        """Land the source offsets from ``start`` up to ``end``."""
        return self._commit(self.write(start, end), self._draft("land", start, end))

    def land_next(self, batches: int = 1) -> None:
        """Land so many batches after what the ledger holds."""
        for _ in range(batches):
            self.land(self.next_offset, self.next_offset + BATCH)

    def land_history(self, history: Sequence[tuple[str, int | None]], end: int) -> Committed:
        """Land the records of a history after what the ledger holds, up to an offset; of a tombstone the number is None.

        Rows and tombstones wait in files of their own, as a batch writes them, and the newest ones come first.
        """
        start = self.next_offset
        numbered = [(offset, *history[offset]) for offset in reversed(range(start, end))]
        rows = [(offset, key, number) for offset, key, number in numbered if number is not None]
        gone = [(offset, key) for offset, key, number in numbered if number is None]
        schema = self.target.schema()
        files: list[DataFile] = []
        if gone:
            keys = pa.array([key for _, key in gone], schema.field("card").type)
            waiting = tombstone_rows("card", keys, _kafka([offset for offset, _ in gone]))
            files += write_data_files(fit_rows(waiting, schema), self.target.layout(), uuid.uuid4().hex)
        if rows:
            columns = {
                "card": pa.array([key for _, key, _ in rows]),
                "number": pa.array([number for _, _, number in rows], pa.int64()),
                "_kafka": _kafka([offset for offset, _, _ in rows]),
            }
            table = fit_rows(pa.table(columns), schema)
            files += write_data_files(table, self.target.layout(), uuid.uuid4().hex)
        draft = self._draft("land", start, end).model_copy(
            update={"filtered": len(gone), "landed": len(rows), "rows": len(rows)}
        )
        return self._commit(files, draft)

    def write(self, start: int, end: int) -> list[DataFile]:
        """Write the rows of a range as files that wait for a commit; the newest record of a key comes first."""
        numbers = range(end - 1, start - 1, -1)
        columns = {
            "card": pa.array([card(n) for n in numbers]),
            "number": pa.array(numbers, pa.int64()),
            "amount": pa.array([amount(n) for n in numbers], pa.int32()),
            "paid_at": pa.array([(self.first_second + n) * 1_000_000 for n in numbers], pa.timestamp("us", tz="UTC")),
            "_kafka": _kafka(numbers),
        }
        schema = self.target.schema()
        rows = pa.table([columns[name] for name in schema.names], schema=schema)
        return write_data_files(rows, self.target.layout(), uuid.uuid4().hex)

    def _commit(self, files: list[DataFile], draft: Entry) -> Committed:
        committed = commit_entry(
            self.target, self.view, files, draft, own_epoch=self.epoch, check_lease=self.check_lease, attempts=5
        )
        self.view = committed.view
        return committed

    def _draft(self, kind: Any, start: int, end: int) -> Entry:
        return Entry(
            kind=kind,
            pipeline=self.pipeline,
            epoch=self.epoch,
            commit=new_commit_id(),
            range=offsets(start, end) if end > start else {},
            read=end - start,
            landed=end - start,
            rows=end - start,
            lane="driver" if end > start else None,
        )


def _kafka(numbers: Sequence[int]) -> pa.Array:
    place = {"topic": SOURCE, "topic_id": "source-id", "partition": 0, "timestamp": None, "ordinal": 0}
    return pa.array([{**place, "offset": number} for number in numbers], KAFKA_TYPE)


def main() -> None:
    """Land so many batches after what the ledger holds; or, where BATCHES is ``empty``, empty the store."""
    home, spec, epoch, batches = sys.argv[1:]
    if batches == "empty":
        connect_store(ToStoreSpec.model_validate_json(spec), "to_stores[0]").empty()
        return
    StoreLander(Path(home), ToStoreSpec.model_validate_json(spec), int(epoch)).land_next(int(batches))


if __name__ == "__main__":
    main()
