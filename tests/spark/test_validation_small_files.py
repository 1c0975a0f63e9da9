"""Rows of small files are the same, whoever reads them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.streams.long_form import each_value_once

from lakebound.inspection.validation.landed_files import LandedFile
from lakebound.storage.location import Location
from lakebound_spark.validate import small_files as validate_small_files
from lakebound_spark.validate.copies import Copies
from lakebound_spark.validate.frames import COMMITTED_AT_MS, read_files
from lakebound_spark.validate.small_files import are_small

pytestmark = pytest.mark.spark

NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 123456)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("raw", pa.binary()),
        pa.field("ratio", pa.float64()),
        pa.field("items", pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("quantity", pa.int32())]))),
        pa.field("tags", pa.map_(pa.string(), pa.int64())),
        pa.field("added later", pa.string()),
        pa.field("part_day", pa.date32()),
        pa.field("part_text", pa.string()),
    ]
)
PARTITIONS = ("part_day", "part_text")


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "amount": Decimal(number) / 4 if number % 2 else None,
        "at": NOON.replace(tzinfo=datetime.UTC) if number % 3 else None,
        "local": NOON,
        "day": NOON.date(),
        "raw": b"\xff\x00",
        "ratio": float("nan") if number == 1 else 0.5,
        "items": [{"sku": "a", "quantity": number}, {"sku": None, "quantity": None}],
        "tags": [("x", number)],
        "added later": f"text {number}",
    }


def land(path: Path, schema: pa.Schema, first: int, partition: dict[str, str | None]) -> LandedFile:
    held = pa.schema([field for field in schema if field.name not in PARTITIONS])
    rows = [{name: value for name, value in row(number).items() if name in held.names} for number in range(first, first + 4)]
    pq.write_table(pa.Table.from_pylist(rows, schema=held), path)
    return LandedFile(Location(str(path)), "1", first * 1000, 4, partition)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(found) for found in frame.collect())


def both(session: SparkSession, files: list[LandedFile], schema: pa.Schema, *, with_commits: bool) -> list[DataFrame]:
    """Return what pyarrow reads, and what Spark does, for which a file must not say how many rows it has."""
    unknown = [LandedFile(one.path, one.version, one.committed_at_ms, None, one.partition) for one in files]
    assert are_small(files) and not are_small(unknown)
    return [read_files(session, each, schema, Copies(), with_commits=with_commits) for each in (files, unknown)]


@each_value_once
@pytest.mark.parametrize("with_commits", [False, True])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_they_are_the_same(session: SparkSession, tmp_path: Path, is_partitioned: bool, with_commits: bool) -> None:
    schema = SCHEMA if is_partitioned else pa.schema([field for field in SCHEMA if field.name not in PARTITIONS])
    older = pa.schema([field for field in schema if field.name != "added later"])
    partitions: list[dict[str, str | None]] = [
        {"part_day": "2026-01-02", "part_text": "a b/c"},
        {"part_day": None, "part_text": None},
    ]
    files = [
        land(tmp_path / f"{number}.parquet", kind, number * 4, partitions[number] if is_partitioned else {})
        for number, kind in enumerate((older, schema))
    ]
    small, spark = both(session, files, schema, with_commits=with_commits)
    assert small.dtypes == spark.dtypes and (COMMITTED_AT_MS in small.columns) is with_commits
    assert rows_of(small) == rows_of(spark) and len(rows_of(small)) == 8
    assert "parquet" not in str(small._jdf.queryExecution()).lower(), "it was pyarrow that read them"


def test_what_pyarrow_would_read_otherwise_is_left_to_spark(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ID": [1, 2]}), tmp_path / "upper.parquet")
    file = LandedFile(Location(str(tmp_path / "upper.parquet")), "1", 0, 2)
    found = read_files(session, [file], pa.schema([pa.field("id", pa.int64())]), Copies())
    assert sorted(one.id for one in found.collect()) == [1, 2]


def test_many_rows_and_large_files_are_not_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = land(tmp_path / "x.parquet", SCHEMA, 0, {})
    assert are_small([file])
    monkeypatch.setattr(validate_small_files, "MAX_ROWS", 3)
    assert not are_small([file])
    monkeypatch.setattr(validate_small_files, "MAX_ROWS", 4)
    monkeypatch.setattr(validate_small_files, "MAX_BYTES", 10)
    assert not are_small([file])
