"""Rows that a store does not take, in words. Pure.

``lakebound_spark.batch.store_bounds`` asks the same of rows while they land, and sends their records to quarantine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.landing.to_stores.record_keys import MOST_KEY_BYTES
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import ToStoreSpec

LARGEST_SUMMAND = 10**12
_NUL = "\x00"


def value_problems(spec: ToStoreSpec, rows: pa.Table) -> list[str]:
    """Return what is wrong with rows, a sentence for each column; empty: the store takes all of them.

    Args:
        spec: The store.
        rows: Columns as ``store_rows.staged_schema`` says.
    """
    return list(_problems(spec, rows))


def _problems(spec: ToStoreSpec, rows: pa.Table) -> Iterator[str]:
    key = rows[spec.key]
    text = key if pa.types.is_binary(key.type) else key.cast(pa.string())
    if key.null_count or (pc.max(pc.binary_length(text)).as_py() or 0) > MOST_KEY_BYTES:
        yield f"{spec.key} is null, or longer than {MOST_KEY_BYTES} bytes"
    if spec.counters is not None:
        if rows[spec.counters.time].null_count:
            yield f"{spec.counters.time} is null"
        for name in spec.counters.sums:
            bounds = pc.min_max(rows[name])
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            if low is not None and (low < -LARGEST_SUMMAND or high > LARGEST_SUMMAND):
                yield f"{name} is larger than {LARGEST_SUMMAND:,} or smaller than -{LARGEST_SUMMAND:,}"
    if spec.postgres is not None:
        for name in rows.column_names:
            if name != KAFKA_COLUMN and any(pc.any(pc.match_substring(one, _NUL)).as_py() for one in _texts(rows[name])):
                yield f"{name} has the character U+0000, which PostgreSQL cannot store in text"


def _texts(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield the texts in a column, however deep."""
    kind, types = values.type, pa.types
    if types.is_string(kind):
        yield values
    elif types.is_struct(kind):
        for inside in values.flatten():
            yield from _texts(inside)
    elif types.is_map(kind):
        pair = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
        yield from _texts(values.cast(pa.list_(pair)))
    elif types.is_list(kind):
        yield from _texts(pc.list_flatten(values))
