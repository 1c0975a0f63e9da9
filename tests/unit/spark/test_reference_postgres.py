"""Columns and rows of PostgreSQL as Arrow has them: what is mapped, and what is refused by its column's name."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lakebound_spark.reference.loaded import UnusableReferenceError
from lakebound_spark.reference.postgres_types import Column, arrow_types, rows_of


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Column("c", "int2"), pa.int16()),
        (Column("c", "float4"), pa.float32()),
        (Column("c", "uuid"), pa.string()),
        (Column("c", "jsonb"), pa.string()),
        (Column("c", "timestamptz"), pa.timestamp("us", "UTC")),
        (Column("c", "numeric", 10, 2), pa.decimal128(10, 2)),
        (Column("c", "numeric", 38, 0), pa.decimal128(38, 0)),
        (Column("c", "numeric"), pa.decimal128(38, 18)),
    ],
)
def test_types_of_columns(column: Column, kind: pa.DataType) -> None:
    assert arrow_types([Column("id", "int8"), column]) == {"id": pa.int64(), "c": kind}


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (Column("c", "bytea"), r"c \(bytea\)"),
        (Column("c", "int4[]"), r"c \(int4\[\]\)"),
        (Column("c", "numeric", 39, 2), r"c \(numeric\(39,2\)\)"),
        (Column("c", "numeric", 3, 5), r"c \(numeric\(3,5\)\)"),
        (Column("id", "text"), "it has two columns id"),
    ],
)
def test_a_column_that_cannot_be_read_is_named(column: Column, told: str) -> None:
    with pytest.raises(UnusableReferenceError, match=told):
        arrow_types([Column("id", "int8"), column])


def test_rows_are_as_the_server_wrote_them() -> None:
    types = arrow_types([Column("name", "text"), Column("ok", "bool"), Column("n", "numeric"), Column("at", "timestamp")])
    text = b'"a\n""b",t,1.5,2024-01-01 00:00:00.5\n"",f,,\n,,,\n'
    rows = rows_of(text, types)
    assert rows.schema == rows_of(b"", types).schema and rows.schema.field("at").type == pa.timestamp("us", "UTC")
    assert rows.drop_columns("at").to_pylist() == [
        {"name": 'a\n"b', "ok": True, "n": Decimal("1.5")},
        {"name": "", "ok": False, "n": None},
        {"name": None, "ok": None, "n": None},
    ]


def test_a_null_in_a_table_of_one_column_is_a_row() -> None:
    assert rows_of(b"x\n\n", {"id": pa.string()}).to_pylist() == [{"id": "x"}, {"id": None}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("numeric", "-Infinity"),
        ("numeric", "0.1234567890123456789"),
        ("date", "0044-01-01 BC"),
        ("timestamptz", "10000-01-01 00:00:00+00"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_not_repeated(kind: str, value: str) -> None:
    types = arrow_types([Column("id", "text"), Column("limit", kind)])
    with pytest.raises(UnusableReferenceError, match="column limit has a value that") as error:
        rows_of(f"a,{value}\n".encode(), types)
    assert value not in str(error.value) and error.value.__cause__ is None
