"""Types are told as people write them in a pipeline's schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebound.spec.ddl import ddl_mistakes
from lakebound.tables.type_names import told_columns, type_name

UTC = pa.timestamp("us", tz="UTC")
TOLD = {
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": UTC,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "DECIMAL(12,2)": pa.decimal128(12, 2),
    "ARRAY<STRUCT<sku: STRING, at: TIMESTAMP>>": pa.list_(pa.struct([("sku", pa.string()), ("at", UTC)])),
    "MAP<STRING, ARRAY<INT>>": pa.map_(pa.string(), pa.list_(pa.int32())),
}


@pytest.mark.parametrize("told", TOLD)
def test_a_type_is_told_as_a_schema_of_records_has_it(told: str) -> None:
    assert type_name(TOLD[told]) == told
    assert ddl_mistakes(f"a {told}") == []


def test_columns_are_a_line_each_however_deep() -> None:
    schema = pa.schema([("id", pa.string()), ("items", TOLD["ARRAY<STRUCT<sku: STRING, at: TIMESTAMP>>"])])
    assert told_columns(schema).splitlines() == ["id: STRING", "items: ARRAY<STRUCT<sku: STRING, at: TIMESTAMP>>"]
