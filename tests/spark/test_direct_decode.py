"""What the driver decodes by itself is what Spark makes of the same bytes; what it is not sure of, it refuses."""

from __future__ import annotations

import datetime
from collections import Counter

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.support.tables.json_texts import DOUBTFUL, LATER, PLAIN, mutations, spec_of, strange_values, texts

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.decode import PROBLEM, make_decoder, value_schema
from lakebound_spark.batch.direct_decode import ValueDecoder, make_value_decoder, rows_of_records
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark


def by_spark(session: SparkSession, spec: PipelineSpec, values: list[bytes]) -> list[str | None]:
    """What Spark lands of each value, as text; None where it says that it is bad."""
    rows = [(b"key", value, "orders", 0, offset, None, 0) for offset, value in enumerate(values)]
    frame = make_decoder(spec, {"orders": "id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))
    found = frame.select("_kafka.offset", PROBLEM, "_parsed.*").toArrow().sort_by("offset")
    good = found.filter(pc.is_null(found[PROBLEM]))  # of the others a time may be of a year that Python has not
    rows = dict(zip(good["offset"].to_pylist(), texts(good.drop_columns(["offset", PROBLEM])), strict=True))
    return [rows.get(offset) for offset in range(len(values))]


def directly(spec: PipelineSpec, decode: ValueDecoder, value: bytes) -> str | None:
    """What the driver lands of a value, as text; None where it leaves it to Spark."""
    records = RecordColumns(["orders"], [0], [0], [0], [b"key"], [value])
    try:
        rows = rows_of_records(records, decode(records), {"orders": "id"})
    except DirectReadRefusedError:
        return None
    return texts(rows.drop_columns("_kafka"))[0]


def decoder_of(spec: PipelineSpec) -> ValueDecoder:
    decode = make_value_decoder(spec, value_schema(spec))
    assert decode is not None
    return decode


def compared(
    session: SparkSession, spec: PipelineSpec, decode: ValueDecoder, values: list[bytes]
) -> tuple[list[bytes], list[tuple[bytes, str, str | None]]]:
    """Return which of the values the driver decodes, and those of which Spark makes something else."""
    taken = {value: found for value in values if (found := directly(spec, decode, value)) is not None}
    expected = by_spark(session, spec, [*taken])
    pairs = zip(taken.items(), expected, strict=True)
    return [*taken], [(value, found, want) for (value, found), want in pairs if found != want]


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
    decoded, wrong = compared(session, spec, decode, mutations(seed=len(unknown_fields), count=25_000))
    assert wrong == []
    assert len(decoded) > 500


def test_no_strange_value_is_decoded_otherwise_than_by_spark(session: SparkSession) -> None:
    spec = spec_of()
    decode = decoder_of(spec)
    decoded, wrong = compared(session, spec, decode, strange_values(seed=5))
    assert wrong == []
    taken = Counter(name for name in LATER for value in decoded if value.startswith(b'{"id":"a","%s":' % name.encode()))
    assert all(taken[name] for name in LATER)
    assert [value for value in decoded if value.count(b'"amount":') == 2 and b"1e9" in value] == []


def test_a_record_is_taken_whatever_others_are_decoded_with_it() -> None:
    spec = spec_of()
    decode = decoder_of(spec)
    values = [value for value in (*PLAIN, *strange_values(seed=6)) if directly(spec, decode, value) is not None]
    each = [directly(spec, decode, value) for value in values]
    count = len(values)
    records = RecordColumns(["orders"] * count, [0] * count, [0] * count, [0] * count, [b"key"] * count, values)
    assert texts(rows_of_records(records, decode(records), {"orders": "id"}).drop_columns("_kafka")) == each


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
