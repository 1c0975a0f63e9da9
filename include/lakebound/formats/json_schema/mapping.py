"""A JSON Schema of records as the columns that they become. Pure.

Taken over is what says something about types (https://json-schema.org/draft/2020-12/json-schema-validation). Constraints
on values (``minimum``, ``pattern``, ``enum``, …) and ``required`` inside of a column are no types: they are left to
expectations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lakebound.formats.json_schema.documents import Documents, Place
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import UnreadableSchemaError

MOST_COLUMNS = 5_000
"""Of a record with all that lies inside of it: a short schema can have billions."""
_MOST_CHARACTERS = 2_000_000
"""Of the names of all columns."""
_DEEPEST = 100
OF_TYPES: Mapping[tuple[str, str | None], pa.DataType] = MappingProxyType(
    {
        ("string", None): pa.string(),
        ("string", "date-time"): pa.timestamp("us", tz="UTC"),
        ("string", "date"): pa.date32(),
        ("string", "base64"): pa.binary(),
        ("integer", None): pa.int64(),
        ("integer", "int64"): pa.int64(),
        ("integer", "int32"): pa.int32(),
        ("number", None): pa.float64(),
        ("number", "double"): pa.float64(),
        ("number", "float"): pa.float32(),
        ("boolean", None): pa.bool_(),
    }
)
"""Columns of values that have none inside, by type and format; ``base64`` is a ``contentEncoding``."""
REFUSED_WORDS = ("allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas")
_DECIMAL = re.compile(r"^decimal\((\d{1,2}), ?(\d{1,2})\)$")
_MOST_DIGITS = 38


@dataclass(frozen=True)
class _Type:
    """A column type, and whether a value may be null."""

    kind: pa.DataType
    is_nullable: bool = False


@dataclass(frozen=True)
class _Around:
    """What lies around a part.

    Attributes:
        document: Name of the document that it is in.
        places: To which the references around it point.
        levels: How many types are around it.
    """

    document: str = ""
    places: frozenset[Place] = frozenset()
    levels: int = 0


def record_of(documents: Documents) -> Mapping[str, Any]:
    """Return the part of a schema that describes the record.

    Raises:
        UnreadableSchemaError: A reference points to nothing.
    """
    return documents.resolved(documents.root, "", "")[0]


def columns_of_record(documents: Documents, only: Collection[str] | None = None) -> pa.Schema:
    """Return the columns of records; a required property that may not be null is not nullable.

    Args:
        documents: Their schema.
        only: Names of the properties that are needed, in any case; None: all.

    Raises:
        UnreadableSchemaError: A part of it cannot be a column; it is named.
    """
    return _Mapping(documents).columns(only)


class _Mapping:
    """Maps one record."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._count = self._characters = 0

    def columns(self, only: Collection[str] | None) -> pa.Schema:
        """Return the columns of the record itself."""
        record, document, places = self._documents.resolved(self._documents.root, "", "")
        properties = record.get("properties")
        if record.get("type", "object") != "object" or not isinstance(properties, Mapping) or not properties:
            raise UnreadableSchemaError("", "must be an object with properties")
        _check_words(record, "")
        _check_names(properties, "")
        required = _required(record)
        unknown = sorted(set(required) - set(properties))
        if unknown:
            raise UnreadableSchemaError("", f"requires {', '.join(unknown)}, but has no such properties")
        needed, around, columns = frozenset(required), _Around(document, frozenset(places)), []
        wanted = None if only is None else {as_compared(name) for name in only}
        for name, part in properties.items():
            if wanted is None or as_compared(name) in wanted:
                found = self._type(part, name, around)
                columns.append(pa.field(self._name(name, name), found.kind, found.is_nullable or name not in needed))
        return pa.schema(columns)

    def _type(self, part: Any, path: str, around: _Around) -> _Type:
        self._count += 1
        if self._count > MOST_COLUMNS:
            raise UnreadableSchemaError(path, f"a record has more than {MOST_COLUMNS:,} columns")
        if around.levels >= _DEEPEST:
            raise UnreadableSchemaError(path.partition(".")[0], f"has more than {_DEEPEST} types inside of each other")
        if not isinstance(part, Mapping):
            raise UnreadableSchemaError(path, "must have a type")
        name = part.get("$ref")
        part, document, places = self._documents.resolved(part, around.document, path)
        if not around.places.isdisjoint(places):
            raise UnreadableSchemaError(path, f"{name} contains itself; a column type cannot be recursive")
        around = _Around(document, around.places.union(places), around.levels + 1)
        _check_words(part, path)
        for word in ("anyOf", "oneOf"):
            if word in part:
                return self._one_of(part[word], path, around)
        kinds = part.get("type")
        if isinstance(kinds, str):
            kinds = [kinds]
        if not isinstance(kinds, list) or not kinds:
            raise UnreadableSchemaError(path, "must have a type")
        others = [kind for kind in kinds if kind != "null"]
        if len(others) != 1:
            raise UnreadableSchemaError(path, f"may be {' or '.join(map(str, kinds))}; a column has one type (and null)")
        return _Type(self._of_kind(str(others[0]), part, path, around), "null" in kinds)

    def _one_of(self, parts: Any, path: str, around: _Around) -> _Type:
        given = list(parts) if isinstance(parts, list) else []
        others = [one for one in given if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if len(others) != 1:
            raise UnreadableSchemaError(path, f"may be one of {len(others)} types; a column has one type (and null)")
        found = self._type(others[0], path, around)
        return _Type(found.kind, found.is_nullable or len(others) < len(given))

    def _of_kind(self, kind: str, part: Mapping[str, Any], path: str, around: _Around) -> pa.DataType:
        form = str(part.get("format"))
        if kind == "array":
            return pa.list_(pa.field("element", self._type(part.get("items"), f"{path}[]", around).kind))
        if kind == "object":
            return self._object(part, path, around)
        if kind == "string" and part.get("contentEncoding") == "base64":
            form = "base64"
        elif kind == "string" and form == "base64":
            form = ""
        simple = OF_TYPES.get((kind, None))
        if simple is None:
            raise UnreadableSchemaError(path, f"{kind!r} is not a JSON Schema type")
        decimal = _decimal(form, path) if kind == "number" else None
        return OF_TYPES.get((kind, form), simple) if decimal is None else decimal

    def _object(self, part: Mapping[str, Any], path: str, around: _Around) -> pa.DataType:
        properties, others = part.get("properties"), part.get("additionalProperties")
        if isinstance(properties, Mapping) and properties:
            if isinstance(others, Mapping):
                raise UnreadableSchemaError(
                    path, "has both properties and typed additionalProperties; a column is either a struct or a map"
                )
            _check_names(properties, path)
            return pa.struct(
                [
                    pa.field(self._name(name, f"{path}.{name}"), self._type(one, f"{path}.{name}", around).kind)
                    for name, one in properties.items()
                ]
            )
        if isinstance(others, Mapping):
            return pa.map_(pa.string(), self._type(others, f"{path}.*", around).kind)
        raise UnreadableSchemaError(path, "is an object without properties and without typed additionalProperties")

    def _name(self, name: str, path: str) -> str:
        if not name or any(not char.isprintable() for char in name):
            raise UnreadableSchemaError(path, "is not a valid column name")
        self._characters += len(name)
        if self._characters > _MOST_CHARACTERS:
            raise UnreadableSchemaError("", f"the names of all columns have more than {_MOST_CHARACTERS:,} characters")
        return name


def _check_words(part: Mapping[str, Any], path: str) -> None:
    found = [word for word in REFUSED_WORDS if word in part]
    if found:
        raise UnreadableSchemaError(path, f"{found[0]} is not supported, because it does not give one type")


def _check_names(properties: Mapping[Any, Any], path: str) -> None:
    """YAML reads ``on``, ``no`` and ``2024`` as a boolean or a number, unless they are quoted."""
    for name in properties:
        if not isinstance(name, str):
            raise UnreadableSchemaError(path, f"has the property {name!r}, whose name is not text: write it in quotes")


def _required(record: Mapping[str, Any]) -> list[str]:
    required = record.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise UnreadableSchemaError(
            "", "required must be a list of names; write a name in quotes if YAML does not read it as text"
        )
    return required


def _decimal(form: str, path: str) -> pa.DataType | None:
    match = _DECIMAL.match(form)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        raise UnreadableSchemaError(
            path, f"{form}: the precision of a decimal is 1 to {_MOST_DIGITS}, and the scale is not larger than the precision"
        )
    return pa.decimal128(precision, scale)
