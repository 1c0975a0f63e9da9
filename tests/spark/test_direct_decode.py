"""What the driver decodes by itself is what Spark makes of the same bytes; what it is not sure of, it refuses."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.streams.stand_ins import ORDERS

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.decode import PROBLEM, make_decoder, value_schema
from lakebound_spark.batch.direct_decode import ValueDecoder, make_value_decoder, rows_of_records
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

SCHEMA = (
    "id STRING NOT NULL, n INT, big BIGINT, d DOUBLE, ok BOOLEAN, small TINYINT, at TIMESTAMP, "
    "items ARRAY<STRUCT<sku: STRING, price: DOUBLE, tags: ARRAY<STRING>>>, place STRUCT<x: DOUBLE, `odd name`: STRING>"
)
PLAIN: list[bytes] = [
    b'{"id":"a"}',
    b' {"id" : "a" }\n',
    b'{"id":"a","id":"b"}',
    b'{"id":"a","n":1,"n":null}',
    b'{"id":"a","n":-2147483648,"big":9223372036854775807,"small":-128}',
    b'{"id":"a","d":-0}',
    b'{"id":"a","d":-0.0}',
    b'{"id":"a","d":7}',
    b'{"id":"a","d":0.1}',
    b'{"id":"a","d":1.7976931348623157e308}',
    b'{"id":"a","d":5e-324}',
    b'{"id":"a","d":12345678901234567890123}',
    b'{"id":"a","d":9007199254740993}',
    b'{"id":"a","d":123456789.123456789123456789}',
    b'{"id":"a","ok":true}',
    b'{"id":"\\u00e9\\u20ac\\ud83d\\ude00 \\" \\\\ \\/ \\b"}',
    '{"id":"é€😀"}'.encode(),
    b'{"id":"a\\u0000b"}',
    b'{"id":""}',
    b'{"id":"a","at":"2026-02-28T23:59:59.123456Z"}',
    b'{"id":"a","at":"2026-02-28 23:59:59"}',
    b'{"id":"a","at":"1999-12-31T00:00:00.5"}',
    b'{"id":"a","at":null}',
    b'{"id":"a","items":[{"sku":"x","price":1,"tags":["p",null]},{"price":null},null],"place":{"x":1.5,"odd name":"y"}}',
    b'{"id":"a","items":[],"place":{}}',
    b'{"id":"a","place":{"unknown":[1,{"x":2}],"x":3}}',
    b'{"id":"a","unknown":{"deep":[1,2.5e3,"\\u0041",null,true]}}',
]
DOUBTFUL: list[bytes] = [
    b"",
    b"5",
    b"null",
    b"[]",
    b'[{"id":"a"}]',
    b'{"id":"a",}',
    b'{"id":"a"}{"id":"b"}',
    b'{"id":"a"} x',
    b"{'id':'a'}",
    b'{"id":7}',
    b'{"id":null}',
    b"{}",
    b'{"id":"a","n":1.0}',
    b'{"id":"a","n":1e2}',
    b'{"id":"a","n":2147483648}',
    b'{"id":"a","n":"1"}',
    b'{"id":"a","d":1e400}',
    b'{"id":"a","d":"NaN"}',
    b'{"id":"a","d":NaN}',
    b'{"id":"a","ok":1}',
    b'{"id":"\\ud800"}',
    b'{"id":"\xff"}',
    b'{"id":"a","unknown":"\xff"}',
    b'{"id":"a","\xff":1}',
    b'{"id":"a","unknown":tru}',
    b'{"id":"a","unknown":01}',
    b'{"id":"a","unknown":"\x01"}',
    b'{"id":"a","d":' + b"1" * 1200 + b"}",
    b'{"id":"a","unknown":' + b"1" * 1200 + b"}",
    b'{"id":"a","unknown":' + b"[" * 1200 + b"]" * 1200 + b"}",
    b'{"id":"a","at":"2026-02-30T00:00:00Z"}',
    b'{"id":"a","at":"2026-02-28T24:00:00Z"}',
    b'{"id":"a","at":"2026-02-28T23:59:60Z"}',
    b'{"id":"a","at":"2026-02-28T10:00:00+01:00"}',
    b'{"id":"a","at":"2026-02-28"}',
    b'{"id":"a","at":1767225600}',
    b'{"id":"a","items":{}}',
    b'{"id":"a","place":[]}',
]


def mutations(seed: int, count: int) -> list[bytes]:
    """Plain values with a few bytes changed, cut out or put in: mostly broken, some not, some in ways nobody thinks of."""
    dice = random.Random(seed)
    pieces = [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-",
        b".",
        b"e",
        b"1",
        b"\\",
        b" ",
        b"\xc3",
        b"null",
        b"true",
        b"\n",
    ]
    made = []
    for _ in range(count):
        value = bytearray(dice.choice(PLAIN))
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(value) + 1)
            value[at : at + dice.randint(0, 2)] = dice.choice(pieces)
        made.append(bytes(value))
    return made


def spec_of(**value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": SCHEMA, **value}})


def by_spark(session: SparkSession, spec: PipelineSpec, values: list[bytes]) -> list[str | None]:
    """What Spark lands of each value, as text; None where it says that it is bad."""
    rows = [(b"key", value, "orders", 0, offset, None, 0) for offset, value in enumerate(values)]
    frame = make_decoder(spec, {"orders": "id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))
    found = frame.select("_kafka.offset", PROBLEM, "_parsed.*").toArrow().sort_by("offset").drop_columns("offset")
    problems = found[PROBLEM].to_pylist()
    return [None if problem else text for problem, text in zip(problems, texts(found.drop_columns(PROBLEM)), strict=True)]


def directly(spec: PipelineSpec, decode: ValueDecoder, value: bytes) -> str | None:
    """What the driver lands of a value, as text; None where it leaves it to Spark."""
    records = RecordColumns(["orders"], [0], [0], [0], [b"key"], [value])
    try:
        rows = rows_of_records(records, decode(records), {"orders": "id"})
    except DirectReadRefusedError:
        return None
    return texts(rows.drop_columns("_kafka"))[0]


def texts(rows: pa.Table) -> list[str]:
    """Each row as text. Timestamps as numbers: Spark also takes those of years that Python has not."""
    return [repr(row) for row in rows.set_column(6, "at", rows["at"].cast(pa.int64())).to_pylist()]


def decoder_of(spec: PipelineSpec) -> ValueDecoder:
    decode = make_value_decoder(spec, value_schema(spec))
    assert decode is not None
    return decode


def test_plain_values_are_decoded_as_spark_decodes_them(session: SparkSession) -> None:
    spec = spec_of()
    decode = decoder_of(spec)
    assert [directly(spec, decode, value) for value in PLAIN] == by_spark(session, spec, PLAIN)


def test_what_is_doubtful_is_left_to_spark(session: SparkSession) -> None:
    spec = spec_of()
    decode = decoder_of(spec)
    assert [value for value in DOUBTFUL if directly(spec, decode, value) is not None] == []


@pytest.mark.parametrize("unknown_fields", ["ignore", "quarantine"])
def test_no_mutation_is_decoded_otherwise_than_by_spark(session: SparkSession, unknown_fields: str) -> None:
    spec = spec_of(unknown_fields=unknown_fields)
    decode = decoder_of(spec)
    values = mutations(seed=len(unknown_fields), count=20_000)
    expected = by_spark(session, spec, values)
    taken = [(value, directly(spec, decode, value), want) for value, want in zip(values, expected, strict=True)]
    decoded = [(value, got, want) for value, got, want in taken if got is not None]
    assert [one for one in decoded if one[1] != one[2]] == []
    assert len(decoded) > 500


def test_columns_have_the_types_that_spark_gives_them(session: SparkSession) -> None:
    spec = spec_of()
    records = RecordColumns(["orders"], [3], [7], [1_767_225_600_123], [None], [b'{"id":"a"}'])
    rows = rows_of_records(records, decoder_of(spec)(records), {"orders": "topic-id"})
    none = make_decoder(spec, {"orders": "topic-id"}).decode(session.createDataFrame([], KAFKA_SCHEMA))
    expected = none.select("_parsed.*").toArrow().schema
    assert [(field.name, field.type) for field in rows.schema] == [
        *((field.name, field.type) for field in expected),
        (KAFKA_COLUMN, KAFKA_TYPE),
    ]
    [row] = rows.to_pylist()
    assert row[KAFKA_COLUMN] == {
        "topic": "orders",
        "topic_id": "topic-id",
        "partition": 3,
        "offset": 7,
        "timestamp": datetime.datetime(2026, 1, 1, 0, 0, 0, 123_000, datetime.UTC),
        "ordinal": 0,
    }
