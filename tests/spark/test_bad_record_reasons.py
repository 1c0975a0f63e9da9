"""A row of the quarantine says what is wrong with its record: the field and its value, or the place in the text."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.bad_reasons import observed_reasons, reasons_of
from lakebound_spark.batch.decode import make_decoder
from lakebound_spark.batch.quarantine import quarantine_columns
from lakebound_spark.batch.record_format import value_schema
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark


def pipeline(schema: str) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": schema},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


def decoded(session: SparkSession, spec: PipelineSpec, values: Sequence[bytes]) -> DataFrame:
    stamp = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [(b"key", value, "orders", 0, offset, stamp, 0, None) for offset, value in enumerate(values)]
    return make_decoder(spec, {"orders": "id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))


SCHEMA = "id STRING NOT NULL, amount DECIMAL(12,2), at TIMESTAMP, items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"
BAD = [
    (b'{"id":"a","amount":"abc"}', "amount: 'abc' is not a DECIMAL(12,2)"),
    (b'{"id":"a","items":[{"price":1},{"price":2},{"price":"x"}]}', "items[2].price: 'x' is not a DOUBLE"),
    (b'{"id":"a","at":1700000000000}', "at: 1700000000000 looks like epoch milliseconds; the schema says TIMESTAMP"),
    (b'{"amount":1}', "required but missing or null: id"),
    (b'{"id":"a","amount":1,"amount":"abc"}', "amount: 'abc' is not a DECIMAL(12,2)"),
]


def errors(rows: list[dict[str, object]]) -> list[object]:
    return [row["error"] for row in sorted(rows, key=lambda row: row["_kafka"]["offset"])]  # type: ignore[index]


def test_the_quarantines_rows_name_the_field(session: SparkSession, tmp_path: Path) -> None:
    spec = pipeline(SCHEMA)
    bad = quarantine_columns(decoded(session, spec, [value for value, _ in BAD]))
    rows = bad.toArrow()
    assert errors(rows.to_pylist()) == [error for _, error in BAD]
    told = {"does_not_fit: amount": 2, "does_not_fit: items": 1, "does_not_fit: at": 1, "missing_field: id": 1}
    assert reasons_of(rows, value_schema(spec)) == told
    output, observed = observed_reasons(bad, value_schema(spec), "tag")
    output.coalesce(2).write.parquet(str(tmp_path / "rows"))
    assert observed() == told, "the executors count the same"
    parts = ["amount", "key"]  # an error may begin with both
    output, observed = observed_reasons(bad, value_schema(spec), "parts", parts)
    output.write.parquet(str(tmp_path / "parts"))
    assert observed() == told == reasons_of(rows, value_schema(spec), parts)
    output, observed = observed_reasons(bad, None, "bytes")
    output.write.parquet(str(tmp_path / "bytes"))
    assert observed() == {"does_not_fit": 4, "missing_field": 1}


MALFORMED = [
    (b'\xef\xbb\xbf{"id":"a"}', "byte order mark"),
    (b'\0\0\0\0\x07{"id":"a"}', "schema id 7"),
    (b'{"id":"a","amount":NaN}', "amount: character 20: NaN is no JSON number"),
    (b'{"id":"a\tb"}', "id: character 9: a raw control character (U+0009)"),
    (b'{"id":"a","items":' + b"[" * 1100 + b"]" * 1100 + b"}", "1101 levels deep"),
    (b'{"id":"a"} {"id":"b"}', "id: character 12: the JSON value has ended"),
    (b'{"id":"a","amount":1', "amount: character 21: the text ends within the JSON value"),
    (b'[{"id":"a"}]', "the value is an array"),
]


def test_what_is_no_json_object_is_told_with_its_place(session: SparkSession) -> None:
    bad = quarantine_columns(decoded(session, pipeline(SCHEMA), [value for value, _ in MALFORMED])).toArrow()
    assert len(bad) == len(MALFORMED)
    for found, (_, told) in zip(errors(bad.to_pylist()), MALFORMED, strict=True):
        assert told in str(found)
