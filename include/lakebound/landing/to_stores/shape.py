"""What a store holds, as its ledger says it: a store that is written in two shapes holds what nobody can read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
from pydantic import Field

from lakebound.frozen import FrozenRecord
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.to_stores import CountersSpec, ToStoreSpec


class StoreShape(FrozenRecord):
    """The shape of a store.

    Attributes:
        kind: Whether it holds the newest row of each key, or counters.
        key: The key's column.
        types: How the key and, of rows, the columns look to a reader; without the columns where they are not known.
        delete_if: The column by which keys go.
        time: Of counters: the column with the time.
        windows: Of counters: seconds of each window and of its buckets, by the name that readers see.
        sums: Of counters: what is summed up, sorted.
    """

    kind: Literal["rows", "counters"]
    key: str
    types: dict[str, str] = Field(default_factory=dict)
    delete_if: str | None = None
    time: str | None = None
    windows: dict[str, tuple[int, int]] = Field(default_factory=dict)
    sums: tuple[str, ...] = ()


def shape_of(spec: ToStoreSpec, schema: pa.Schema | None) -> StoreShape:
    """Return the shape that a store has by the pipeline's YAML.

    Args:
        spec: The store.
        schema: Columns of the files in which rows wait; None where nobody knows them.
    """
    counters = spec.counters
    held = () if schema is None else (field for field in schema if field.name not in (KAFKA_COLUMN, spec.delete_if))
    types = {field.name: _seen_as(field.type) for field in held}
    if counters is None:
        return StoreShape(kind="rows", key=spec.key, types=types, delete_if=spec.delete_if)
    return StoreShape(
        kind="counters",
        key=spec.key,
        types={name: kind for name, kind in types.items() if name == spec.key},
        delete_if=spec.delete_if,
        time=counters.time,
        windows=_windows(counters, named=spec.redis is not None),
        sums=tuple(sorted(counters.sums)),
    )


def differences(held: StoreShape, wanted: StoreShape) -> tuple[str, ...]:
    """Return why what the pipeline writes cannot stand beside what a store holds, a sentence for each field; empty: it can.

    Columns that are added to rows are no reason: a row that is there has no value in them until its key's next record.

    Args:
        held: By the store's ledger.
        wanted: By the pipeline.
    """
    return tuple(_differences(held, wanted))


def _differences(held: StoreShape, wanted: StoreShape) -> Iterator[str]:
    if held.kind != wanted.kind:
        yield f"counters: it holds {held.kind}, and the pipeline writes {wanted.kind}"
        return
    if held.key != wanted.key:
        yield f"key: its rows are named by {held.key!r}, and the pipeline names them by {wanted.key!r}"
    if held.delete_if != wanted.delete_if:
        yield f"delete_if: its keys were removed by {_told(held.delete_if)}, and now by {_told(wanted.delete_if)}"
    if held.types and wanted.types:
        yield from _of_columns(held, wanted)
    if held.time != wanted.time:
        yield f"counters.time: its buckets are by {held.time!r}, and the pipeline counts by {wanted.time!r}"
    for name in sorted({*held.windows, *wanted.windows}, key=str):
        before, now = held.windows.get(name), wanted.windows.get(name)
        if before != now:
            yield f"counters.windows: {name} has {_bucket(before)} in the store, and {_bucket(now)} in the pipeline"
    for name in sorted({*held.sums} ^ {*wanted.sums}):
        there = "is in the store, and not in the pipeline" if name in held.sums else "is not in the store's buckets"
        yield f"counters.sums: {name!r} {there}"


def _of_columns(held: StoreShape, wanted: StoreShape) -> Iterator[str]:
    for name, kind in held.types.items():
        now = wanted.types.get(name)
        if now is None and name != held.key:
            yield f"columns: {name!r} is in its rows, and the pipeline writes it no longer; the old values would stay"
        elif now is not None and now != kind:
            yield f"columns: {name!r} is {kind} in the store, and {now} in the pipeline"


def _windows(counters: CountersSpec, *, named: bool) -> dict[str, tuple[int, int]]:
    """PostgreSQL holds a window's seconds alone: there 60s is another name for 1m."""
    return {window if named else f"{seconds[0]}s": seconds for window, seconds in counters.seconds.items()}


def _told(column: str | None) -> str:
    return "no column" if column is None else repr(column)


def _bucket(seconds: tuple[int, int] | None) -> str:
    return "no buckets" if seconds is None else f"buckets of {seconds[1]} s"


def _seen_as(kind: pa.DataType) -> str:
    """Return how a value looks to a reader, whatever room it takes: an INT that became a BIGINT is the same whole number."""
    types = pa.types
    if types.is_integer(kind):
        return "whole number"
    if types.is_floating(kind):
        return "number"
    if types.is_decimal(kind):
        return f"decimal with {kind.scale} places"
    if types.is_nested(kind):
        return "JSON"
    if types.is_timestamp(kind):
        return "instant" if kind.tz else "local time"
    known = (
        (types.is_string, "text"),
        (types.is_binary, "bytes"),
        (types.is_boolean, "true or false"),
        (types.is_date, "date"),
    )
    return next((name for test, name in known if test(kind)), str(kind))
