"""A JSON Schema as columns: what maps, and a clear word about what does not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakebound.spec.json_schema import UnmappedSchemaError, to_ddl
from lakebound.spec.value import JsonValueSpec

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An order",
    "type": "object",
    "required": ["id", "note"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "note": {"type": ["string", "null"], "maxLength": 100},
        "status": {"type": "string", "enum": ["new", "paid"]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "scan": {"type": "string", "contentEncoding": "base64"},
        "count": {"type": "integer", "format": "int32"},
        "total": {"type": "number"},
        "weight": {"type": "number", "format": "float"},
        "price": {"type": "number", "format": "decimal(12, 2)"},
        "is_paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"$ref": "#/$defs/address"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "odd `name`": {"type": "string"},
    },
    "$defs": {
        "address": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
        },
        "line": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}


def test_everything_that_maps() -> None:
    assert to_ddl(ORDER).split(", `") == [
        "`id` BIGINT NOT NULL",
        "note` STRING",
        "status` STRING",
        "at` TIMESTAMP",
        "day` DATE",
        "scan` BINARY",
        "count` INT",
        "total` DOUBLE",
        "weight` FLOAT",
        "price` DECIMAL(12, 2)",
        "is_paid` BOOLEAN",
        "tags` ARRAY<STRING>",
        "address` STRUCT<`city`: STRING",
        "lines`: ARRAY<STRUCT<`text`: STRING>>>",
        "labels` MAP<STRING, STRING>",
        "maybe` DOUBLE",
        "odd ``name``` STRING",
    ]


def one(part: Any, **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, **root}


@pytest.mark.parametrize(
    ("schema", "path", "reason"),
    [
        ({"type": "array"}, "the record", "must be an object with properties"),
        ({"type": "object", "properties": {}}, "the record", "must be an object with properties"),
        (one({"type": "string"}, required=["b"]), "the record", "requires b"),
        (one({"type": "string"}, allOf=[]), "the record", "allOf"),
        (one({}), "a", "must have a type"),
        (one(True), "a", "must have a type"),
        (one({"type": ["string", "integer"]}), "a", "may be string or integer"),
        (one({"type": "null"}), "a", "may be null"),
        (one({"type": "text"}), "a", "'text' is not a JSON Schema type"),
        (one({"oneOf": [{"type": "string"}, {"type": "number"}]}), "a", "may be one of 2 types"),
        (one({"type": "array"}), "a[]", "must have a type"),
        (one({"type": "array", "prefixItems": []}), "a", "prefixItems"),
        (one({"type": "object"}), "a", "is an object without properties"),
        (one({"type": "object", "additionalProperties": True}), "a", "is an object without properties"),
        (one({"type": "object", "properties": {"b": {}}}), "a.b", "must have a type"),
        (
            one({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "a",
            "a struct or a map",
        ),
        (one({"type": "number", "format": "decimal(40, 2)"}), "a", "precision of a decimal is 1 to 38"),
        (one({"type": "number", "format": "decimal(3, 5)"}), "a", "precision of a decimal is 1 to 38"),
        (one({"$ref": "other.json"}), "a", "is not in this schema"),
        (one({"$ref": "#/$defs/none"}), "a", "is not in this schema"),
        (one({"$ref": "#/$defs/t"}, **{"$defs": {"t": one({"$ref": "#/$defs/t"})}}), "a.a", "contains itself"),
        (one({"$ref": "#/$defs/t"}, **{"$defs": {"t": {"$ref": "#/$defs/t"}}}), "a", "contains itself"),
        ({"type": "object", "properties": {"a\nb": {"type": "string"}}}, "a\nb", "is not a valid column name"),
        (
            {"type": "object", "properties": {True: {"type": "string"}}},
            "the record",
            "the property True, whose name is not text",
        ),
        ({"type": "object", "properties": {2024: {}, "a": {}}}, "the record", "the property 2024, whose name is not text"),
        (one({"type": "object", "properties": {True: {"type": "string"}}}), "a", "whose name is not text: write it in quotes"),
        (one({"type": "string"}, required=[["a"]]), "the record", "required must be a list of names"),
        (one({"type": "string"}, required=[True]), "the record", "required must be a list of names"),
        (one({"type": "string"}, required="a"), "the record", "required must be a list of names"),
        (one({"type": "string"}, required=None), "the record", "required must be a list of names"),
    ],
)
def test_what_does_not_map_is_named(schema: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(UnmappedSchemaError) as caught:
        to_ddl(schema)
    assert str(caught.value).startswith(f"json_schema: {path}: ") and reason in str(caught.value)


def test_a_spec_takes_either_and_survives_being_sent_to_an_application() -> None:
    value = JsonValueSpec.model_validate({"format": "json", "json_schema": one({"type": "integer"}, required=["a"])})
    assert value.value_schema == "`a` BIGINT NOT NULL"
    assert JsonValueSpec.model_validate_json(value.model_dump_json(by_alias=True)) == value
    assert JsonValueSpec.model_validate({"format": "json", "schema": "a INT"}).json_schema is None
    for body in ({}, {"schema": "a INT", "json_schema": one({"type": "integer"})}, {"json_schema": one({})}):
        with pytest.raises(ValidationError):
            JsonValueSpec.model_validate({"format": "json", **body})
