"""Rows as messages: key, JSON, and the position of the source record in a header. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.errors import TableMismatchError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_topics import ToTopicSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound.tables.type_names import type_name

JSON_COLUMN = "_lakebound_json"
"""Of the rows on their way to a topic: the row as JSON, which Spark has made."""
SOURCE_HEADER = "lakebound_source"
"""Its value is ``topic/partition/offset/ordinal`` of the source record. ``/`` is in no topic's name."""
_POSITION = ("topic", "partition", "offset", "ordinal")


class RowMessage(NamedTuple):
    """A row as it is sent."""

    key: bytes | None
    value: bytes
    source: bytes


def staged_schema(spec: ToTopicSpec, output: pa.Schema) -> pa.Schema:
    """Return the columns of the files in which rows wait for the topic's transaction.

    Args:
        spec: The target topic.
        output: Columns of the pipeline's rows.

    Raises:
        TableMismatchError: There is no such key column, or its type cannot be a key.
    """
    fields = [pa.field(KAFKA_COLUMN, KAFKA_TYPE), pa.field(JSON_COLUMN, pa.string())]
    if spec.key is None:
        return pa.schema(fields)
    if spec.key not in output.names or spec.key == KAFKA_COLUMN:
        known = ", ".join(name for name in output.names if name not in (KAFKA_COLUMN, JSON_COLUMN))
        raise TableMismatchError(spec.id, f"its key {spec.key!r} is not a column of the rows, which have {known}")
    kind = output.field(spec.key).type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_integer(kind)):
        raise TableMismatchError(
            spec.id,
            f"its key {spec.key!r} is of type {type_name(kind)}; a key is text, bytes or a whole number: cast it in the "
            f"transform",
        )
    return pa.schema([pa.field(spec.key, kind), *fields])


def compaction_problem(spec: ToTopicSpec, *, is_compacted: bool) -> str | None:
    """Return why the topic cannot take the rows as it is set up; None where it can.

    Args:
        spec: The target topic.
        is_compacted: Whether its ``cleanup.policy`` has ``compact``.
    """
    if spec.key is not None or not is_compacted:
        return None
    return (
        f"topic {spec.topic} is compacted (cleanup.policy), so Kafka takes no message without a key; name a column as 'key' in "
        f"to_topics, or set cleanup.policy=delete on the topic"
    )


def quarantine_compaction_problem(topic: str, *, is_compacted: bool) -> str | None:
    """Return why a topic cannot take bad records as it is set up; None where it can.

    Args:
        topic: The quarantine topic of a pipeline in real time.
        is_compacted: Whether its ``cleanup.policy`` has ``compact``.
    """
    if not is_compacted:
        return None
    return (
        f"topic {topic} is compacted (cleanup.policy), so Kafka takes no bad record without a key; set cleanup.policy=delete "
        f"on the topic, or name another one as 'quarantine_topic' in real_time"
    )


def messages_of(rows: pa.RecordBatch, key: str | None) -> Iterator[RowMessage]:
    """Yield the message of each row.

    Args:
        rows: Columns as ``staged_schema`` says.
        key: Name of the key column; None: messages have no key.
    """
    values = rows.column(JSON_COLUMN).cast(pa.binary()).to_pylist()
    keys: Sequence[bytes | None] = [None] * rows.num_rows if key is None else _bytes_of(rows.column(key)).to_pylist()
    kafka = rows.column(KAFKA_COLUMN)
    pieces = [kafka.field(name).cast(pa.string()) for name in _POSITION]
    sources = pc.binary_join_element_wise(*pieces, "/").cast(pa.binary()).to_pylist()
    return map(RowMessage, keys, values, sources)


def _bytes_of(values: pa.Array) -> pa.Array:
    return values if pa.types.is_binary(values.type) else values.cast(pa.string()).cast(pa.binary())
