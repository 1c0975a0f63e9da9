"""Rows that come in parts become files of one partition value each, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.support.tables.local_tables import layout_of

from lakebound.spec.table import TableSpec
from lakebound.tables import datafiles
from lakebound.tables.datafiles import DataFileWriter
from lakebound.tables.table import DataFile

pytestmark = pytest.mark.local

PLAIN = TableSpec(format="iceberg", name="db.plain")
BY_CITY = {
    "delta": TableSpec(format="delta", name="db.by_city", partition_by=("city",)),
    "iceberg": TableSpec(format="iceberg", name="db.by_city", partition_by=("city",)),
}


def part(first: int, cities: list[str]) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + len(cities)), pa.int64()), "city": cities})


def ids(files: list[DataFile]) -> list[list[int]]:
    return [pq.ParquetFile(file.path.path).read(columns=["id"])["id"].to_pylist() for file in files]


def test_parts_become_row_groups_of_one_file(tmp_path: Path) -> None:
    writer = DataFileWriter(layout_of(PLAIN, tmp_path / "data"), "t")
    for first in (0, 2, 4):
        writer.write(part(first, ["a", "b"]))
    writer.write(part(9, []))
    (file,) = writer.close()
    assert ids([file]) == [[0, 1, 2, 3, 4, 5]]
    assert (file.rows, file.metadata.num_row_groups, file.size_bytes) == (6, 3, file.path.path.stat().st_size)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [file.path.name]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_each_partition_value_has_a_file_over_all_parts(tmp_path: Path, table_format: str) -> None:
    writer = DataFileWriter(layout_of(BY_CITY[table_format], tmp_path), "t")
    writer.write(part(0, ["a", "b", "a"]))
    writer.write(part(3, ["b", "c"]))
    assert sorted(ids(writer.close())) == [[0, 2], [1, 3], [4]]


def test_few_files_are_open_at_once_and_no_row_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datafiles, "MAX_OPEN_FILES", 3)
    writer = DataFileWriter(layout_of(BY_CITY["delta"], tmp_path), "t")
    for first in range(0, 40, 10):
        writer.write(part(first, [f"city-{number}" for number in range(10)]))
        assert len(writer._open) <= 3
    files = writer.close()
    assert sorted(number for file in ids(files) for number in file) == list(range(40))
    for file in files:
        assert {number % 10 for number in ids([file])[0]} == {int(file.partition["city"].removeprefix("city-"))}
    assert len({file.path for file in files}) == len(files)


def test_what_is_discarded_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datafiles, "MAX_OPEN_FILES", 2)
    writer = DataFileWriter(layout_of(BY_CITY["iceberg"], tmp_path), "t")
    writer.write(part(0, ["a", "b", "c"]))
    assert len(list(tmp_path.iterdir())) == 3
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_file_holds_what_its_footer_says(tmp_path: Path) -> None:
    writer = DataFileWriter(layout_of(PLAIN, tmp_path), "t")
    writer.write(part(5, ["x"] * 10))
    writer.write(part(100, ["y"] * 10))
    (file,) = writer.close()
    found = pq.ParquetFile(file.path.path).read()
    groups = [file.metadata.row_group(number).column(0).statistics for number in range(2)]
    assert [(one.min, one.max) for one in groups] == [(5, 14), (100, 109)]
    assert pc.min_max(found["id"]).as_py() == {"min": 5, "max": 109}
