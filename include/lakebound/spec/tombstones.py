"""What may become of records without a value: which pipelines can delete a key of their stores by them, or land them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.spec.value import PlainValueSpec, ValueSpec

NullValues = Literal["quarantine", "skip", "row", "delete"]
DELETE: NullValues = "delete"
ROW: NullValues = "row"
WITHOUT_ROWS: tuple[NullValues, ...] = ("skip", "delete")
"""With these a record without a value gives no row, and is no mistake."""
_TOLD = {"bytes": "bytes", "string": "texts"}


def row_problem(value: ValueSpec) -> str | None:
    """Return why ``null_values: row`` cannot be had; None where it can, as far as the YAML says.

    Args:
        value: How the pipeline decodes values.
    """
    if isinstance(value, PlainValueSpec) or value.value_schema is None:
        return None
    try:
        required = [column.name for column in read_columns(value.value_schema) if column.is_required]
    except UnclearDdlError:
        return None  # a record without a value goes to quarantine then, if a column is NOT NULL
    if not required:
        return None
    return (
        f"row gives a record without a value a row whose columns of the value are null, and {', '.join(required[:5])} of "
        f"value.schema must not be null: remove NOT NULL there, or use quarantine or skip"
    )


def delete_problem(stores: Sequence[ToStoreSpec], value: ValueSpec, key_column: str | None) -> str | None:
    """Return why ``null_values: delete`` cannot be had; None where it can, as far as the YAML says.

    Args:
        stores: Those of the pipeline.
        value: How it decodes values.
        key_column: The column that holds each record's key as it is; None where none does.
    """
    if not stores:
        return "delete removes the key of a record without a value from to_stores, and there are none; use skip or quarantine"
    for position, one in enumerate(stores):
        if one.counters is not None:
            return (
                f"delete cannot be used with to_stores[{position}] ({one.name}): it keeps counters, and the key alone does not "
                f"say what of them to take back; use skip, or keep the counters by a pipeline of their own"
            )
    keys = sorted({one.key for one in stores})
    if len(keys) > 1:
        return (
            f"delete needs one key for all of to_stores, and theirs are {', '.join(keys)}: the key of a record in Kafka is one "
            f"of them; use a pipeline for each"
        )
    if not isinstance(value, PlainValueSpec) or keys == [key_column]:
        return None
    if key_column is None:
        return (
            f"delete needs a column with the key of the record where values are {_TOLD[value.format]}: add key: {{format: "
            f"string, as: NAME}}, and name this column as the key of to_stores"
        )
    return (
        f"delete needs to_stores with 'key: {key_column}' where values are {_TOLD[value.format]}: that column holds the key of "
        f"the record, and {keys[0]!r} does not"
    )
