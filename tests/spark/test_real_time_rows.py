"""One function, in batches and in real time: the same rows, row by row, and every bad record reaches the quarantine topic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from tests.support.page_blocks import blocks
from tests.support.topics.recipe import PAGE

from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import good_columns
from lakebound_spark.batch.message_bounds import MessageBound
from lakebound_spark.batch.topic_rows import with_json
from lakebound_spark.batch.transform import KAFKA_SCHEMA, Transform
from lakebound_spark.columns import explode
from lakebound_spark.real_time.refusals import real_time_refusal
from lakebound_spark.real_time.rows import real_time_rows
from lakebound_spark.real_time.spark_decoder import make_spark_decoder

pytestmark = pytest.mark.spark

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "events",
        "topics": ["events"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {
            "format": "json",
            "schema": "event_id STRING NOT NULL, device STRING, value DOUBLE, kind STRING, pad STRING, tags ARRAY<STRING>",
        },
        "null_values": "skip",
        "freshness": "real_time",
        "to_topics": [{"topic": "sent", "key": "event_id"}],
    }
)
RECORDS = 40
OURS = ["lakebound_source", "lakebound_reason"]
"""The headers of a message in the quarantine topic that are not the record's own."""


def record(number: int) -> bytes | None:
    """Return a record's value: every tenth is bad, every thirteenth a tombstone."""
    if number % 13 == 5:
        return None
    if number % 10 == 3:
        return (b"{half", b"[]", b"\xff", b'{"device": 1}')[number // 10]
    body = {"event_id": f"{number:012}", "device": f"device-{number % 4}", "value": number * 1.0, "kind": "a", "pad": "x"}
    return json.dumps({**body, "tags": ["p", "q"][: number % 3]}).encode()


@pytest.fixture(scope="module")
def records(session: SparkSession) -> DataFrame:
    rows = [(b"k", record(n), "events", 0, n, None, 0, headers_of(n)) for n in range(RECORDS)]
    return session.createDataFrame(rows, KAFKA_SCHEMA)


def headers_of(number: int) -> list[tuple[str, bytes | None]] | None:
    return [("n", b"%d" % number), ("n", None)] if number % 2 else None


def devices(frame: DataFrame) -> DataFrame:
    rows = frame.sparkSession.range(3)
    return F.broadcast(rows.selectExpr("concat('device-', id) AS device", "upper(concat('site-', id)) AS site"))


def joined(how: str) -> Transform:
    def transform(frame: DataFrame) -> DataFrame:
        return frame.join(devices(frame), "device", how).withColumn("loud", F.upper("site")).where("value > 6")

    return transform


def encode(frame: DataFrame) -> DataFrame:
    from transforms.encode import clean

    return clean(frame)


def not_known(condition: Callable[[DataFrame, DataFrame], Column], how: str) -> Transform:
    """Return a join whose condition bad records may meet: they have nulls, and a place in Kafka."""

    def transform(frame: DataFrame) -> DataFrame:
        known = frame.sparkSession.sql("SELECT * FROM VALUES ('device-1', 0), (NULL, 1), (NULL, 2) AS known(name, place)")
        return frame.join(F.broadcast(known), condition(frame, known), how).select(*frame.columns)

    return transform


TRANSFORMS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "none": lambda frame: frame,
    "encode": encode,
    "an inner join": joined("inner"),
    "a left join": joined("left"),
    "an anti join": not_known(lambda frame, known: frame["device"] == known["name"], "left_anti"),
    "an anti join by equal nulls": not_known(lambda frame, known: frame["device"].eqNullSafe(known["name"]), "left_anti"),
    "an anti join by the place": not_known(lambda frame, known: frame["_kafka.partition"] == known["place"], "left_anti"),
    "a left join by equal nulls": not_known(lambda frame, known: frame["device"].eqNullSafe(known["name"]), "left"),
    "an inner join by equal nulls": not_known(lambda frame, known: frame["device"].eqNullSafe(known["name"]), "inner"),
    "filters and an explode": lambda f: explode(f.where("value < 30"), "tags", "tag").where("tag <> 'q'"),
    "nothing is left": lambda f: f.where("value < 0"),
}


