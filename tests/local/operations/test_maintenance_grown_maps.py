"""Compaction without Spark of an Iceberg table in which the struct of a map has grown."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.catalogs.compacting import compaction
from tests.support.tables.local_tables import PIPELINE, genesis, lander, rows

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.schema_change import plan_schema
from lakebound.tables.table import KAFKA_TYPE, open_table


def schema(*inside: str) -> pa.Schema:
    value = pa.struct([(name, pa.int32()) for name in inside])
    return pa.schema([("id", pa.int64()), ("m", pa.map_(pa.string(), value)), pa.field("_kafka", KAFKA_TYPE)])


def batch(start: int, end: int, *inside: str) -> pa.Table:
    made, kind = rows(start, end), schema(*inside)
    maps = [[("k", dict.fromkeys(inside, n))] if n % 3 else None for n in range(start, end)]
    return pa.table([made["id"], pa.array(maps, kind.field("m").type), made["_kafka"]], schema=kind)


def test_a_map_whose_struct_has_grown_is_compacted(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.maps")
    open_table(spec, at).create(schema("a"), genesis())
    app = lander(spec, at)
    for start in (0, 5):
        app.land(start, start + 5, write_data_files(batch(start, start + 5, "a"), app.table.layout(), "b"))
    app.table.change_schema(plan_schema(app.table.schema(), schema("a", "b"), "add_columns", "iceberg"), app.view.entry)
    app.view = app.table.read_ledger()
    app.land(10, 15, write_data_files(batch(10, 15, "a", "b"), app.table.layout(), "b"))
    done = FileRewriter(at, ControlFolder(at.home, PIPELINE)).compact(spec, compaction(spec))
    assert (done.files_before, done.files_after, done.problem) == (3, 1, "")
    (file,) = app.table.layout().folder.path.glob("compacted-*.parquet")
    found = {row["id"]: row["m"] for row in pq.read_table(file).to_pylist()}
    assert found == {n: [("k", {"a": n, "b": n if n >= 10 else None})] if n % 3 else None for n in range(15)}
