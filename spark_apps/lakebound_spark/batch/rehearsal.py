"""A rehearsal before the first batch: while no record waits, Spark loads and compiles what a batch with a transform needs.

Else the first records after a start wait for it, for seconds. The made-up record is decoded and goes through the function as
records do that the driver holds; nothing is written or committed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakebound.landing.direct_read import RecordColumns
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.redaction import redacted
from lakebound_spark.batch.decoded_rows import RowDecoder
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.quiet_spark import without_quotes

log = logging.getLogger(__name__)

_PLAIN: tuple[tuple[type[T.DataType], Any], ...] = (
    (T.DecimalType, 0),  # the one number that each decimal has
    (T.IntegralType, 1),
    (T.FractionalType, 1.0),
    (T.StringType, "1"),
    (T.BooleanType, True),
    (T.BinaryType, "MQ=="),
    (T.DateType, "2000-01-01"),
    (T.TimestampType, "2000-01-01T00:00:00Z"),
    (T.TimestampNTZType, "2000-01-01T00:00:00"),
)
"""A value of each type that functions most likely take, such as a number in a text."""


class Rehearsal:
    """What one pipeline's batches have Spark do."""

    def __init__(
        self,
        value: T.StructType | None,
        topic: str,
        decode: RowDecoder,
        transform: LocalTransform,
        key: T.StructType | None = None,
    ) -> None:
        """Do nothing yet.

        Args:
            value: Schema of the JSON values; None for texts and bytes.
            topic: One of the pipeline's, for the made-up record.
            decode: Makes rows of records that the driver holds.
            transform: The pipeline's function on them.
            key: Schema of the JSON keys; None for texts and bytes.
        """
        self._value = value
        self._key = key
        self._topic = topic
        self._decode = decode
        self._transform = transform

    def run(self, session: SparkSession) -> int:
        """Decode and transform a made-up record, and return the number of rows; what it raises is no error of the pipeline."""
        began = time.monotonic()
        key, value = (b"1" if one is None else json.dumps(made_up(one)).encode() for one in (self._key, self._value))
        record = RecordColumns([self._topic], [0], [0], [0], [key], [value])
        try:
            with without_quotes(session):
                rows: int = self._transform(session, self._decode(record).rows).num_rows
        except Exception as exc:
            log.info("the rehearsal on a made-up record ended early: %s", redacted(exc))
            return 0
        log.info("rehearsed on a made-up record for %.1f s", time.monotonic() - began)
        return rows


def made_up(kind: T.DataType) -> Any:
    """Return a plain value of a type, as JSON has it: of a struct every field, of an array and a map one element."""
    if isinstance(kind, T.StructType):
        return {field.name: made_up(field.dataType) for field in kind.fields}
    if isinstance(kind, T.ArrayType):
        return [made_up(kind.elementType)]
    if isinstance(kind, T.MapType):
        return {"1": made_up(kind.valueType)}
    return next((value for known, value in _PLAIN if isinstance(kind, known)), None)


def nothing_waits(start: NextOffsets, facts: Mapping[str, TopicFacts]) -> bool:
    """Return whether the topics had no record to read when Kafka was asked.

    Args:
        start: Where the stream starts; a partition without an offset begins at 0.
        facts: What Kafka has of each topic, by name.
    """
    ends = ((topic, partition, end) for topic, known in facts.items() for partition, end in known.latest.items())
    return all(start.get(topic, {}).get(partition, 0) >= end for topic, partition, end in ends)
