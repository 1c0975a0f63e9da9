"""What a batch adds to the counters of a store: per window, rows and sums by key and bucket of time. Pure."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.landing.to_stores.store_rows import Changes
from lakebound.spec.to_stores import BUCKET_COLUMNS, COUNT, CountersSpec, ToStoreSpec

BUCKET = BUCKET_COLUMNS[1]
KEY = "_key"
"""The key column of what ``bucket_counts`` returns; a sum cannot be called so."""
_MICROSECONDS = 1_000_000


def counter_changes(spec: ToStoreSpec, rows: pa.Table, now: int) -> Changes:
    """Return what a batch changes in a store of counters.

    Args:
        spec: The store.
        rows: Columns as ``store_rows.staged_schema`` says.
        now: In seconds since 1970.
    """
    assert spec.counters is not None
    counts = {window: bucket_counts(rows, spec.key, spec.counters, window, now) for window in spec.counters.windows}
    return Changes(counts=counts, now=now)


def bucket_counts(rows: pa.Table, key: str, counters: CountersSpec, window: str, now: int) -> pa.Table:
    """Return the counts and sums of the rows by key and bucket: ``_key``, ``bucket`` (its begin in seconds), ``count``, sums.

    Rows whose bucket lies before the window are left out, and those that are further ahead of now than the longest window: a
    clock that is wrong by years would fill buckets that nobody removes.

    Args:
        rows: With the key, the time and the columns that are summed up.
        key: Name of the key column.
        counters: What is counted.
        window: One of its windows.
        now: In seconds since 1970.
    """
    length = counters.seconds[window][1]
    seconds = pc.divide(rows[counters.time].cast(pa.int64()), _MICROSECONDS)
    begins = pc.multiply(pc.divide(seconds, length), length)
    counted = pa.table({KEY: rows[key], BUCKET: begins, **{name: rows[name].cast(pa.int64()) for name in counters.sums}})
    is_kept = pc.and_(
        pc.greater(begins, oldest_expired(counters, window, now)), pc.less_equal(seconds, now + counters.longest_seconds)
    )
    grouped = counted.filter(is_kept).group_by([KEY, BUCKET])
    found = grouped.aggregate([([], "count_all"), *((name, "sum") for name in counters.sums)])
    sums = {name: pc.fill_null(found[f"{name}_sum"], 0) for name in counters.sums}
    return pa.table({KEY: found[KEY], BUCKET: found[BUCKET], COUNT: found["count_all"], **sums})


def oldest_expired(counters: CountersSpec, window: str, now: int) -> int:
    """Return the latest begin of a bucket that lies before the window as a whole.

    Args:
        counters: What is counted.
        window: One of its windows.
        now: In seconds since 1970.
    """
    whole, length = counters.seconds[window]
    return now - whole - length
