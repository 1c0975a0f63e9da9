"""Which values a store takes in its columns, for columns of Spark and of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from lakebound.landing.to_stores.record_keys import MOST_KEY_BYTES
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import ToStoreSpec
from lakebound_spark.batch.landable import some_value
from lakebound_spark.column_names import column_named

LARGEST_SUMMAND = 10**12
"""A bucket holds 64 bits: nine million of these. A server that refuses a sum would refuse it for ever."""
_NUL = "\x00"
_TOLD = {
    "key": f"is null, or longer than {MOST_KEY_BYTES} bytes",
    "time": "is null",
    "summand": f"is larger than {LARGEST_SUMMAND:,} or smaller than -{LARGEST_SUMMAND:,}",
    "text": "has the character U+0000, which PostgreSQL cannot store in text",
}


@dataclass(frozen=True)
class StoreBound:
    """What one column must be for a store.

    Attributes:
        target: Id of the store.
        column: The column.
        what: What it is to the store.
    """

    target: str
    column: str
    what: Literal["key", "time", "summand", "text"]

    @property
    def told(self) -> str:
        """What is wrong with a row that the store does not take."""
        return f"{self.target}: {self.column} {_TOLD[self.what]}"

    def is_exceeded(self, output: DataFrame) -> Column:
        """Return the condition that the store does not take a row."""
        value, kind = column_named(self.column), output.schema[self.column].dataType
        if self.what == "key":
            size = F.octet_length(value if isinstance(kind, BinaryType) else value.cast("string"))
            return value.isNull() | (size > F.lit(MOST_KEY_BYTES))
        if self.what == "time":
            return value.isNull()
        if self.what == "summand":
            return F.coalesce((value > F.lit(LARGEST_SUMMAND)) | (value < F.lit(-LARGEST_SUMMAND)), F.lit(False))
        return F.coalesce(some_value(value, kind, _has_nul), F.lit(False))  # type: ignore[arg-type]

    def holds(self, rows: pa.Table) -> bool:
        """Whether the store takes all rows."""
        values = rows[self.column]
        if self.what == "key":
            text = values if pa.types.is_binary(values.type) else values.cast(pa.string())
            return not values.null_count and int(pc.max(pc.binary_length(text)).as_py() or 0) <= MOST_KEY_BYTES
        if self.what == "time":
            return not values.null_count
        if self.what == "summand":
            bounds = pc.min_max(values)
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            return low is None or (-LARGEST_SUMMAND <= low and high <= LARGEST_SUMMAND)
        return not any(pc.any(pc.match_substring(text, _NUL)).as_py() for text in _texts(values))


def store_bounds(one: ToStoreSpec, output: pa.Schema) -> list[StoreBound]:
    """Return the bounds of a store.

    Args:
        one: The store.
        output: Columns of the pipeline's rows.
    """
    found = [StoreBound(one.id, one.key, "key")]
    if one.counters is not None:
        found.append(StoreBound(one.id, one.counters.time, "time"))
        found += [StoreBound(one.id, name, "summand") for name in one.counters.sums]
    if one.postgres is not None:
        fields = [field for field in staged_schema(one, output) if field.name != KAFKA_COLUMN and _has_text(field.type)]
        found += [StoreBound(one.id, field.name, "text") for field in fields]
    return found


def _has_nul(value: Column, kind: DataType) -> Column | None:
    """A ``Test``: a text has the character that PostgreSQL has not."""
    return value.contains(_NUL) if isinstance(kind, StringType) else None


def _has_text(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _has_text(kind.key_type) or _has_text(kind.item_type)
    if pa.types.is_list(kind):
        return _has_text(kind.value_type)
    return any(_has_text(field.type) for field in kind) if pa.types.is_struct(kind) else pa.types.is_string(kind)


def _texts(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield the texts in a column, however deep."""
    kind, types = values.type, pa.types
    if types.is_string(kind):
        yield values
    elif types.is_struct(kind):
        for inside in values.flatten():
            yield from _texts(inside)
    elif types.is_map(kind) and _has_text(kind):
        pair = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
        yield from _texts(values.cast(pa.list_(pair)))
    elif types.is_list(kind) and _has_text(kind):
        yield from _texts(pc.list_flatten(values))
