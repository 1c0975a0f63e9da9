"""Delta's column mapping: the columns of a table, each with the name that it has in the files. Pure.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#column-mapping.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakebound.tables.misread import Column

MAPPING_MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"


def is_mapped(properties: Mapping[str, str | None]) -> bool:
    """Return whether columns have other names in a table's files than in its metadata, or may have."""
    return str(properties.get(MAPPING_MODE) or "none").strip().lower() != "none"


def columns_of(schema_json: str, properties: Mapping[str, str | None]) -> tuple[Column, ...]:
    """Return a table's columns, each with its name in the files as its key.

    Args:
        schema_json: As the log has them.
        properties: Of the same metadata.
    """
    return _fields(json.loads(schema_json), by_physical_name=is_mapped(properties))


def _fields(struct: Mapping[str, Any], *, by_physical_name: bool) -> tuple[Column, ...]:
    found = []
    for one in struct["fields"]:
        physical = (one.get("metadata") or {}).get(PHYSICAL_NAME, one["name"]) if by_physical_name else one["name"]
        found.append(Column(one["name"], physical, _inside(one["type"], by_physical_name=by_physical_name)))
    return tuple(found)


def _inside(kind: Any, *, by_physical_name: bool) -> tuple[Column, ...]:
    """Return what is in a column: Parquet has the same names for what is in a list or a map, whatever the mapping."""
    if not isinstance(kind, dict):
        return ()
    if kind["type"] == "struct":
        return _fields(kind, by_physical_name=by_physical_name)
    inner = {"element": "elementType"} if kind["type"] == "array" else {"key": "keyType", "value": "valueType"}
    return tuple(
        Column(name, name, _inside(kind[place], by_physical_name=by_physical_name))
        for name, place in inner.items()
        if place in kind
    )
