"""What an executor makes of an Arrow batch is what the driver makes of the same records, in the columns that Spark expects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from tests.support.streams.long_form import examples
from tests.support.tables.json_texts import DOUBTFUL, PLAIN, mutations, strange_values

from lakebound.formats.headers import headers_array
from lakebound.landing.direct_read import GivenHeaders, RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.decode import PROBLEM, SKIPPED, Whether, decoded_batch, parsed_type
from lakebound_spark.batch.decoded_rows import RowDecoder, kafka_of
from lakebound_spark.batch.record_format import json_format

LINE = StructType([StructField("amount", DecimalType(9, 3), nullable=False), StructField("at", TimestampType())])
FORM = json_format(
    StructType(
        [
            StructField("id", StringType(), nullable=False),
            StructField("n", IntegerType()),
            StructField("f", FloatType()),
            StructField("at", TimestampType()),
            StructField("wall", TimestampNTZType()),
            StructField("day", DateType()),
            StructField("amount", DecimalType(5, 2)),
            StructField("labels", MapType(StringType(), StringType())),
            StructField("lines", ArrayType(LINE)),
        ]
    )
)
VALUES: list[bytes | None] = [None, b"", *PLAIN, *DOUBTFUL, *mutations(seed=4, count=examples(2_000)), *strange_values(seed=4)]
RECORDS = RecordColumns(
    ["orders"] * len(VALUES),
    [0] * len(VALUES),
    [*range(len(VALUES))],
    [0] * len(VALUES),
    [b"key"] * len(VALUES),
    VALUES,
    [GivenHeaders([("n", b"%d" % offset)]) for offset in range(len(VALUES))],
)


def batch_of(*, is_null_skipped: bool, keeps_bytes: bool, size: int) -> pa.Table:
    kafka = kafka_of(RECORDS, {"orders": "id"})
    columns = [kafka, pa.array(RECORDS.keys, pa.binary()), pa.array(VALUES, pa.binary()), headers_array(RECORDS.headers())]
    given = pa.record_batch(columns, [KAFKA_COLUMN, "_key", "_value", "_headers"])
    parsed, decoder = to_arrow_type(parsed_type(FORM)), FORM.decoder()
    parts = [given.slice(first, size) for first in range(0, len(VALUES), size)]
    made = [decoded_batch(part, decoder, parsed, Whether(is_null_skipped, keeps_bytes)) for part in parts]
    assert made[0].schema.field("_parsed").type == parsed
    return pa.Table.from_batches(made)


@pytest.mark.parametrize("size", [31, 1_000])
def test_rows_and_reasons_are_those_of_the_driver(size: int) -> None:
    found = batch_of(is_null_skipped=True, keeps_bytes=False, size=size).to_pylist()
    made = RowDecoder(FORM.decoder(), {"orders": "id"}, is_null_skipped=True)(RECORDS)
    rows = {row[KAFKA_COLUMN]["offset"]: row for row in made.rows.to_pylist()}
    bad = {row[KAFKA_COLUMN]["offset"]: (row["reason"], row["error"]) for row in made.bad.to_pylist()}
    quarantined = {row[KAFKA_COLUMN]["offset"]: row["headers"] for row in made.bad.to_pylist()}
    for offset, row in enumerate(found):
        expected: Any = f"{bad[offset][0]}\t{bad[offset][1]}" if offset in bad else None
        assert row[PROBLEM] == (SKIPPED if offset == 0 else expected)
        assert (row["_key"], row["_value"]) == ((None, None) if offset in rows else (b"key", VALUES[offset]))
        headers = [{"name": "n", "value": b"%d" % offset}]
        assert row["_headers"] == (None if offset in rows else headers), "bad records keep their headers"
        assert offset == 0 or offset in rows or quarantined[offset] == headers
        assert row["_value_bytes"] == (None if VALUES[offset] is None else len(VALUES[offset] or b""))
        own = {**(row["_parsed"] or {}), KAFKA_COLUMN: row[KAFKA_COLUMN]}
        assert offset not in rows or repr(own) == repr(rows[offset])
    assert len(rows) > 200 and len(bad) > 1_000


def test_bytes_are_kept_where_they_may_be_asked_for() -> None:
    found = batch_of(is_null_skipped=False, keeps_bytes=True, size=1_000)
    assert found["_value"].to_pylist() == VALUES
    assert found[PROBLEM][0].as_py() == "null_value\tthe record has no value"
