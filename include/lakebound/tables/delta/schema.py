"""Columns and properties of a Delta table are changed. By ``deltalake``, which merges what is inside of a column, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError

from lakebound.errors import CommitRefusedError, TableMismatchError
from lakebound.ledger.entry import Entry, encode
from lakebound.storage.location import Location
from lakebound.tables.delta.draft import NO_HOOKS, draft_commit
from lakebound.tables.delta.features import check_may
from lakebound.tables.delta.history import counting_entry
from lakebound.tables.delta.open import open_delta, read_shape
from lakebound.tables.delta.put import put
from lakebound.tables.delta.tip import read_tip
from lakebound.tables.schema_change import Addition, SchemaPlan


def add_columns(folder: Location, plan: SchemaPlan, entry: Entry | None, table: str) -> None:
    """Commit the plan's additions as the version after the newest; Delta's plans widen nothing.

    Args:
        folder: The table's.
        plan: What it lacks.
        entry: Carried on, while it is the one that counts.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: Another commit was faster.
        TableFeatureError: The table has a feature with which its metadata is not changed here.
        TableMismatchError: Delta does not allow the change.
    """
    handle = open_delta(folder, table)

    def add(scratch: DeltaTable, options: dict[str, Any]) -> None:
        fields = Schema.from_arrow(_changed(pa.schema(handle.schema().to_arrow()), plan.additions)).fields
        scratch.alter.add_columns(fields, **options)

    _alter(folder, handle, add, entry, table)


def set_properties(folder: Location, properties: Mapping[str, str], entry: Entry | None, table: str) -> None:
    """Commit properties as the version after the newest.

    Args:
        folder: The table's.
        properties: By name.
        entry: Carried on.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: Another commit was faster.
        TableFeatureError: The table has a feature with which its metadata is not changed here.
        TableMismatchError: Delta refuses one of them.
    """

    def change(scratch: DeltaTable, options: dict[str, Any]) -> None:
        scratch.alter.set_table_properties(dict(properties), raise_if_not_exists=False, **options)

    _alter(folder, open_delta(folder, table), change, entry, table)


def _alter(
    folder: Location, handle: DeltaTable, change: Callable[[DeltaTable, dict[str, Any]], None], entry: Entry | None, table: str
) -> None:
    check_may(table, read_shape(handle), "alter")
    metadata = {} if entry is None else {"userMetadata": encode(entry)}
    options = {
        "commit_properties": CommitProperties(custom_metadata=metadata, max_commit_retries=0),
        "post_commithook_properties": NO_HOOKS,
    }
    tip = read_tip(folder, handle.version(), table)
    if entry is not None:
        counts = counting_entry(folder, tip.version, table)
        if counts is None or counts.entry.coverage != entry.coverage or counts.entry.epoch != entry.epoch:
            raise CommitRefusedError(table, "another entry counts than the one that is to be carried on")
    try:
        text = draft_commit(folder, tip.version, lambda scratch: change(scratch, options))
    except (ValueError, DeltaError) as exc:
        raise TableMismatchError(table, f"its columns or properties cannot be changed: {exc}") from exc
    put(folder, tip, text, table)


def _changed(found: pa.Schema, additions: Sequence[Addition]) -> pa.Schema:
    """Return the columns that are new, and those in which something is, whole."""
    changed: dict[str, pa.Field] = {}
    for addition in additions:
        name, *inner = addition.path
        before = changed.get(name) or (found.field(name) if inner else pa.field(name, addition.type))
        changed[name] = pa.field(name, _inside(before.type, inner, addition.type) if inner else addition.type)
    return pa.schema(list(changed.values()))


def _inside(kind: pa.DataType, path: list[str], added: pa.DataType) -> pa.DataType:
    name, *inner = path
    if pa.types.is_struct(kind):
        fields = list(kind)
        if not inner and name not in [field.name for field in fields]:
            return pa.struct([*fields, pa.field(name, added)])
        return pa.struct([_replaced(field, name, inner, added) for field in fields])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _inside(kind.item_type, inner, added))
    return pa.list_(pa.field("element", _inside(kind.value_type, inner, added)))


def _replaced(field: pa.Field, name: str, inner: list[str], added: pa.DataType) -> pa.Field:
    return pa.field(field.name, _inside(field.type, inner, added)) if field.name == name else field
