"""What the columns of a record of JSON take. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebound.formats import room


def widest_item(kind: pa.DataType) -> int:
    """Return the bytes of the widest item of the lists and maps inside of a type; 0 where there are none."""
    if pa.types.is_struct(kind):
        return max((widest_item(field.type) for field in kind.fields), default=0)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        inside = kind.item_type if pa.types.is_map(kind) else kind.value_type
        return max(room.value_bytes(inside), widest_item(inside))
    return 0


def may_be_wide(value: bytes, widest: int) -> bool:
    """Whether a record may take more than it may: as if all its objects and nulls were the widest item."""
    most = max(room.PER_BYTE * len(value), room.LEAST_BYTES)
    return widest * len(value) > most and widest * (value.count(b"{") + value.count(b"null")) > most


def may_be_much(values: Sequence[bytes | None], widest: int) -> bool:
    """Whether records may take more together than what is decoded at once: as if all objects and nulls were the widest item."""
    if not widest:
        return False
    held = [value for value in values if value is not None]
    if len(held) < 2 or widest * sum(map(len, held)) <= room.MOST_AT_ONCE_BYTES:
        return False
    return widest * sum(value.count(b"{") + value.count(b"null") for value in held) > room.MOST_AT_ONCE_BYTES


def is_too_large(values: Mapping[str, Any], kind: pa.StructType, length: int) -> bool:
    """Whether a record takes more than it may.

    Args:
        values: That were read.
        kind: Of all of them.
        length: Bytes of the record.
    """
    most = max(room.PER_BYTE * length, room.LEAST_BYTES)
    return _taken(values, kind, most) > most


def _taken(value: Any, kind: pa.DataType, most: int) -> int:
    """Return the bytes of the items inside of a value; not all of them where they are more than the most."""
    if value is None or not widest_item(kind):
        return 0
    if pa.types.is_struct(kind):
        return sum(_taken(value.get(field.name), field.type, most) for field in kind.fields)
    inside = kind.item_type if pa.types.is_map(kind) else kind.value_type
    found = len(value) * room.value_bytes(inside)
    if found > most or not widest_item(inside):
        return found
    for one in value:
        found += _taken(one[1] if pa.types.is_map(kind) else one, inside, most)
        if found > most:
            break
    return found
