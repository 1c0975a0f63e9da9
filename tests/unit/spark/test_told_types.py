"""What `check` and `try` say of the columns of tables, without Spark: the schema is given."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lakebound.spec.table import TableSpec
from lakebound.tables.schemas import normalise_type
from lakebound.tables.table import KAFKA_TYPE
from lakebound.tables.type_names import type_name
from lakebound_spark.check import plan, trial
from lakebound_spark.reference.csv_files import rows_of
from lakebound_spark.reference.loaded import UnusableReferenceError
from lakebound_spark.reference.rules import ReferenceFacts, problem_in
from lakebound_spark.reference.sources import types_of

TABLE = TableSpec(format="delta", name="shop.orders")
SCHEMA = pa.schema([("total", pa.decimal128(12, 2)), ("at", pa.timestamp("us", tz="UTC")), ("_kafka", KAFKA_TYPE)])


def test_check_names_types_as_a_schema_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "table_schema", lambda *_: SCHEMA)
    monkeypatch.setattr(plan, "_compare", lambda *_: None)
    found, output, run = plan.PlannedCheck(), SimpleNamespace(schema=None), SimpleNamespace(spec=None)
    arguments: Any = (found, run, TABLE, ("tables", 0), output, frozenset())
    plan._check_table(*arguments)
    assert found.tables[TABLE.id].startswith("total: DECIMAL(12,2)\nat: TIMESTAMP\n_kafka: STRUCT<")
    assert found.columns[TABLE.id]["total"] == "DECIMAL(12,2)"


def test_try_names_types_as_a_schema_does() -> None:
    tried = trial._tried(TABLE, SCHEMA, SCHEMA.empty_table(), frozenset(), [])
    assert tried.columns == [("total", "DECIMAL(12,2)"), ("at", "TIMESTAMP"), ("_kafka", "STRUCT (its place in Kafka)")]


def test_a_change_of_reference_data_names_types_as_a_schema_does() -> None:
    before = types_of(pa.schema([("id", pa.int64()), ("since", pa.timestamp("us", tz="UTC")), ("rate", pa.decimal128(9, 2))]))
    now = types_of(pa.schema([("id", pa.int32()), ("since", pa.string()), ("rate", pa.float64())]))
    told = problem_in(ReferenceFacts(now, 1, 1), ["id"], before)
    assert told is not None
    assert "id from BIGINT to INT, since from TIMESTAMP to STRING, rate from DECIMAL(9,2) to DOUBLE" in told


@pytest.mark.parametrize(
    ("kind", "value", "told"), [(pa.timestamp("us"), "soon", "TIMESTAMP"), (pa.decimal128(9, 2), "x", "DECIMAL(9,2)")]
)
def test_a_value_that_does_not_fit_names_its_type_as_a_schema_does(
    tmp_path: Path, kind: pa.DataType, value: str, told: str
) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(f"id,column\n1,{value}\n")
    with pytest.raises(UnusableReferenceError, match=re.escape(f"has a value that {told} cannot hold")):
        rows_of(file, {"id": pa.int64(), "column": kind})


SIMPLE = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.int8(),
    pa.bool_(),
]
TIMED = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in (None, "UTC", "Europe/Berlin")]


@pytest.mark.parametrize("kind", [*SIMPLE, *TIMED, pa.dictionary(pa.int32(), pa.string())], ids=str)
@pytest.mark.parametrize("wrapped", [lambda kind: kind, pa.list_, pa.large_list, lambda kind: pa.struct([("a", kind)])])
def test_a_type_has_the_name_of_what_a_table_makes_of_it(kind: pa.DataType, wrapped: Any) -> None:
    name = type_name(wrapped(kind))
    assert name == type_name(normalise_type(wrapped(kind)))
    assert name.isupper() or "STRUCT<a: " in name
