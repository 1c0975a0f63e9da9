"""Texts of a Delta log, which readers in Rust, Java and Python parse each by a parser of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.support.tables.local_tables import Lander, lander, make_table, rows
from tests.support.tables.maintained import compaction

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.delta.needed_names import needed_names
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.put import put
from lakebound.tables.delta.tip import read_tip
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

TEXTS = (
    "\U00020000x",
    "\U0010ffff" * 40,
    "\U0001f600",
    "\U000fffff",
    "\ud7ff\ue000",
    "\x7f\x01\x1f",
    "line\u2028end\x85\x0b\x0c\x1c",
    "a\rb\nc\td",
    "q\"\\z/'",
    "\x00",
)
"""Above U+1FFFF arrow-json 59 reads escaped surrogate pairs wrongly; where a line ends, str.splitlines differs from the log."""


def _landed(spec: TableSpec, at: Places) -> Lander:
    """Return an application that has landed each text in a commit of its own, twice."""
    make_table(spec, at)
    app = lander(spec, at)
    for offset, text in enumerate(TEXTS * 2):
        batch = rows(offset, offset + 1)
        batch = batch.set_column(batch.schema.get_field_index("city"), "city", pa.array([text]))
        app.land(offset, offset + 1, write_data_files(batch, app.table.layout(), "t"))
    return app


def _found(path: Path, text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield which rows each reader finds by a text."""
    table = DeltaTable(str(path))
    dataset = table.to_pyarrow_dataset()
    yield "dataset", sorted(dataset.to_table(columns=["id"], filter=ds.field("city") == pa.scalar(text))["id"].to_pylist())
    frame = pl.scan_delta(str(path)).filter(pl.col("city") == text).select("id").collect()
    yield "polars", sorted(frame["id"].to_list())
    if "\x00" not in text:
        quoted = text.replace("'", "''")
        batches = QueryBuilder().register("t", table).execute(f"SELECT id FROM t WHERE city = '{quoted}'").read_all()
        yield "sql", sorted(pa.table(batches)["id"].to_pylist())


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("partition_by", [(), ("city",)], ids=["bounds", "partition values"])
def test_every_reader_of_a_delta_log_reads_its_texts_as_they_were_written(
    partition_by: tuple[str, ...], is_compacted: bool, at: Places
) -> None:
    spec = TableSpec(format="delta", name="shop.texts", partition_by=partition_by)
    _landed(spec, at)
    if is_compacted:
        DeltaEngine(at).compact(spec, compaction(spec))
    path = at.delta_path(spec)
    held = {row["id"]: row["city"] for row in DeltaTable(str(path)).to_pyarrow_table(columns=["id", "city"]).to_pylist()}
    assert held == dict(enumerate(TEXTS * 2))
    for number, text in enumerate(TEXTS):
        found = dict(_found(path, text))
        assert found == {reader: [number, number + len(TEXTS)] for reader in found}, ascii(text)


def test_a_commit_of_others_whose_texts_hold_line_ends_of_unicode_is_read(at: Places) -> None:
    """deltalake and Spark write them as they are, too."""
    spec = TableSpec(format="delta", name="shop.texts", partition_by=("city",))
    _landed(spec, at)
    path = at.folder(spec)
    tip = read_tip(path, DeltaTable(path.address).version(), spec.id)
    info: dict[str, Any] = {"operation": "WRITE", "note": "a\u2028b", "timestamp": 1}
    tip = put(path, tip, json.dumps({"commitInfo": info}, ensure_ascii=False) + "\n", spec.id)
    newest = next(iter(open_table(spec, at).history().versions()))
    assert (newest.version, newest.committed_at_ms) == (str(tip.version), 1)
    assert len({name for name in needed_names(spec, at, path) if name.startswith("t-")}) == 2 * len(TEXTS)
    assert open_table(spec, at).look_back(newest.version).missing_files == ()