def test_what_a_transform_makes_is_looked_at_and_what_it_passes_on_is_not(session: SparkSession, records: DataFrame) -> None:
    spec = SPEC.model_copy(update={"transform": "transforms.encode.clean"})
    made = "CASE WHEN event_id LIKE '%5' THEN CAST(X'FF' AS STRING) ELSE device END AS odd"
    rows = real_time_rows(
        session, spec, records, make_spark_decoder(SPEC, {"events": "id"}), lambda f: f.selectExpr("*", made), ()
    )
    analysed = rows._jdf.queryExecution().analyzed().toString()
    assert sorted(set(re.findall(r"is_valid_utf8\((\w+)#", analysed))) == ["odd"]
    reasons = {header(message, "lakebound_reason") for message in rows.collect() if message.topic == "quarantine.events"}
    assert "transform\todd: text that is not UTF-8" in reasons


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_rows_are_those_of_a_batch_and_no_bad_record_is_lost(session: SparkSession, records: DataFrame, name: str) -> None:
    transform, decoder = TRANSFORMS[name], make_spark_decoder(SPEC, {"events": "id"})
    batch = with_json(transform)(good_columns(decoder.decode(records)))
    source = F.expr("concat_ws('/', _kafka.topic, _kafka.partition, _kafka.offset, _kafka.ordinal)")
    expected = sorted((row[0], row[1]) for row in batch.select(source, JSON_COLUMN).collect())

    messages = real_time_rows(session, SPEC, records, decoder, transform, ()).collect()

    assert sorted((header(m, "lakebound_source"), m.value.decode()) for m in messages if m.topic == "sent") == expected
    bad = [m for m in messages if m.topic == "quarantine.events"]
    assert sorted((header(m, "lakebound_source"), bytes(m.value)) for m in bad) == [
        (f"events/0/{n}/0", record(n)) for n in (13, 23, 3, 33)
    ]
    for message, number in zip(sorted(bad, key=lambda m: header(m, "lakebound_source")), (13, 23, 3, 33), strict=True):
        own = [(one["key"], one["value"]) for one in message.headers]
        assert own[:-2] == [("n", b"%d" % number), ("n", None)] and [name for name, _ in own[-2:]] == OURS, number
    assert {header(m, "lakebound_reason").split("\t")[0] for m in bad} >= {"not_utf8", "not_an_object", "missing_field"}
    reason = real_time_refusal(session, SPEC, transform)
    if "equal nulls" in name and "anti" not in name:
        assert "several rows with one value of name" in str(reason)
    else:
        assert reason is None


def test_a_row_that_is_too_large_for_its_topic_is_quarantined(session: SparkSession, records: DataFrame) -> None:
    decoder, bound = make_spark_decoder(SPEC, {}), MessageBound("topic:sent", "event_id", 512 + 20)
    messages = real_time_rows(session, SPEC, records, decoder, lambda frame: frame, (bound,)).collect()
    assert {m.topic for m in messages} == {"quarantine.events"}
    assert record(0) in {bytes(m.value) for m in messages}
    reasons = {header(m, "lakebound_reason") for m in messages if bytes(m.value) == record(0)}
    assert reasons == {f"does_not_fit\ttopic:sent: its message is larger than the topic takes (max.message.bytes {512 + 20})"}


