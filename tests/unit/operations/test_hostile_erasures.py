"""A condition of `erase --where` is a condition on the rows of a table: it reads no file, and is no other statement."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakebound.inspection.query import QueryOfFilesError
from lakebound.operations.erase import matching
from lakebound.operations.erase.matching import BadConditionError, Matches, matches
from lakebound.spec.table import TableSpec
from lakebound.tables.table import KAFKA_TYPE

TABLE = TableSpec(format="delta", name="sales.orders")
FUNCTIONS = ("read_csv", "READ_PARQUET", "scan_ndjson", '"read_csv"', "read_ipc", "`read_csv`", "scan_delta")
SHAPES = ("{}('{file}') IS NOT NULL", "id IN (SELECT a FROM {}('{file}'))", "EXISTS (SELECT * FROM {} ('{file}'))")
OTHER = (
    *("id IN (SELECT a FROM read/**/_csv('{file}'))", "id IN (SELECT a FROM U&\"\\0072ead_csv\"('{file}'))", "(SELECT 1) = 1"),
    *("id IN (SELECT a FROM '{file}')", "1 = 1; DROP TABLE x", "id = 1 UNION SELECT 1", "*", "id", "columns('.*') = 1"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    return path


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = {"topic": "orders", "topic_id": "t", "partition": 0, "offset": 5, "timestamp": None, "ordinal": 0}
    rows = pa.table({"id": pa.array([1]), "_kafka": pa.array([origin], KAFKA_TYPE)})
    frame: Any = pl.from_arrow(rows)
    monkeypatch.setattr(matching, "contents_of", lambda *_: SimpleNamespace(frame=frame.lazy))


def found(where: str) -> Matches:
    places: Any = SimpleNamespace(read_only=lambda: None)
    return matches(TABLE, places, where, {"orders": {0: 9}}, {"orders": "t"})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_reads_a_file(file: Path, function: str, shape: str) -> None:
    with pytest.raises(QueryOfFilesError):
        found(shape.format(function, file=file))


@pytest.mark.parametrize("where", OTHER)
def test_what_is_no_condition_is_refused(file: Path, where: str) -> None:
    with pytest.raises(BadConditionError):
        found(where.replace("{file}", str(file)))


def test_a_condition_is_taken() -> None:
    assert found("id = 1").kafka.num_rows == 1
