"""Real Delta and Iceberg tables in a temporary folder, and batches for them. No JVM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import SqlCatalogSpec
from lakebound.storage.location import Location
from lakebound.tables.commit import Committed, Waits, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.layout import FileLayout
from lakebound.tables.places import Places, local_places
from lakebound.tables.table import KAFKA_TYPE, DataFile, LedgerView, Table, open_table

PIPELINE = "orders"
TOPIC = "orders"
TOPIC_ID = "topic-id-1"
FIRST_DAY_US = 1_700_006_400_000_000  # 2023-11-15T00:00:00Z
HOUR_US = 3_600_000_000

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("city", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("items", pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("quantity", pa.int32())]))),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)


def places(folder: Path) -> Places:
    """Return places of which nothing exists yet."""
    return local_places(folder, folder / "lake")


def with_catalog(at: Places, uri: str) -> Places:
    """Return the same places with another address of the catalog."""
    catalog = SqlCatalogSpec(type="sql", uri=uri)
    return at.model_copy(update={"warehouse": at.warehouse.model_copy(update={"catalog": catalog})})


def rows(start: int, end: int, partition: int = 0) -> pa.Table:
    """Return one row per offset; ``at`` advances by an hour per offset."""
    offsets = range(start, end)
    records = [
        {
            "id": offset,
            "city": f"city {offset % 3}",
            "at": FIRST_DAY_US + offset * HOUR_US,
            "items": [{"sku": f"sku-{offset}", "quantity": 1}],
            "_kafka": {
                "topic": TOPIC,
                "topic_id": TOPIC_ID,
                "partition": partition,
                "offset": offset,
                "timestamp": FIRST_DAY_US + offset,
                "ordinal": 0,
            },
        }
        for offset in offsets
    ]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def offsets(start: int, end: int, partition: int = 0) -> Offsets:
    """Return one interval of one partition."""
    return {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={partition: ((start, end),)})}


def genesis(epoch: int = 0) -> Entry:
    """Return a genesis entry."""
    return Entry(kind="genesis", pipeline=PIPELINE, epoch=epoch, commit=new_commit_id())


def layout_of(spec: TableSpec, folder: Path) -> FileLayout:
    """Return the layout that a new table of the spec would have in a folder."""
    return FileLayout(spec.id, spec.format, Location(str(folder)), spec.partition_fields())


def draft(start: int, end: int, epoch: int = 1, kind: str = "land") -> Entry:
    """Return the draft of an entry that lands an interval of partition 0."""
    landed = offsets(start, end) if end > start else {}
    count = end - start
    return Entry.model_validate(
        {"kind": kind, "pipeline": PIPELINE, "epoch": epoch, "commit": new_commit_id(), "range": landed}
        | {"read": count, "landed": count, "rows": count, "lane": "driver"}
    )


@dataclass
class Lander:
    """An application in small: a handle, the ledger as it last saw it, and an epoch."""

    table: Table
    view: LedgerView
    epoch: int = 1
    attempts: int = 4

    def write(self, start: int, end: int) -> list[DataFile]:
        """Write the files of a batch, uncommitted."""
        return write_data_files(rows(start, end), self.table.layout(), f"batch-{start}")

    def land(self, start: int, end: int, files: list[DataFile] | None = None, kind: str = "land") -> Committed:
        """Land the interval, or the given files of it."""
        committed = commit_entry(
            self.table,
            self.view,
            self.write(start, end) if files is None else files,
            draft(start, end, self.epoch, kind),
            own_epoch=self.epoch,
            check_lease=lambda: None,
            attempts=self.attempts,
            waits=Waits(between=lambda seconds: None),
        )
        self.view = committed.view
        return committed

    def open(self) -> Committed:
        """Commit an ``open`` entry of this epoch."""
        return self.land(0, 0, [], kind="open")


def pipeline_over(spec: TableSpec) -> PipelineSpec:
    """Return a pipeline that lands in the table alone, from a Kafka that is not there."""
    return PipelineSpec.model_validate(
        {
            "pipeline": PIPELINE,
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": spec.format, "name": spec.name}],
        }
    )


def make_table(spec: TableSpec, at: Places) -> Table:
    """Create the table with a genesis entry and return a handle that has read it."""
    table = open_table(spec, at)
    table.create(SCHEMA, genesis())
    table.read_ledger()
    return table


def lander(spec: TableSpec, at: Places, epoch: int = 1) -> Lander:
    """Return another application for a table that exists."""
    table = open_table(spec, at)
    return Lander(table, table.read_ledger(), epoch)


def landed_twice(spec: TableSpec, at: Places) -> Lander:
    """Make a table, and return an application that has opened it and landed [0, 10) and [10, 20)."""
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    app.land(0, 10)
    app.land(10, 20)
    return app


def landed_offsets(table: Table) -> list[int]:
    """Return the offset of every row, sorted: doubles show."""
    found: Iterable[int] = table.scan_kafka()["offset"].to_pylist()
    return sorted(found)


@pytest.fixture(name="app")
def app_fixture(spec: TableSpec, at: Places) -> Lander:
    """An application of epoch 1 that has opened the table and landed [0, 10)."""
    make_table(spec, at)
    opened = lander(spec, at)
    opened.open()
    opened.land(0, 10)
    return opened
