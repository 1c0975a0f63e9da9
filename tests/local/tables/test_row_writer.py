"""Slices of a batch become files of every table, or nothing: what is not closed is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.tables.local_tables import layout_of

from lakebound.errors import TableMismatchError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.layout import FileLayout
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch import row_writer
from lakebound_spark.batch.row_writer import RowWriter

pytestmark = pytest.mark.local

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("note", pa.string())])


class Place:
    """A table as far as writing looks at it."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema = SCHEMA) -> None:
        self.spec = TableSpec(format="delta", name=f"db.{name}")
        self._folder, self._schema = folder / name, schema

    def schema(self) -> pa.Schema:
        return self._schema

    def layout(self) -> FileLayout:
        return layout_of(self.spec, self._folder)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def rows(first: int, count: int = 10) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_every_table_gets_all_slices(tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writer, "ROW_GROUP_BYTES", 200)
    tables = [Place(tmp_path, "one"), Place(tmp_path, "two")]
    with RowWriter(tables, "t", {}, pool) as writer:  # type: ignore[arg-type]
        for first in range(0, 100, 10):
            writer.write(rows(first))
        written = writer.close()
    assert (written.rows, written.records, set(written.files)) == (100, 100, {"delta:db.one", "delta:db.two"})
    for (file,) in written.files.values():
        found = pq.ParquetFile(file.path.path).read()
        assert found["id"].to_pylist() == list(range(100))
        assert found["note"].null_count == 100, "a column that only the table has"
        assert 1 < file.metadata.num_row_groups < 10


def test_a_batch_without_rows_has_no_files(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    with RowWriter([Place(tmp_path, "one")], "t", {}, pool) as writer:  # type: ignore[list-item]
        writer.write(rows(0, 0))
        written = writer.close()
    assert (written.files, written.rows) == ({}, 0)
    assert files_below(tmp_path) == []


def test_what_is_not_closed_is_deleted(tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writer, "ROW_GROUP_BYTES", 50)
    with RowWriter([Place(tmp_path, "one")], "t", {}, pool) as writer:  # type: ignore[list-item]
        writer.write(rows(0))
        writer.write(rows(10))
    assert files_below(tmp_path) == []


def test_a_table_that_lacks_a_column_stops_the_batch_and_no_file_stays(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    narrow = Place(tmp_path, "narrow", pa.schema([pa.field("note", pa.string())]))
    with (
        pytest.raises(TableMismatchError, match="no column id any more"),
        RowWriter([Place(tmp_path, "wide"), narrow], "t", {}, pool) as writer,  # type: ignore[list-item]
    ):
        writer.write(rows(0))
        writer.close()
    assert files_below(tmp_path) == []


def test_records_are_counted_where_one_may_give_several_rows(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    place = Place(tmp_path, "one", pa.schema([*SCHEMA, pa.field(KAFKA_COLUMN, KAFKA_TYPE)]))
    with RowWriter([place], "t", {}, pool, multiplies=True) as writer:  # type: ignore[list-item]
        for offsets in ((0, 0, 1), (2, 4, 4)):
            kafka = [{"topic": "orders", "partition": 0, "offset": offset, "ordinal": at} for at, offset in enumerate(offsets)]
            writer.write(rows(0, 3).append_column(pa.field(KAFKA_COLUMN, KAFKA_TYPE), pa.array(kafka, KAFKA_TYPE)))
        written = writer.close()
    assert (written.rows, written.records) == (6, 4)
