"""What maintenance must leave as it is: rows, checksum, ledger; and what it is tried on: tables of many small commits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebound.landing.spark_command import QUICK_START
from lakebound.ledger.entry import ENTRY_KEY, Entry, encode
from lakebound.operations.maintenance.engines import carried_entry
from lakebound.operations.maintenance.steps import Compact
from lakebound.settings import Settings, load_settings
from lakebound.spec.maintenance import MIB
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.files import describe
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry, open_table
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import Lander, lander, make_table
from tests.support.tables.thread_safe import thread_safe


@dataclass(frozen=True)
class Content:
    """Rows, a checksum of (partition, offset, payload) in the order of offsets, and the entry that counts."""

    rows: int
    checksum: str
    entry: Entry | None


def content(spec: TableSpec, at: Places) -> Content:
    """Return what a table holds, read by its own library."""
    if spec.format == "delta":
        found = open_at(at.folder(spec)).to_pyarrow_table()
    else:
        found = foreign_iceberg(spec, at).scan().to_arrow()
    rows = [
        (row["_kafka"]["partition"], row["_kafka"]["offset"], row["id"], row["city"], row["at"]) for row in found.to_pylist()
    ]
    digest = hashlib.sha256(repr(sorted(rows, key=lambda row: row[:2])).encode()).hexdigest()
    return Content(len(rows), digest, open_table(spec, at).read_ledger().entry)


def stale_carries(spec: TableSpec, at: Places) -> list[str]:
    """Return the versions whose entry is carried on, and is not that of the newest commit before it which landed or opened."""
    found, waiting = list[str](), list[CommittedEntry]()
    for committed in open_table(spec, at).entries():
        if committed.entry.kind == "carry":
            waiting.append(committed)
            continue
        current = (committed.entry.coverage, committed.entry.epoch, committed.entry.commit)
        found += [one.version for one in waiting if (one.entry.coverage, one.entry.epoch, one.entry.carries) != current]
        waiting = []
    return found


def maintained_pipeline(policy: Mapping[str, Any], delta_partition_by: Sequence[str] = ()) -> PipelineSpec:
    """Return a pipeline of one table of each format with such a policy; its broker is never asked."""
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "500ms",
            "tables": [
                {"format": "delta", "name": "shop.orders", "partition_by": delta_partition_by},
                {"format": "iceberg", "name": "shop.orders"},
            ],
            "maintenance": policy,
        }
    )


def maintained_settings(home: Path) -> Settings:
    """Return settings under which the maintenance application starts fast."""
    return replace(load_settings(), home=home, warehouse=home / "lake", jvm_options=QUICK_START)


def small_commits(spec: TableSpec, at: Places, count: int, *, start: int = 0) -> Lander:
    """Return an application that has landed so many offsets, one per commit; the table is made where there is none."""
    if not open_table(spec, at).exists():
        make_table(spec, at)
    app = lander(spec, at)
    for offset in range(start, start + count):
        app.land(offset, offset + 1)
    return app


def compaction(spec: TableSpec, **changes: object) -> Compact:
    """Return the step that rewrites all small files of a table, or of a partition."""
    body = {"table": spec.id, "reason": "a test", "below_bytes": 96 * MIB, "target_file_bytes": 128 * MIB, **changes}
    return Compact.model_validate(body)


def live_files_of(spec: TableSpec, at: Places) -> int:
    """Return how many data files the current version has."""
    if spec.format == "delta":
        return int(pa.table(open_at(at.folder(spec)).get_add_actions()).num_rows)
    return int(foreign_iceberg(spec, at).inspect.files().num_rows)


def rewrite_iceberg(spec: TableSpec, at: Places) -> None:
    """Replace all data files of an Iceberg table by one, in one commit that carries the entry; without a JVM."""
    entry = carried_entry(spec, at)
    table = foreign_iceberg(spec, at)
    rows = table.scan().to_arrow()
    app = lander(spec, at)
    written = write_data_files(rows.cast(app.table.schema()), app.table.layout(), "compacted")
    old = [task.file for task in table.scan().plan_files()]
    with table.transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties={ENTRY_KEY: encode(entry)})
        with thread_safe(update.overwrite()) as snapshot:
            for file in old:
                snapshot.delete_data_file(file)
            for file in describe(written, table.metadata, spec.id):
                snapshot.append_data_file(file)
