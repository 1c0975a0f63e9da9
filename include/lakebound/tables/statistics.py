"""A Parquet footer's statistics as Delta wants them in a log entry. Pure.

Bounds may be wider than the values, never narrower: a reader skips a file by them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

MAX_STRING = 32
_LARGEST_CHARACTER = "\U0010ffff"
_ABSENT = object()


def delta_statistics(metadata: pq.FileMetaData, columns: Collection[tuple[str, ...]]) -> str:
    """Return Delta's statistics JSON of a file.

    Args:
        metadata: The file's footer.
        columns: Paths of the columns to describe; lists and maps have no statistics.
    """
    wanted = {".".join(path): path for path in columns}
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    null_counts: dict[str, Any] = {}
    for index in range(metadata.num_columns):
        path = wanted.get(metadata.schema.column(index).path)
        if path is None:
            continue
        low, high, nulls = _column(metadata, index)
        _put(minima, path, _lower(low))
        _put(maxima, path, _upper(high))
        _put(null_counts, path, _ABSENT if nulls is None else nulls)
    body = {"numRecords": metadata.num_rows, "minValues": minima, "maxValues": maxima, "nullCount": null_counts}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def _column(metadata: pq.FileMetaData, index: int) -> tuple[Any, Any, int | None]:
    """Return a column's minimum, maximum and number of nulls; ``_ABSENT`` or None where a row group does not tell."""
    low: Any = _ABSENT
    high: Any = _ABSENT
    nulls = 0
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(index)
        found = chunk.statistics
        if found is None or not found.has_null_count:
            return _ABSENT, _ABSENT, None
        nulls += found.null_count
        if found.has_min_max:
            low = found.min if low is _ABSENT else min(low, found.min)
            high = found.max if high is _ABSENT else max(high, found.max)
        elif found.null_count < chunk.num_values:
            return _ABSENT, _ABSENT, None
    return low, high, nulls


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if value is _ABSENT:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _lower(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_STRING]
    if isinstance(value, datetime):
        return _timestamp(value - timedelta(microseconds=value.microsecond % 1000))
    return _exact(value)


def _upper(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_STRING:
        return _ABSENT if value[MAX_STRING] == _LARGEST_CHARACTER else value[:MAX_STRING] + _LARGEST_CHARACTER
    if isinstance(value, datetime):
        try:
            return _timestamp(value + timedelta(microseconds=-value.microsecond % 1000))
        except OverflowError:
            return _ABSENT
    if isinstance(value, float):
        return _ABSENT  # a footer does not tell whether there are NaNs, which Spark holds for the largest of all
    return _exact(value)


def _exact(value: Any) -> Any:
    """Return the value as JSON holds it exactly, or ``_ABSENT``."""
    if isinstance(value, bool | bytes) or value is _ABSENT:
        return _ABSENT
    if isinstance(value, float):
        return value if math.isfinite(value) else _ABSENT
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, int | str) else _ABSENT


def _decimal(value: Decimal) -> Any:
    if value == int(value):
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else _ABSENT


def _timestamp(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + "Z" if value.tzinfo else text
