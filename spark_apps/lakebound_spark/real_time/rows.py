"""The plan of a query in real time: from Kafka's records to messages, each with the topic that it goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from lakebound.landing.to_topics.messages import JSON_COLUMN, SOURCE_HEADER
from lakebound.ledger.entry import Offsets, intervals_of
from lakebound.spec.ddl import quoted
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.to_topics import ToTopicSpec
from lakebound_spark.batch.decode import HEADERS, KEY, PROBLEM, VALUE, is_skipped
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.message_bounds import MessageBound, topic_bounds
from lakebound_spark.batch.spark_objects import id_of, items_of
from lakebound_spark.batch.topic_rows import with_json
from lakebound_spark.batch.transform import Transform
from lakebound_spark.column_names import column_named
from lakebound_spark.real_time.bypass import PROBLEM_FIELD, transform_with_bypass
from lakebound_spark.real_time.spark_decoder import SparkDecoder

READ, SENT = "lakebound_read", "lakebound_sent"
"""Names under which Spark counts what an epoch read, and what it sent."""
Held = Mapping[str, Offsets]
"""By the target's id: what its ledger has of the offsets from the start on. Only of targets that have any."""
_HEADERS = "array<struct<key: string, value: binary>>"
REASON_HEADER = "lakebound_reason"
"""Of a bad record: why it is bad; the detail stands after a tab."""


def real_time_rows(
    session: SparkSession,
    spec: PipelineSpec,
    records: DataFrame,
    decoder: SparkDecoder,
    transform: Transform,
    bounds: Sequence[MessageBound],
    held: Held | None = None,
) -> DataFrame:
    """Return messages as Spark's Kafka sink takes them: topic, key, value and headers.

    Args:
        session: Spark's.
        spec: The pipeline.
        records: Kafka's columns.
        decoder: Of the pipeline.
        transform: Of the pipeline, without the JSON.
        bounds: How large messages may be.
        held: What some of the topics have already of what is read: they do not get it again.

    Raises:
        BypassError: The transform does something that a bad record would not survive.
    """
    held = held or {}
    decoded = decoder.decode(records).observe(READ, *_counts_read(held)).where(~is_skipped())
    source = _input(decoded)
    rows = transform_with_bypass(session, with_json(transform), source)
    has_transform, of_topics = spec.transform is not None, tuple(topic_bounds(bounds))
    check = LandableCheck(has_transform, bounds=of_topics, passed_on=_passed_on(source, rows))
    problem = F.coalesce(F.col(f"{KAFKA_COLUMN}.{PROBLEM_FIELD}"), check.problem(rows))
    judged = rows.withColumn(PROBLEM, problem)
    sent = judged.observe(SENT, *_counts_sent(held))
    return sent.select(_messages(spec, judged, held).alias("message")).select("message.*")


def _passed_on(source: DataFrame, rows: DataFrame) -> frozenset[str]:
    """Return the columns of rows that are columns of their source."""
    known = {id_of(column) for column in _output(source)}
    return frozenset(str(column.name()) for column in _output(rows) if id_of(column) in known)


def _output(frame: DataFrame) -> list[Any]:
    return items_of(frame._jdf.queryExecution().analyzed().output())


def _input(decoded: DataFrame) -> DataFrame:
    """Return what the transform gets: of a bad record nulls, and in ``_kafka`` its problem and its bytes."""
    is_good = F.col(PROBLEM).isNull()
    fields = decoded.select("_parsed.*").columns
    columns = [F.when(is_good, F.col(f"_parsed.{quoted(name)}")).alias(name) for name in fields]
    kafka = F.col(KAFKA_COLUMN)
    carried = (
        kafka.withField(PROBLEM_FIELD, F.col(PROBLEM))
        .withField("key", F.col(KEY))
        .withField("value", F.col(VALUE))
        .withField("headers", F.col(HEADERS))
        .alias(KAFKA_COLUMN)
    )
    return decoded.select(*columns, carried)


