"""Every value is decoded or gets a reason; nothing throws, nothing is half read."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakebound.formats.reasons import DECODER_REASONS
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import PROBLEM, good_columns, make_decoder
from lakebound_spark.batch.quarantine import collected_rows, quarantine_columns, rows_of
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

SCHEMA = "order_id STRING NOT NULL, n INT, placed_at TIMESTAMP, d DOUBLE, items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"


def pipeline(**changes: Any) -> PipelineSpec:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "nowhere:9092"},
        "value": {"format": "json", "schema": SCHEMA},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "orders"}],
    }
    return PipelineSpec.model_validate(body | changes)


def decoded(session: SparkSession, spec: PipelineSpec, *values: bytes | None, unhoused: Collection[str] = ()) -> list[Row]:
    stamp = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [(b"key", value, "orders", 0, offset, stamp, 0, None) for offset, value in enumerate(values)]
    frame = make_decoder(spec, {"orders": "topic-id"}, unhoused).decode(session.createDataFrame(rows, KAFKA_SCHEMA))
    # Python has no date for some of what is bad.
    frame = frame.withColumn("_parsed", F.col("_parsed").dropFields("placed_at"))
    return sorted(frame.collect(), key=lambda row: row["_kafka"]["offset"])


OF_OTHER_FORMATS = {
    *("malformed_avro", "malformed_protobuf", "no_message_indexes", "other_message"),
    *("no_schema_id", "unknown_schema", "schema_does_not_fit"),
}
BAD: list[tuple[bytes | None, str]] = [
    (None, "null_value"),
    (b"", "empty_value"),
    (b"   ", "not_an_object"),
    (b"5", "not_an_object"),
    (b"null", "not_an_object"),
    (b'[{"order_id":"a"},{"order_id":"b"}]', "not_an_object"),
    (b'{"order_id":"a",', "malformed_json"),
    (b'{"order_id":"a"} trailing', "malformed_json"),
    (b'{"order_id":"a"}{"order_id":"b"}', "malformed_json"),
    (b'{"order_id":"a"},{"order_id":"b"}', "malformed_json"),
    (b'{"order_id":"a"}]', "malformed_json"),
    (b'{"order_id":"a"} \n] and more', "malformed_json"),
    (b'{"order_id":"a"}],[{"order_id":"b"}', "malformed_json"),
    (b'{"order_id":"a"},{"order_id":"b"}]', "malformed_json"),
    (b'{"order_id":"a","items":[{"sku":"x"}]}]', "malformed_json"),
    (b'{"order_id":"a","items":' + b"[" * 2000 + b"]" * 2000 + b"}", "malformed_json"),
    (b'{"order_id":"a\xff\xfe"}', "not_utf8"),
    (b'{"n":1}', "missing_field"),
    (b'{"order_id":null}', "missing_field"),
    (b'{"order_id":"a","n":"one"}', "does_not_fit"),
    (b'{"order_id":"a","n":1.5}', "does_not_fit"),
    (b'{"order_id":"a","n":true}', "does_not_fit"),
    (b'{"order_id":"a","n":99999999999}', "does_not_fit"),
    (b'{"order_id":"a","d":1e400}', "does_not_fit"),
    (b'{"order_id":"a","items":[{"sku":"x","price":-1e400}]}', "does_not_fit"),
    (b'{"order_id":"a","items":{}}', "does_not_fit"),
    (b'{"order_id":"a","items":[{"sku":"x","price":"dear"}]}', "does_not_fit"),
    (b'{"order_id":"a","placed_at":"yesterday"}', "does_not_fit"),
    (b'{"order_id":"a","placed_at":1700000000000}', "does_not_fit"),
    (b'{"order_id":"a","placed_at":1700000000000000}', "does_not_fit"),
    (b'{"order_id":"a","placed_at" :\n -1700000000000000000}', "does_not_fit"),
    (b'{"order_id":"a","\\u0070laced_at":1700000000000000}', "does_not_fit"),
    (b"{'order_id':'a','placed_at':1700000000000000}", "does_not_fit"),
    (b'{"order_id":"a","placed_at":"12345"}', "does_not_fit"),
    (b'{"order_id":"a","placed_at":"0000-12-31T23:59:59Z"}', "does_not_fit"),
]
GOOD: list[tuple[bytes, str]] = [
    (b'{"order_id":"a"}', "a"),
    (b'{"order_id":"a","order_id":"b"}', "b"),
    (b'{"order_id":7}', "7"),
    (b'{"order_id":"a","extra":{"deep":[1,2]}}', "a"),
    (b' {"order_id":"a","d":1.7976931348623157e308} ', "a"),
    (b'{"order_id":"1700000000000000","n":5,"placed_at":1700000000,"extra":1700000000000000}', "1700000000000000"),
    (b'{"order_id":"a","placed_at":"9999-12-31T23:59:59.999999Z"}', "a"),
    (b'{"order_id":"a","placed_at":"0001-01-01T00:00:00Z"}', "a"),
    (b'{"order_id":"' + b"x" * (1 << 20) + b'"}', "x" * (1 << 20)),
]


@pytest.fixture(scope="module")
def rows(session: SparkSession) -> list[Row]:
    """All values of BAD and GOOD, decoded in one job."""
    return decoded(session, pipeline(), *(value for value, _ in [*BAD, *GOOD]))


@pytest.mark.parametrize("index", range(len(BAD)), ids=[f"{reason}-{index}" for index, (_, reason) in enumerate(BAD)])
def test_a_value_that_cannot_be_landed_gets_a_reason(rows: list[Row], index: int) -> None:
    reason, _, detail = rows[index][PROBLEM].partition("\t")
    assert reason == BAD[index][1]
    assert detail


@pytest.mark.parametrize("index", range(len(GOOD)))
def test_a_value_that_fits_is_landed(rows: list[Row], index: int) -> None:
    row = rows[len(BAD) + index]
    assert row[PROBLEM] is None
    assert row["_parsed"]["order_id"] == GOOD[index][1]


def test_the_reasons_that_a_release_tries_are_those_of_the_decoder(rows: list[Row]) -> None:
    given = {row[PROBLEM].partition("\t")[0] for row in rows if row[PROBLEM] is not None}
    assert given | {"unknown_field", "transform", "unreadable_key"} == set(DECODER_REASONS) - OF_OTHER_FORMATS


def test_every_row_says_where_it_came_from(session: SparkSession) -> None:
    [row] = decoded(session, pipeline(), b'{"order_id":"a"}')
    kafka = row["_kafka"]
    assert (kafka["topic"], kafka["topic_id"], kafka["partition"], kafka["offset"], kafka["ordinal"]) == (
        "orders",
        "topic-id",
        0,
        0,
        0,
    )


def test_unknown_fields_go_to_quarantine_when_the_spec_says_so(session: SparkSession) -> None:
    spec = pipeline(value={"format": "json", "schema": SCHEMA, "unknown_fields": "quarantine"})
    good, bad = decoded(session, spec, b'{"order_id":"a"}', b'{"order_id":"a","zzz":1,"yyy":2}')
    assert good[PROBLEM] is None
    assert bad[PROBLEM] == "unknown_field\tnot in the schema: zzz, yyy"


def test_a_field_that_a_table_has_no_column_for_goes_to_quarantine(session: SparkSession) -> None:
    values = (b'{"order_id":"a","n":1}', b'{"order_id":"a","n":1,"d":2.5,"extra":1}', b'{"order_id":"a","d":"x"}')
    good, bad, worse = decoded(session, pipeline(), *values, unhoused=["d", "placed_at"])
    assert good[PROBLEM] is None
    assert bad[PROBLEM] == "unknown_field\ta table has no column for it: d"
    assert worse[PROBLEM].startswith("does_not_fit\t")


def test_tombstones_are_filtered_when_the_spec_says_so(session: SparkSession) -> None:
    spec = pipeline(null_values="skip")
    records = session.createDataFrame(
        [(None, None, "orders", 0, 0, datetime.datetime.now(datetime.UTC), 0, None)], KAFKA_SCHEMA
    )
    frame = make_decoder(spec, {"orders": "id"}).decode(records)
    assert good_columns(frame).count() == 0
    assert quarantine_columns(frame).count() == 0


def test_bytes_are_landed_as_they_are(session: SparkSession) -> None:
    good, tombstone = decoded(session, pipeline(value={"format": "bytes"}), b"\xff\x00", None)
    assert (bytes(good["_parsed"]["value"]), bytes(good["_parsed"]["key"])) == (b"\xff\x00", b"key")
    assert tombstone[PROBLEM].startswith("null_value\t")


def test_bad_records_collected_beside_the_batch_are_those_that_a_job_of_their_own_gives(session: SparkSession) -> None:
    spec = pipeline(value={"format": "json", "schema": SCHEMA, "unknown_fields": "quarantine"})
    values = [*(value for value, _ in BAD), b'{"order_id":"good"}', b'{"order_id":"a","x\\ty":1,"\xc3\xa4":2}']
    stamp = datetime.datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=datetime.UTC)
    rows = [
        (None if offset % 2 else b"\xff\x00", value, "orders", 3, offset, stamp, 0, None) for offset, value in enumerate(values)
    ]
    frame = make_decoder(spec, {"orders": "topic-id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))
    (text,) = frame.select(collected_rows()).first() or ()
    collected = rows_of(text).to_pylist()
    expected = quarantine_columns(frame).toArrow().to_pylist()
    assert len(collected) == len(BAD) + 1

    def by_offset(row: dict[str, Any]) -> int:
        return int(row["_kafka"]["offset"])

    assert sorted(collected, key=by_offset) == sorted(expected, key=by_offset)
