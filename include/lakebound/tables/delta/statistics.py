"""What is known of a data file's columns, as Delta wants it in a log entry. Pure.

Bounds may be wider than the values, never narrower: a reader skips a file by them. Both are written wherever both are true:
deltalake's own PyArrow reader takes a bound that is missing for one that no row satisfies (docs/readers.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebound.tables.column_facts import ColumnFacts, FactsByColumn, Leaf, Raw, signed_zero, text_of

MAX_STRING = 32
_LARGEST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1)
_MICROSECONDS = 1_000

_Tree = dict[str, Any]
"""Names to JSON texts, or to such trees."""


def delta_statistics(rows: int, facts: FactsByColumn, columns: Mapping[Leaf, pa.DataType]) -> str:
    """Return Delta's statistics JSON of a file.

    Args:
        rows: How many it has.
        facts: What is known of its columns.
        columns: The columns to describe, and their types.
    """
    trees: dict[str, _Tree] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for path, kind in columns.items():
        if path in facts:
            low, high = bounds(facts[path], kind)
            nulls = facts[path].nulls
            _put(trees["minValues"], path, low)
            _put(trees["maxValues"], path, high)
            _put(trees["nullCount"], path, None if nulls is None else str(nulls))
    return _object({"numRecords": str(rows), **trees})


def bounds(facts: ColumnFacts, kind: pa.DataType) -> tuple[str | None, str | None]:
    """Return the lower and the upper bound as JSON; None where there is none that is true and can be written.

    Args:
        facts: Of a column.
        kind: Its type.
    """
    if facts.low is None or facts.high is None or pa.types.is_binary(kind):
        return None, None
    lower, upper = _lower(facts.low, kind), _upper(facts.high, kind)
    return lower, None if facts.has_nan else upper


def columns_described(schema: pa.Schema, wanted: Collection[Leaf]) -> dict[Leaf, pa.DataType]:
    """Return the wanted columns with their types."""
    return {path: _kind(schema, path) for path in sorted(wanted)}


def _kind(schema: pa.Schema, path: Leaf) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def _lower(value: Raw, kind: pa.DataType) -> str | None:
    if isinstance(value, bytes):
        text = text_of(value)
        return None if text is None else _json(text[:MAX_STRING])
    if pa.types.is_timestamp(kind):
        return _timestamp(int(value) - int(value) % _MICROSECONDS, kind)
    return _number(signed_zero(value, -1.0) if isinstance(value, float) else value, kind)


def _upper(value: Raw, kind: pa.DataType) -> str | None:
    if isinstance(value, bytes):
        text = text_of(value)
        return None if text is None else _json(_cut_upwards(text))
    if pa.types.is_timestamp(kind):
        # Spark and deltalake take the last millisecond that can be written for all of it.
        rounded = int(value) + -int(value) % _MICROSECONDS
        return _timestamp(rounded, kind) or _timestamp(int(value) - int(value) % _MICROSECONDS, kind)
    return _number(signed_zero(value, 1.0) if isinstance(value, float) else value, kind)


def _cut_upwards(text: str) -> str:
    """Return a short text that is not smaller; a largest character cannot be put in place of another one."""
    for at in range(MAX_STRING, len(text)):
        if text[at] != _LARGEST_CHARACTER:
            return text[:at] + _LARGEST_CHARACTER
    return text


def _number(value: Raw, kind: pa.DataType) -> str | None:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return _json(value) if math.isfinite(value) else _json("Infinity" if value > 0 else "-Infinity")
    if pa.types.is_date(kind):
        return _date(int(value))
    return _json(value)


def _date(days: int) -> str | None:
    try:
        return _json((_EPOCH + timedelta(days=days)).date().isoformat())
    except OverflowError:
        return None


def _timestamp(microseconds: int, kind: pa.TimestampType) -> str | None:
    try:
        text = (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="milliseconds")
    except OverflowError:
        return None
    return _json(f"{text}Z" if kind.tz else text)


def _json(value: object) -> str:
    # As characters, not as \u escapes: see commit_text.
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _put(tree: _Tree, path: Leaf, text: str | None) -> None:
    if text is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _object(tree: _Tree) -> str:
    """Return the JSON; decimals are numbers with all their digits in it, which Python's encoder would make floats of."""
    inside = (f"{_json(name)}:{_object(text) if isinstance(text, dict) else text}" for name, text in tree.items())
    return "{" + ",".join(inside) + "}"
