"""A pipeline's tables with quarantined records, made by its own means and without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.ledger.intervals import merge
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, Table, open_table
from tests.support.tables.local_tables import FIRST_DAY_US, PIPELINE, SCHEMA, TOPIC, TOPIC_ID, genesis

QUARANTINE = pa.schema(
    [
        pa.field("_kafka", KAFKA_TYPE),
        *(pa.field(name, kind) for name, kind in (("reason", pa.string()), ("error", pa.string()))),
        *(pa.field(name, pa.binary()) for name in ("key", "value")),
    ]
)
Bad = tuple[int, str, bytes | None]
"""Offset, reason, value. A reason that begins with ``copy:`` marks a copy of a record that landed, whatever it is called."""


@dataclass
class Quarantined:
    """Tables in both formats whose stream has covered [0, ``end``) of one partition, and put some of it into quarantine."""

    at: Places
    bad: Sequence[Bad]
    end: int
    quarantine_format: str = "delta"

    def __post_init__(self) -> None:
        body = {
            "pipeline": PIPELINE,
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": name, "name": "shop.orders"} for name in ("delta", "iceberg")],
            "quarantine": {"format": self.quarantine_format, "name": "quarantine.orders"},
        }
        self.spec = PipelineSpec.model_validate(body)
        for one in self.spec.tables:
            self.open(one).create(SCHEMA, genesis())
        self.open(self.spec.quarantine_table).create(QUARANTINE, genesis())
        bad = pa.Table.from_pylist([_bad_row(*one) for one in self.bad], schema=QUARANTINE)
        quarantine = self.open(self.spec.quarantine_table)
        number = len(self.bad)
        self.commit(quarantine, bad, range=span((0, self.end)), read=number, quarantined=number, rows=number)
        for one in self.spec.tables:
            self.commit(self.open(one), None, range=span((0, self.end)), read=number, quarantined=number)

    def open(self, one: TableSpec) -> Table:
        """Return a handle."""
        return open_table(one, self.at)

    @property
    def targets(self) -> list[Table]:
        """Handles of the targets."""
        return [self.open(one) for one in self.spec.tables]

    def commit(self, table: Table, data: pa.Table | None, *, attempts: int = 1, kind: str = "land", **body: object) -> None:
        """Commit rows with an entry of these fields."""
        files = [] if data is None else write_data_files(data, table.layout(), new_commit_id())
        draft = Entry.model_validate({"kind": kind, "pipeline": PIPELINE, "epoch": 1, "commit": new_commit_id(), **body})
        view = table.read_ledger()
        commit_entry(table, view, files, draft, own_epoch=1, check_lease=lambda: None, attempts=attempts)

    def release(self, table: Table, *offsets: int) -> None:
        """Land quarantined records in one table."""
        rows, number = rows_of(offsets), len(offsets)
        releases = span(*((offset, offset + 1) for offset in offsets))
        self.commit(table, rows, kind="release", releases=releases, read=number, landed=number, rows=number)


def rows_of(offsets: Sequence[int]) -> pa.Table:
    """Return a row of a target for each offset."""
    return pa.Table.from_pylist([_good_row(offset) for offset in offsets], schema=SCHEMA)


def span(*intervals: tuple[int, int]) -> Offsets:
    """Return offsets of partition 0."""
    return {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: merge(intervals)})}


def _kafka(offset: int, ordinal: int = 0) -> dict[str, object]:
    return {
        "topic": TOPIC,
        "topic_id": TOPIC_ID,
        "partition": 0,
        "offset": offset,
        "timestamp": FIRST_DAY_US + offset * 1_000_000,
        "ordinal": ordinal,
    }


def _bad_row(offset: int, reason: str, value: bytes | None) -> dict[str, object]:
    name = reason.removeprefix("copy:")
    kafka = _kafka(offset, 0 if name == reason else -1)
    return {"_kafka": kafka, "reason": name, "error": f"{name} of {offset}", "key": b"k", "value": value}


def _good_row(offset: int) -> dict[str, object]:
    return {"id": offset, "city": "x", "at": None, "items": None, "_kafka": _kafka(offset)}
