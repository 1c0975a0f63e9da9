"""Columns of Kafka Connect's JSON with schema and payload: each record says its own types. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakebound.formats.same_names import as_compared
from lakebound.spec.draft.inference import Column, as_object, ddl_name, unfit_name

_TYPES = {
    "boolean": "BOOLEAN",
    "bytes": "BINARY",
    "double": "DOUBLE",
    "float": "FLOAT",
    "int16": "INT",
    "int32": "INT",
    "int64": "BIGINT",
    "int8": "INT",
    "string": "STRING",
}
_CONNECTS = "org.apache.kafka.connect.data."
_NAMED = {f"{_CONNECTS}Date": "DATE", f"{_CONNECTS}Time": "STRING", f"{_CONNECTS}Timestamp": "TIMESTAMP"}
_MOST_DEEP = 20
_MOST_PRECISION = 38


def connect_columns(values: Sequence[bytes | None]) -> tuple[Column, ...]:
    """Return the columns of a sample's payloads; none where most of its objects are not Kafka Connect's, or have no schema.

    Args:
        values: The bytes of sampled records.
    """
    bodies = [body for body in map(as_object, values) if body is not None]
    schemas = [body["schema"] for body in bodies if body.keys() == {"schema", "payload"} and isinstance(body["schema"], dict)]
    if len(schemas) * 2 <= len(bodies):
        return ()
    found: dict[str, Column] = {}
    counts: dict[str, int] = {}
    for schema in schemas:
        for one in _fields(schema):
            name = one["field"]
            kind = _type(one, 1)
            if kind is None or unfit_name(name, is_top=True) is not None:
                continue
            is_required = one.get("optional") is not True
            known = found.get(as_compared(name))
            counts[as_compared(name)] = counts.get(as_compared(name), 0) + 1
            found[as_compared(name)] = Column(name, kind, is_required and (known is None or known.is_required))
    return tuple(Column(one.name, one.type, one.is_required and counts[key] == len(schemas)) for key, one in found.items())


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = schema.get("fields")
    return (
        [one for one in fields if isinstance(one, dict) and isinstance(one.get("field"), str)]
        if isinstance(fields, list)
        else []
    )


def _type(schema: Any, depth: int) -> str | None:
    """Return the type of a column, as Spark's DDL; None where there is none."""
    if not isinstance(schema, dict) or depth > _MOST_DEEP:
        return None
    written, name = str(schema.get("type")), schema.get("name")
    if written == "bytes" and name == f"{_CONNECTS}Decimal":
        parameters = schema.get("parameters")
        scale = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
        return f"DECIMAL({_MOST_PRECISION},{scale})" if scale.isdigit() and int(scale) <= _MOST_PRECISION else "STRING"
    if name in _NAMED:
        return _NAMED[str(name)]
    if written == "struct":
        inside = {one["field"]: _type(one, depth + 1) for one in _fields(schema) if not unfit_name(one["field"], is_top=False)}
        told = [f"{ddl_name(field)}: {kind}" for field, kind in inside.items() if kind is not None]
        return f"STRUCT<{', '.join(told)}>" if told else None
    if written == "array":
        items = _type(schema.get("items"), depth + 1)
        return None if items is None else f"ARRAY<{items}>"
    if written == "map":
        keys, inner = _type(schema.get("keys"), depth + 1), _type(schema.get("values"), depth + 1)
        return f"MAP<STRING, {inner}>" if keys == "STRING" and inner is not None else None
    return _TYPES.get(written)
