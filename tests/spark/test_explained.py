"""What is said of a bad record's fields agrees with Spark, value by value and type by type."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import explained as explained_module
from lakebound_spark.batch.bad_reasons import observed_reasons, reasons_of
from lakebound_spark.batch.decode import PROBLEM, make_decoder, value_schema
from lakebound_spark.batch.explained import explained, explained_by_driver
from lakebound_spark.batch.misfits import explain
from lakebound_spark.batch.quarantine import quarantine_columns
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

TYPES = (
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL(5,2) DECIMAL(38,18) STRING BINARY DATE TIMESTAMP TIMESTAMP_NTZ "
    "ARRAY<INT> MAP<STRING,INT> STRUCT<a:INT,b:ARRAY<DATE>>"
).split()
TEXTS = """
    null true false 0 -1 127 128 255 256 -129 32767 32768 2147483647 2147483648 9223372036854775807 9223372036854775808 1.0 1.5
    -0.0 999.99 999.994 999.995 1000 1e2 1e5 3.4e38 3.5e38 1e308 1e400 -1e400 1700000000 1700000000000 1700000000123456
    253402300800 1700000000.5 "" "abc" "true" "12" "1,000.5" "999.999" " 5" "5 " "1e3" "1e9" "+5" ".5" "5." "NaN" "Infinity"
    "-INF" "aGk=" "aGk" "a b" "2026" "2026-1-2" "2026-02-30" "2026-13-01" "26-01-01" "2026-01-01" "2026-01-01T"
    "2026-01-01T10:11" "2026-01-01 1:2:3" "2026-01-01T10:11:12Z" "2026-01-01T10:11:12.123456789+01:00"
    "2026-01-01T10:11:12 Europe/Berlin" "2026-01-01T24:00:00" "2026-01-01T10:60" "2026-01-01T10:11:60" "2026-01-01Tx"
    "2026/01/01" "01.02.2026" "yesterday" "0000-12-31" "9999-12-31" "10000-01-01" "1700000000" "1700000000000" "1234567"
    [] [1,2] [1,"x"] [99999999999] {} {"a":1} {"a":"1"} {"a":1,"b":["2026-01-01"]} {"b":["x"]} {"a":[]}
