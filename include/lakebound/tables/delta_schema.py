"""Columns are added to a Delta table. By ``deltalake``, which merges what is inside of a column, too."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaProtocolError, SchemaMismatchError

from lakebound.errors import CommitRefusedError, TableMismatchError
from lakebound.ledger import Entry, encode
from lakebound.schema_change import Addition, SchemaPlan

_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def add_columns(handle: DeltaTable, plan: SchemaPlan, entry: Entry | None, table: str) -> None:
    """Commit the plan's additions as the version after the handle's; Delta's plans widen nothing.

    Args:
        handle: The table as it was compared.
        plan: What it lacks.
        entry: Carried on.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: Another commit was faster.
        TableMismatchError: Delta does not allow the change.
    """
    metadata = {} if entry is None else {"userMetadata": encode(entry)}
    try:
        handle.alter.add_columns(
            Schema.from_arrow(_changed(pa.schema(handle.schema().to_arrow()), plan.additions)).fields,
            commit_properties=CommitProperties(custom_metadata=metadata, max_commit_retries=0),
            post_commithook_properties=_HOOKS,
        )
    except CommitFailedError as exc:
        raise CommitRefusedError(table, str(exc)) from exc
    except (ValueError, DeltaProtocolError, SchemaMismatchError) as exc:
        raise TableMismatchError(table, f"its columns cannot be changed: {exc}") from exc


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
