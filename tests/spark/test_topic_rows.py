"""What a row becomes on its way to a topic: Spark's JSON of all columns but ``_kafka``, and never more than the topic takes."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound_spark.batch.landable import make_check
from lakebound_spark.batch.message_bounds import MessageBound, topic_bounds
from lakebound_spark.batch.topic_rows import with_json, without_json

pytestmark = pytest.mark.spark

VALUES = (
    "CAST(1 AS BIGINT) AS `a b`",
    "CAST(NULL AS STRING) AS nothing",
    "DOUBLE('NaN') AS nan",
    "TIMESTAMP '2026-02-03 04:05:06.000007Z' AS at",
    "TIMESTAMP_NTZ '2026-02-03 04:05:06' AS local",
    "DATE '2026-02-03' AS day",
    "CAST('1.50' AS DECIMAL(9, 2)) AS price",
    "X'ff00' AS bytes",
    "named_struct('x', 1, 'y', CAST(NULL AS INT)) AS inside",
    "map('k', 2) AS pairs",
    "array(1, NULL) AS list",
    "'é\"' AS text",
)
EXPECTED = (
    '{"a b":1,"nan":"NaN","at":"2026-02-03T04:05:06.000007Z","local":"2026-02-03T04:05:06.000000",'
    '"day":"2026-02-03","price":1.50,"bytes":"/wA=","inside":{"x":1},'
    '"pairs":{"k":2},"list":[1,null],"text":"é\\""}'
)
KAFKA = "named_struct('topic', 't', 'topic_id', 'i', 'partition', 0, 'offset', id, 'timestamp', NULL, 'ordinal', 0) AS _kafka"


def test_the_json_of_a_row_does_not_depend_on_the_session(session: SparkSession) -> None:
    rows = with_json(lambda frame: frame)(session.range(1).selectExpr(*VALUES, KAFKA))
    for settings in ({}, {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.jsonGenerator.ignoreNullFields": "false"}):
        kept = {name: str(session.conf.get(name)) for name in settings}
        try:
            for name, value in settings.items():
                session.conf.set(name, value)
            (row,) = rows.select(JSON_COLUMN).collect()
        finally:
            for name, value in kept.items():
                session.conf.set(name, value)
        assert json.loads(row[0]) == json.loads(EXPECTED)


@pytest.mark.parametrize("key", [None, "name", "bytes", "number"])
def test_a_message_is_too_large_for_both_or_for_none(session: SparkSession, key: str | None) -> None:
    columns = ["repeat('é', id) AS name", "CAST(repeat('x', id) AS BINARY) AS bytes", "id AS number", KAFKA]
    output = with_json(lambda frame: frame)(session.range(100).selectExpr(*columns))
    bound = MessageBound("topic:out", key, 512 + 300)
    check = make_check(without_json(output.schema), [], has_transform=False, bounds=[bound])
    too_large = {row["offset"] for row in places(check.places(output))}
    assert 0 < len(too_large) < 100
    for offset in range(100):
        one = output.where(F.col("number") == offset)
        if offset % 10 == 0 or offset in (min(too_large), min(too_large) - 1):
            assert check.holds(one.toArrow()) == (offset not in too_large)


def test_a_row_without_a_key_is_found_where_the_topic_is_compacted(session: SparkSession) -> None:
    columns = ["IF(id = 3, NULL, concat('k', id)) AS name", "id AS number", KAFKA]
    output = with_json(lambda frame: frame)(session.range(5).selectExpr(*columns))
    bound = MessageBound("topic:out", "name", 1_000_000, is_compacted=True)
    check = make_check(without_json(output.schema), [], has_transform=False, bounds=topic_bounds([bound]))
    [found] = check.places(output).to_pylist()
    assert found["offset"] == 3
    assert found["problem"].startswith("does_not_fit\ttopic:out: its key name is null, and a compacted topic")
    assert [check.holds(output.where(F.col("number") == number).toArrow()) for number in range(5)] == [
        number != 3 for number in range(5)
    ]
    plain = topic_bounds([MessageBound("topic:out", "name", 1_000_000)])
    assert make_check(without_json(output.schema), [], has_transform=False, bounds=plain).holds(output.toArrow())


def places(found: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_pylist()
    assert all("topic:out: its message is larger than the topic takes" in row["problem"] for row in rows)
    return rows