"""
CHANGED = {
    *(("TINYINT", text) for text in ("128", "255")),
    *(("DATE", f'"{text}"') for text in ("12", "+5", "1234567", "2026-01-01T", "2026-01-01Tx")),
}
"""Spark's reader takes these for something else. Whether they are bad is the decoder's to say."""


def split(texts: str) -> list[str]:
    """Return JSON texts that are separated by white space."""
    decoder, rest, found = json.JSONDecoder(), texts.strip(), []
    while rest:
        _, end = decoder.raw_decode(rest)
        found.append(rest[:end])
        rest = rest[end:].lstrip()
    return found


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
    rows = [(b"key", value, "orders", 0, offset, stamp, 0) for offset, value in enumerate(values)]
    return make_decoder(spec, {"orders": "id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))


def test_a_field_is_named_where_spark_refuses_it_and_nowhere_else(session: SparkSession) -> None:
    spec = pipeline(", ".join(f"f{number} {kind}" for number, kind in enumerate(TYPES)))
    schema = value_schema(spec)
    assert schema is not None
    every = [(number, text) for number in range(len(TYPES)) for text in split(TEXTS)]
    cases = [(number, text) for number, text in every if (TYPES[number], text) not in CHANGED]
    values = [f'{{"f{number}": {text}}}'.encode() for number, text in cases]
    found = decoded(session, spec, values).select("_kafka.offset", PROBLEM).collect()
    problems = {row["offset"]: row[PROBLEM] for row in found}
    accused, silent = [], []
    for offset, (number, text) in enumerate(cases):
        told = explain(values[offset], schema)
        assert told is None or told.startswith(f"f{number}"), told
        if told is not None and problems[offset] is None:
            accused.append(f"{TYPES[number]} {text}: {told}")
        if told is None and problems[offset] is not None:
            silent.append(f"{TYPES[number]} {text}: {problems[offset]}")
    assert (accused, silent) == ([], [])


SCHEMA = "id STRING NOT NULL, amount DECIMAL(12,2), at TIMESTAMP, items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"
BAD = [
    (b'{"id":"a","amount":"abc"}', "amount: 'abc' is not a DECIMAL(12,2)"),
    (b'{"id":"a","items":[{"price":1},{"price":2},{"price":"x"}]}', "items[2].price: 'x' is not a DOUBLE"),
    (b'{"id":"a","at":1700000000000}', "at: 1700000000000 looks like epoch milliseconds; the schema says TIMESTAMP"),
    (b'{"amount":1}', "required but missing or null: id"),
    (b'{"id":"a","amount":"abc","amount":1}', "a value does not fit the type that the schema gives it"),
]


def errors(rows: list[dict[str, object]]) -> list[object]:
    return [row["error"] for row in sorted(rows, key=lambda row: row["_kafka"]["offset"])]  # type: ignore[index]


def test_the_quarantines_rows_name_the_field_in_both_lanes(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = pipeline(SCHEMA)
    bad = quarantine_columns(decoded(session, spec, [value for value, _ in BAD]))
    expected = [error for _, error in BAD]
    rows = bad.toArrow()
    assert errors(explained(rows, value_schema(spec)).to_pylist()) == expected
    assert explained(rows, value_schema(spec)).schema == rows.schema
    assert errors(explained_by_driver(bad, value_schema(spec)).toArrow().to_pylist()) == expected
    told = {"does_not_fit: amount": 1, "does_not_fit: items": 1, "does_not_fit: at": 1, "does_not_fit": 1}
    told["missing_field: id"] = 1
    assert reasons_of(explained(rows, value_schema(spec)), value_schema(spec)) == told
    output, observed = observed_reasons(explained_by_driver(bad, value_schema(spec)), value_schema(spec), "tag")
    output.coalesce(2).write.parquet(str(tmp_path / "rows"))
    assert observed() == told, "the executors count the same"
    output, observed = observed_reasons(bad, None, "bytes")
    output.write.parquet(str(tmp_path / "bytes"))
    assert observed() == {"does_not_fit": 4, "missing_field": 1}
    monkeypatch.setattr(explained_module, "MOST_RECORDS", 1)
    for bounded in (explained(rows, value_schema(spec)), explained_by_driver(bad, value_schema(spec)).toArrow()):
        some = errors(bounded.to_pylist())
        assert len(some) == len(BAD)
        assert sum(error in expected[:3] for error in some) == 1, "the others keep what Spark says of them"


MALFORMED = [
    (b'\xef\xbb\xbf{"id":"a"}', "byte order mark"),
    (b'\0\0\0\0\x07{"id":"a"}', "schema id 7"),
    (b'{"id":"a","amount":NaN}', "amount: NaN is not a DECIMAL(12,2)"),
    (b'{"id":"a\tb"}', "id: character 9: a raw control character (U+0009)"),
    (b'{"id":"a","items":' + b"[" * 1100 + b"]" * 1100 + b"}", "1101 levels deep"),
    (b'{"id":"a"} {"id":"b"}', "id: character 12: the JSON value has ended"),
    (b'{"id":"a","amount":1', "amount: character 21: the text ends within the JSON value"),
    (b'[{"id":"a"}]', "the value is an array"),
]


def test_what_is_no_json_object_is_told_with_its_place_in_both_lanes(session: SparkSession) -> None:
    spec = pipeline(SCHEMA)
    bad = quarantine_columns(decoded(session, spec, [value for value, _ in MALFORMED]))
    by_driver, by_executors = (
        explained(bad.toArrow(), value_schema(spec)),
        explained_by_driver(bad, value_schema(spec)).toArrow(),
    )
    assert errors(by_executors.to_pylist()) == errors(by_driver.to_pylist())
    assert len(by_driver) == len(MALFORMED)
    for found, (_, told) in zip(errors(by_driver.to_pylist()), MALFORMED, strict=True):
        assert told in str(found)
