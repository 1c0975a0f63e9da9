"""A JSON Schema of records as the columns that they become, in Spark's DDL. Pure; imports no Spark.

Taken over is what says something about types (https://json-schema.org/draft/2020-12/json-schema-validation). Constraints
on values (``minimum``, ``pattern``, ``enum``, …) and ``required`` inside of a column are no types: they are left to
expectations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakebound.spec.ddl import quoted

_STRINGS = {"date-time": "TIMESTAMP", "date": "DATE"}
_INTEGERS = {"int32": "INT", "int64": "BIGINT"}
_NUMBERS = {"float": "FLOAT", "double": "DOUBLE"}
_DECIMAL = re.compile(r"^decimal\((\d{1,2}), ?(\d{1,2})\)$")
_MAX_PRECISION = 38
_ELSEWHERE = "is not in this schema; only references such as #/$defs/address are followed"
_COMBINING = ("allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas")


class UnmappedSchemaError(ValueError):
    """A JSON Schema, or a part of it, has no column type."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"json_schema: {path or 'the record'}: {reason}")


@dataclass(frozen=True)
class _Type:
    """A column type, and whether a value may be null."""

    ddl: str
    is_nullable: bool = False


def to_ddl(schema: Mapping[str, Any]) -> str:
    """Return the columns of records that the schema describes; a required property that may not be null is NOT NULL.

    Raises:
        UnmappedSchemaError: A part of it cannot be a column; it is named.
    """
    return _Converter(schema).columns()


class _Converter:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def columns(self) -> str:
        """Return the columns of the record itself."""
        record = self._resolved(self._root, "", ())
        properties = record.get("properties")
        if record.get("type", "object") != "object" or not isinstance(properties, Mapping) or not properties:
            raise UnmappedSchemaError("", "must be an object with properties")
        _check_words(record, "")
        _check_names(properties, "")
        required = _required(record)
        unknown = sorted(set(required) - set(properties))
        if unknown:
            raise UnmappedSchemaError("", f"requires {', '.join(unknown)}, but has no such properties")
        columns = []
        for name, part in properties.items():
            found = self._type(part, name, ())
            is_needed = name in required and not found.is_nullable
            columns.append(f"{_quoted(name, name)} {found.ddl}{' NOT NULL' if is_needed else ''}")
        return ", ".join(columns)

    def _type(self, part: Any, path: str, around: tuple[str, ...]) -> _Type:
        if not isinstance(part, Mapping):
            raise UnmappedSchemaError(path, "must have a type")
        if "$ref" in part:
            name = str(part["$ref"])
            return self._type(self._resolved(part, path, around), path, (*around, name))
        _check_words(part, path)
        for word in ("anyOf", "oneOf"):
            if word in part:
                return self._one_of(part[word], path, around)
        kinds = part.get("type")
        if isinstance(kinds, str):
            kinds = [kinds]
        if not isinstance(kinds, list) or not kinds:
            raise UnmappedSchemaError(path, "must have a type")
        others = [kind for kind in kinds if kind != "null"]
        if len(others) != 1:
            raise UnmappedSchemaError(path, f"may be {' or '.join(map(str, kinds))}; a column has one type (and null)")
        return _Type(self._of_kind(str(others[0]), part, path, around), "null" in kinds)

    def _one_of(self, parts: Any, path: str, around: tuple[str, ...]) -> _Type:
        given = list(parts) if isinstance(parts, list) else []
        others = [one for one in given if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if len(others) != 1:
            raise UnmappedSchemaError(path, f"may be one of {len(others)} types; a column has one type (and null)")
        found = self._type(others[0], path, around)
        return _Type(found.ddl, found.is_nullable or len(others) < len(given))

    def _of_kind(self, kind: str, part: Mapping[str, Any], path: str, around: tuple[str, ...]) -> str:
        form = part.get("format")
        if kind == "string":
            return "BINARY" if part.get("contentEncoding") == "base64" else _STRINGS.get(str(form), "STRING")
        if kind == "integer":
            return _INTEGERS.get(str(form), "BIGINT")
        if kind == "number":
            return _decimal(str(form), path) or _NUMBERS.get(str(form), "DOUBLE")
        if kind == "boolean":
            return "BOOLEAN"
        if kind == "array":
            return f"ARRAY<{self._type(part.get('items'), f'{path}[]', around).ddl}>"
        if kind == "object":
            return self._object(part, path, around)
        raise UnmappedSchemaError(path, f"{kind!r} is not a JSON Schema type")

    def _object(self, part: Mapping[str, Any], path: str, around: tuple[str, ...]) -> str:
        properties, others = part.get("properties"), part.get("additionalProperties")
        if isinstance(properties, Mapping) and properties:
            if isinstance(others, Mapping):
                raise UnmappedSchemaError(
                    path, "has both properties and typed additionalProperties; a column is either a struct or a map"
                )
            _check_names(properties, path)
            fields = [
                f"{_quoted(name, f'{path}.{name}')}: {self._type(one, f'{path}.{name}', around).ddl}"
                for name, one in properties.items()
            ]
            return f"STRUCT<{', '.join(fields)}>"
        if isinstance(others, Mapping):
            return f"MAP<STRING, {self._type(others, f'{path}.*', around).ddl}>"
        raise UnmappedSchemaError(path, "is an object without properties and without typed additionalProperties")

    def _resolved(self, part: Mapping[str, Any], path: str, around: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what a reference points to, in the same schema."""
        name = part.get("$ref")
        if name is None:
            return part
        if name in around:
            raise UnmappedSchemaError(path, f"{name} contains itself; a column type cannot be recursive")
        found: Any = self._root
        for word in _words(str(name), path):
            found = found.get(word) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise UnmappedSchemaError(path, f"{name} {_ELSEWHERE}")
        return self._resolved(found, path, (*around, str(name))) if "$ref" in found else found


def _words(reference: str, path: str) -> Iterator[str]:
    if not reference.startswith("#/"):
        raise UnmappedSchemaError(path, f"{reference} {_ELSEWHERE}")
    for word in reference[2:].split("/"):
        yield word.replace("~1", "/").replace("~0", "~")


def _check_words(part: Mapping[str, Any], path: str) -> None:
    found = [word for word in _COMBINING if word in part]
    if found:
        raise UnmappedSchemaError(path, f"{found[0]} is not supported, because it does not give one type")


def _check_names(properties: Mapping[Any, Any], path: str) -> None:
    """YAML reads ``on``, ``no`` and ``2024`` as a boolean or a number, unless they are quoted."""
    for name in properties:
        if not isinstance(name, str):
            raise UnmappedSchemaError(path, f"has the property {name!r}, whose name is not text: write it in quotes")


def _required(record: Mapping[str, Any]) -> list[str]:
    required = record.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise UnmappedSchemaError(
            "", "required must be a list of names; write a name in quotes if YAML does not read it as text"
        )
    return required


def _decimal(form: str, path: str) -> str | None:
    match = _DECIMAL.match(form)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _MAX_PRECISION or scale > precision:
        raise UnmappedSchemaError(
            path, f"{form}: the precision of a decimal is 1 to {_MAX_PRECISION}, and the scale is not larger than the precision"
        )
    return f"DECIMAL({precision}, {scale})"


def _quoted(name: str, path: str) -> str:
    if not name or any(not char.isprintable() for char in name):
        raise UnmappedSchemaError(path, "is not a valid column name")
    return quoted(name)