def _counts_read(held: Held) -> tuple[Column, ...]:
    milliseconds = F.unix_millis(F.col(f"{KAFKA_COLUMN}.timestamp"))
    return (
        F.count(F.lit(1)).alias("read"),
        F.min(milliseconds).alias("oldest_ms"),
        F.max(milliseconds).alias("newest_ms"),
        *(F.count_if(~_is_among(offsets)).alias(of_target("read", target)) for target, offsets in held.items()),
    )


def _counts_sent(held: Held) -> tuple[Column, ...]:
    is_bad = F.col(PROBLEM).isNotNull()
    counts = [F.count_if(is_bad).alias("quarantined"), F.count_if(~is_bad).alias("rows")]
    for target, offsets in held.items():
        is_new = ~_is_among(offsets)
        counts += [
            F.count_if(is_bad & is_new).alias(of_target("quarantined", target)),
            F.count_if(~is_bad & is_new).alias(of_target("rows", target)),
        ]
    return tuple(counts)


def of_target(count: str, target: str) -> str:
    """Return the name of a count of those records alone that a target does not have already."""
    return f"{count} {target}"


def _is_among(offsets: Offsets) -> Column:
    """Return the condition that a record's offset is one of these."""
    kafka = F.col(KAFKA_COLUMN)
    found = [
        (kafka.getField("topic") == topic)
        & (kafka.getField("partition") == partition)
        & (kafka.getField("offset") >= first)
        & (kafka.getField("offset") < end)
        for topic, partition, intervals in intervals_of(offsets)
        for first, end in intervals
    ]
    return reduce(or_, found)


def _messages(spec: PipelineSpec, rows: DataFrame, held: Held) -> Column:
    places = (F.col(f"{KAFKA_COLUMN}.{name}").cast("string") for name in ("topic", "partition", "offset", "ordinal"))
    source = F.concat_ws("/", *places).cast("binary")
    is_bad = F.col(PROBLEM).isNotNull()
    good = [_good(one, rows, source) for one in spec.to_topics]
    bad = _message(
        spec.quarantine_topic,
        F.col(f"{KAFKA_COLUMN}.key"),
        F.col(f"{KAFKA_COLUMN}.value"),
        {SOURCE_HEADER: source, REASON_HEADER: F.col(PROBLEM).cast("binary")},
        F.coalesce(F.col(f"{KAFKA_COLUMN}.headers").cast(_HEADERS), F.array().cast(_HEADERS)),
    )
    if len(good) == 1:
        return F.when(is_bad, bad).otherwise(good[0])
    if not held:
        return F.explode(F.when(is_bad, F.array(bad)).otherwise(F.array(*good)))
    lacking = [
        F.when(~_is_among(held[one.id]), message) if one.id in held else message
        for one, message in zip(spec.to_topics, good, strict=True)
    ]
    return F.explode(F.when(is_bad, F.array(bad)).otherwise(F.array_compact(F.array(*lacking))))


def _good(one: ToTopicSpec, rows: DataFrame, source: Column) -> Column:
    key: Column = F.lit(None).cast("binary")
    if one.key is not None:
        column = column_named(one.key)
        is_bytes = isinstance(rows.schema[one.key].dataType, BinaryType)
        key = column if is_bytes else column.cast("string").cast("binary")
    return _message(one.topic, key, F.col(JSON_COLUMN).cast("binary"), {SOURCE_HEADER: source})


def _message(topic: str, key: Column, value: Column, headers: Mapping[str, Column], before: Column | None = None) -> Column:
    """Return a message; of headers that it has already, ours stand behind them."""
    listed = F.array(*(F.struct(F.lit(name).alias("key"), value.alias("value")) for name, value in headers.items()))
    every = listed if before is None else F.concat(before, listed)
    return F.struct(F.lit(topic).alias("topic"), key.alias("key"), value.alias("value"), every.alias("headers"))
