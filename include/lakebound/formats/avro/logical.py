"""Logical types: which there are, and on which types they stand. Pure.

One that does not go with its type is no error: Avro says that its type is then read as if it had none.
Source: https://avro.apache.org/docs/1.12.0/specification/#logical-types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lakebound.formats.avro.types import Logical

MOST_DIGITS = 38
"""Of a decimal in a table."""
_CARRIERS = {
    "big-decimal": ("bytes",),
    "date": ("int",),
    "decimal": ("bytes", "fixed"),
    "duration": ("fixed",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-nanos": ("long",),
    "time-micros": ("long",),
    "time-millis": ("int",),
    "timestamp-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
}
_SIZES = {"duration": 12, "uuid": 16}


def logical_of(spec: Mapping[str, Any], kind: str, size: int | None = None) -> Logical | None:
    """Return what a type stands for.

    Args:
        spec: The type in the schema.
        kind: Its name.
        size: Bytes, of a fixed type.
    """
    name = spec.get("logicalType")
    if not isinstance(name, str) or kind not in _CARRIERS.get(name, ()):
        return None
    if size is not None and size != _SIZES.get(name, size):
        return None
    return _decimal(spec, size) if name == "decimal" else Logical(name)


def _decimal(spec: Mapping[str, Any], size: int | None) -> Logical | None:
    precision, scale = _number(spec.get("precision")), _number(spec.get("scale", 0))
    if not 0 <= scale <= precision or precision == 0:
        return None
    if size is not None and precision > math.floor((8 * size - 1) * math.log10(2)):
        return None  # more digits than the bytes can hold
    return Logical("decimal", precision, scale)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
