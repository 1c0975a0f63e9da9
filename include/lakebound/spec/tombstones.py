"""What may become of records without a value: which pipelines can delete a key of their stores by them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lakebound.spec.to_stores import ToStoreSpec

NullValues = Literal["quarantine", "skip", "delete"]
DELETE: NullValues = "delete"
BYTES_KEY = "key"
"""The column that holds the key of Kafka's record, where values are bytes."""


def delete_problem(stores: Sequence[ToStoreSpec], *, of_bytes: bool) -> str | None:
    """Return why ``null_values: delete`` cannot be had; None where it can, as far as the YAML says.

    Args:
        stores: Those of the pipeline.
        of_bytes: Whether its values are bytes.
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
    if of_bytes and keys != [BYTES_KEY]:
        return (
            f"delete needs to_stores with 'key: {BYTES_KEY}' where values are bytes: that column holds the key of the record, "
            f"and {keys[0]!r} does not"
        )
    return None
