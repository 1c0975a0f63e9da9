"""What `check` and `try` say of the columns of tables, without Spark: the schema is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lakebound.spec.table import TableSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.check import plan, trial

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
