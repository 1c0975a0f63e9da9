"""What a batch changes in a store of rows: the last row of each key, and the keys that go. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.errors import TableMismatchError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound.tables.type_names import type_name

POSITION = ("topic", "partition", "offset", "ordinal")
"""Of ``_kafka``: the source position, by which the last of several rows of a key is found."""
TOMBSTONE_ORDINAL = -1
"""Of what waits for a store's commit and is no row: a record without a value, whose key goes. Rows are numbered from 0 on."""
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class Changes:
    """What a batch changes in a store.

    Attributes:
        rows: Of a store of rows: one row per key, ``_kafka`` and ``delete_if`` left out.
        gone: Of a store of rows: keys that go.
        counts: Of a store of counters: per window the buckets (``bucket_counts``).
        now: When they were worked out, in seconds: buckets that lie before their window then are removed.
    """

    rows: pa.Table | None = None
    gone: pa.ChunkedArray | None = None
    counts: dict[str, pa.Table] = field(default_factory=dict)
    now: int = 0


def staged_schema(spec: ToStoreSpec, output: pa.Schema) -> pa.Schema:
    """Return the columns of the files in which rows wait for the store's commit, ``_kafka`` last.

    Args:
        spec: The store.
        output: Columns of the pipeline's rows.

    Raises:
        TableMismatchError: A column is not there, or its type is not one that the store can use so.
    """
    own = [name for name in output.names if name not in (KAFKA_COLUMN, spec.delete_if)]
    wanted: Sequence[str] = spec.counters.columns if spec.counters is not None else spec.columns or own
    names = list(dict.fromkeys((spec.key, *wanted, *((spec.delete_if,) if spec.delete_if else ()))))
    known = [name for name in output.names if name != KAFKA_COLUMN]
    if absent := [name for name in names if name not in known]:
        raise TableMismatchError(spec.id, f"it needs the column {absent[0]!r}, and the rows have {', '.join(known)}")
    if len(names) > _MOST_COLUMNS:
        raise TableMismatchError(
            spec.id, f"its rows have {len(names)} columns, more than {_MOST_COLUMNS}; name some by 'columns'"
        )
    _check_types(spec, output)
    return pa.schema([*(pa.field(name, output.field(name).type) for name in names), pa.field(KAFKA_COLUMN, KAFKA_TYPE)])


def _check_types(spec: ToStoreSpec, output: pa.Schema) -> None:
    types, kind = pa.types, output.field(spec.key).type
    if not (types.is_string(kind) or types.is_binary(kind) or types.is_integer(kind) or types.is_date(kind)):
        what = (
            f"its key {spec.key!r} is of type {type_name(kind)}; a key is text, bytes, a whole number or a date: "
            f"cast it in the transform"
        )
        raise TableMismatchError(spec.id, what)
    if spec.delete_if is not None and not types.is_boolean(output.field(spec.delete_if).type):
        raise TableMismatchError(
            spec.id, f"delete_if: {spec.delete_if!r} is of type {type_name(output.field(spec.delete_if).type)}, not BOOLEAN"
        )
    if spec.counters is None:
        return
    time = output.field(spec.counters.time).type
    if not types.is_timestamp(time) or time.tz is None:
        what = f"counters: the time {spec.counters.time!r} is of type {type_name(time)}, not TIMESTAMP"
        raise TableMismatchError(spec.id, what)
    for name in spec.counters.sums:
        if not types.is_integer(output.field(name).type):
            what = (
                f"counters: the sum {name!r} is of type {type_name(output.field(name).type)}; sums are of whole numbers, which "
                f"add up exactly: make it cents, or another smallest unit, in the transform"
            )
            raise TableMismatchError(spec.id, what)


def last_of_each_key(rows: pa.Table, key: str) -> pa.Table:
    """Return one row per key: the last one by source position.

    Args:
        rows: With ``_kafka``; no key is null.
        key: Name of the key column.
    """
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    places = pa.table({name: kafka.field(name) for name in POSITION})
    order = pc.sort_indices(places, sort_keys=[(name, "ascending") for name in POSITION])
    ordered = rows.take(order)
    numbered = pa.table({"key": ordered[key], "row": pa.array(range(ordered.num_rows), pa.int64())})
    last = numbered.group_by("key").aggregate([("row", "max")])["row_max"]
    return ordered.take(last.take(pc.sort_indices(last)))


def row_changes(spec: ToStoreSpec, rows: pa.Table, *, tombstones: bool = False) -> Changes:
    """Return what a batch changes in a store of rows.

    Args:
        spec: The store.
        rows: Columns as ``staged_schema`` says.
        tombstones: Whether some of them are tombstones.
    """
    last = last_of_each_key(rows, spec.key)
    marks = [] if spec.delete_if is None else [pc.fill_null(last[spec.delete_if], False)]
    marks += [are_tombstones(last)] if tombstones else []
    last = last.drop_columns([KAFKA_COLUMN, *([] if spec.delete_if is None else [spec.delete_if])])
    if not marks:
        return Changes(rows=last)
    goes = reduce(pc.or_, marks)
    return Changes(rows=last.filter(pc.invert(goes)), gone=last.filter(goes)[spec.key])


def are_tombstones(rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows that wait for a commit stand for records without a value."""
    return pc.equal(pc.struct_field(rows[KAFKA_COLUMN], "ordinal"), TOMBSTONE_ORDINAL)


def tombstone_rows(key: str, values: pa.Array, kafka: pa.Array) -> pa.Table:
    """Return what waits for the commit of a store in which keys go: the key and ``_kafka``.

    Args:
        key: Name of the key column.
        values: The keys.
        kafka: Where the records came from.
    """
    ordinals = pa.repeat(pa.scalar(TOMBSTONE_ORDINAL, KAFKA_TYPE.field("ordinal").type), len(values))
    fields = [ordinals if field.name == "ordinal" else kafka.field(field.name) for field in KAFKA_TYPE]
    return pa.table({key: values, KAFKA_COLUMN: pa.StructArray.from_arrays(fields, fields=list(KAFKA_TYPE))})


def texts(values: pa.ChunkedArray) -> list[bytes | None]:
    """Return values as they are in Redis: text and bytes unchanged, numbers as digits, times in ISO 8601, others as JSON."""
    kind, types = values.type, pa.types
    if types.is_binary(kind):
        return list(values.to_pylist())
    if pa.types.is_nested(kind):
        return [None if one is None else as_json(one, kind).encode() for one in values.to_pylist()]
    if types.is_timestamp(kind):
        values = pc.strftime(values, format="%Y-%m-%dT%H:%M:%S" + ("Z" if kind.tz else ""))
    elif not types.is_string(kind):
        values = values.cast(pa.string())
    return list(values.cast(pa.binary()).to_pylist())


def as_json(value: Any, kind: pa.DataType) -> str:
    """Return a value of a nested column as JSON."""
    return json.dumps(_plain(value, kind), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {one.name: _plain(value[one.name], one.type) for one in kind}
    if pa.types.is_map(kind):
        return {str(_plain(name, kind.key_type)): _plain(item, kind.item_type) for name, item in value}
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    # JSON has no number for them.
    return str(value) if isinstance(value, float) and value - value != 0 else value