def test_what_a_batch_would_quarantine_is_quarantined_for_the_same_reason(session: SparkSession, records: DataFrame) -> None:
    spec = SPEC.model_copy(update={"transform": "transforms.made_up"})
    bound = MessageBound("topic:sent", "device", 1_000_000, is_compacted=True)
    at = "timestamp_micros(IF(value = 0, 1700000000000000000, 1700000000000000)) AS at"
    pad = "IF(value = 1, CAST(X'ff' AS STRING), pad) AS pad"
    device = "IF(value = 2, NULL, device) AS device"

    def transform(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("event_id", "value", at, pad, device, "_kafka")

    messages = real_time_rows(session, spec, records, make_spark_decoder(spec, {}), transform, (bound,)).collect()

    number_of = {record(number): number for number in range(3)}
    reasons = {
        number_of[bytes(m.value)]: header(m, "lakebound_reason")
        for m in messages
        if m.topic == "quarantine.events" and bytes(m.value) in number_of
    }
    assert reasons == {
        0: "transform\tat: outside of the years 1 to 9999",
        1: "transform\tpad: text that is not UTF-8",
        2: "does_not_fit\ttopic:sent: its key device is null, and a compacted topic takes no message without a key",
    }
    skipped_or_bad = {n for n in range(RECORDS) if n % 13 == 5 or n % 10 == 3}
    assert sum(m.topic == "sent" for m in messages) == RECORDS - len(skipped_or_bad) - len(reasons)


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (lambda f: f.withColumn("pad", F.udf(lambda text: text, StringType())("pad")), "a function in Python"),
        (lambda f: f.join(devices(f), "device", "left_semi"), "joins by left semi"),
        (lambda f: f.select("*", F.expr("explode(map(1, 2)) AS (k, v)")), "explodes without numbering"),
        (
            lambda f: explode(explode(with_items(f), "items", "item"), "tags", "tag"),
            "make one array of both (flatten, transform)",
        ),
        (lambda f: f.join(devices(f).union(devices(f)), "device"), "which has several rows with one value of device"),
        (lambda f: f.join(f.sparkSession.range(9).selectExpr("cast(id AS STRING) AS kind").hint("merge"), "kind"), "broadcast"),
    ],
)
def test_what_cannot_run_in_real_time_is_refused(session: SparkSession, transform: Transform, reason: str) -> None:
    assert reason in str(real_time_refusal(session, SPEC, transform))


def with_items(frame: DataFrame) -> DataFrame:
    return frame.withColumn("items", F.expr("array('x', 'y')"))


def test_one_explode_of_an_array_of_both_gives_the_rows_of_two_explodes(session: SparkSession, records: DataFrame) -> None:
    (code,) = [one.text for one in blocks(PAGE) if one.language == "python" and "def pairs" in one.text]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)

    def once(frame: DataFrame) -> DataFrame:
        made: DataFrame = names["pairs"](with_items(frame))
        return made

    assert real_time_refusal(session, SPEC, once) is None
    good = good_columns(make_spark_decoder(SPEC, {}).decode(records))
    twice = with_items(good).selectExpr("*", "explode(items) AS item").selectExpr("*", "explode(tags) AS tag")
    expected = sorted(tuple(row) for row in twice.select("event_id", "item", "tag").collect())
    found = once(good).select("event_id", "item", "tag", "_kafka.offset", "_kafka.ordinal").collect()
    assert len(expected) > RECORDS and sorted(tuple(row)[:3] for row in found) == expected
    assert len({(row.offset, row.ordinal) for row in found}) == len(found)


def test_several_topics_get_a_message_each(session: SparkSession, records: DataFrame) -> None:
    to_topics = [{"topic": "sent", "key": "event_id"}, {"topic": "other"}]
    spec = PipelineSpec.model_validate({**SPEC.model_dump(by_alias=True), "to_topics": to_topics})
    rows = real_time_rows(session, spec, records, make_spark_decoder(spec, {}), lambda frame: frame.where("value < 3"), ())
    counted = {(m.topic, m.key) for m in rows.collect() if m.topic != "quarantine.events"}
    ids = [f"{n:012}".encode() for n in range(3)]
    assert counted == {("sent", one) for one in ids} | {("other", None)}


def header(message: Any, name: str) -> str:
    return bytes(dict(message.headers)[name]).decode()
