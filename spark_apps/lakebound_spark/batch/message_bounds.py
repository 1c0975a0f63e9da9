"""Which messages a target topic takes, by their size and their key, for columns of Spark and of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound_spark.batch.landable import Bound
from lakebound_spark.column_names import column_named

_OVERHEAD_BYTES = 512
"""Of a batch with one message: Kafka's own fields, and the header with the position of the source record."""


@dataclass(frozen=True)
class MessageBound:
    """How large the messages of one topic may be.

    Attributes:
        target: Id of the target.
        key: Column that becomes the key; None without one.
        largest_bytes: Of a batch of records of the topic.
        is_compacted: Whether the topic is compacted, so that it takes no message without a key.
    """

    target: str
    key: str | None
    largest_bytes: int
    is_compacted: bool = False

    @property
    def told(self) -> str:
        """What is wrong with a row whose message is larger."""
        return f"{self.target}: its message is larger than the topic takes (max.message.bytes {self.largest_bytes})"

    @property
    def most_bytes(self) -> int:
        """Of the key and the value."""
        return self.largest_bytes - _OVERHEAD_BYTES

    def is_exceeded(self, output: DataFrame) -> Column:
        """Return the condition that a row's message is too large."""
        size = F.octet_length(output[JSON_COLUMN])
        if self.key is not None:
            key = column_named(self.key)
            is_bytes = isinstance(output.schema[self.key].dataType, BinaryType)
            size = size + F.coalesce(F.octet_length(key if is_bytes else key.cast("string")), F.lit(0))
        return size > F.lit(self.most_bytes)

    def holds(self, rows: pa.Table) -> bool:
        """Whether all messages are small enough."""
        sizes = pc.binary_length(rows[JSON_COLUMN])
        if self.key is not None:
            key = rows[self.key]
            text = key if pa.types.is_binary(key.type) else key.cast(pa.string())
            sizes = pc.add(sizes, pc.coalesce(pc.binary_length(text), pa.scalar(0, pa.int32())))
        return int(pc.max(sizes).as_py() or 0) <= self.most_bytes


@dataclass(frozen=True)
class KeyBound:
    """No key may be null: Kafka refuses a message without a key in a compacted topic.

    Attributes:
        target: Id of the target.
        key: Column that becomes the key.
    """

    target: str
    key: str

    @property
    def told(self) -> str:
        """What is wrong with a row whose message has no key."""
        return f"{self.target}: its key {self.key} is null, and a compacted topic takes no message without a key"

    def is_exceeded(self, output: DataFrame) -> Column:
        """Return the condition that a row's message has no key."""
        return column_named(self.key).isNull()

    def holds(self, rows: pa.Table) -> bool:
        """Whether all messages have a key."""
        return not rows[self.key].null_count


def topic_bounds(bounds: Sequence[MessageBound]) -> list[Bound]:
    """Return all that target topics ask of the rows.

    Args:
        bounds: Of their messages.
    """
    keys = [KeyBound(one.target, one.key) for one in bounds if one.is_compacted and one.key is not None]
    return [*bounds, *keys]
