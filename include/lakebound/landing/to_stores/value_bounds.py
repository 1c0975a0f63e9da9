"""Which values a store takes in its columns. Pure.

``lakebound_spark.batch.store_bounds`` asks the same of columns of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.landing.to_stores.record_keys import MOST_KEY_BYTES
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import ToStoreSpec

LARGEST_SUMMAND = 10**12
"""A bucket holds 64 bits: nine million of these. A server that refuses a sum would refuse it for ever."""
NUL = "\x00"
_TOLD = {
    "key": f"is null, or longer than {MOST_KEY_BYTES} bytes",
    "time": "is null",
    "summand": f"is larger than {LARGEST_SUMMAND:,} or smaller than -{LARGEST_SUMMAND:,}",
    "text": "has the character U+0000, which PostgreSQL cannot store in text",
}


@dataclass(frozen=True)
class ValueBound:
    """What one column must be for a store.

    Attributes:
        column: The column.
        what: What it is to the store.
    """

    column: str
    what: Literal["key", "time", "summand", "text"]

    @property
    def told(self) -> str:
        """What is wrong with a row that the store does not take."""
        return f"{self.column} {_TOLD[self.what]}"

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
        return not any(pc.any(pc.match_substring(text, NUL)).as_py() for text in _texts(values))


def value_bounds(spec: ToStoreSpec, staged: pa.Schema) -> list[ValueBound]:
    """Return the bounds of a store.

    Args:
        spec: The store.
        staged: Columns as ``store_rows.staged_schema`` says.
    """
    found = [ValueBound(spec.key, "key")]
    if spec.counters is not None:
        found.append(ValueBound(spec.counters.time, "time"))
        found += [ValueBound(name, "summand") for name in spec.counters.sums]
    if spec.postgres is not None:
        found += [ValueBound(one.name, "text") for one in staged if one.name != KAFKA_COLUMN and _has_text(one.type)]
    return found


def value_problems(spec: ToStoreSpec, rows: pa.Table) -> list[str]:
    """Return what is wrong with rows, a sentence for each column; empty: the store takes all of them.

    Args:
        spec: The store.
        rows: Columns as ``store_rows.staged_schema`` says.
    """
    return [bound.told for bound in value_bounds(spec, rows.schema) if not bound.holds(rows)]


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
