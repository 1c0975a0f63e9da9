"""A topic of Kafka Connect's JSON with schema and payload becomes a pipeline with the columns of the payload."""

from __future__ import annotations

import json
from typing import Any

import yaml

from lakebound.spec.draft.connect import connect_columns
from lakebound.spec.draft.files import Beginning, pipeline_yaml
from lakebound.spec.draft.inference import Inferred
from lakebound.spec.draft.unknown_fields import unknown_fields
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import real_time_problem

CONNECTS = "org.apache.kafka.connect.data."
FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "amount", "type": "bytes", "name": f"{CONNECTS}Decimal", "parameters": {"scale": "2"}, "optional": True},
    {"field": "day", "type": "int32", "name": f"{CONNECTS}Date", "optional": True},
    {"field": "at", "type": "int64", "name": f"{CONNECTS}Timestamp", "optional": True},
    {"field": "tags", "type": "array", "items": {"type": "string"}, "optional": True},
    {"field": "codes", "type": "map", "keys": {"type": "string"}, "values": {"type": "int16"}, "optional": True},
    {"field": "odd", "type": "map", "keys": {"type": "int32"}, "values": {"type": "int16"}, "optional": True},
    {"field": "a b", "type": "string", "optional": True},
    {"field": "place", "type": "struct", "fields": [{"field": "zip", "type": "string"}], "optional": True},
]


def value(payload: dict[str, Any], fields: list[dict[str, Any]] = FIELDS) -> bytes:
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def test_the_columns_are_those_of_the_records_own_schemas() -> None:
    found = connect_columns([value({"id": 1}), value({"id": 2}, FIELDS[:2]), None, b"{}"])
    assert [(one.name, one.type, one.is_required) for one in found] == [
        ("id", "BIGINT", True),
        ("amount", "DECIMAL(38,2)", False),
        ("day", "DATE", False),
        ("at", "TIMESTAMP", False),
        ("tags", "ARRAY<STRING>", False),
        ("codes", "MAP<STRING, INT>", False),
        ("place", "STRUCT<zip: STRING>", False),
    ]
    new = Beginning("orders", "orders", "bootstrap_servers: k:1", Inferred(found, 3, 3), is_connects=True)
    spec = PipelineSpec.model_validate(yaml.safe_load(pipeline_yaml(new)))
    assert spec.value.format == "json" and spec.value.envelope == "connect"
    assert [one.path for one in unknown_fields([value({"id": 1, "more": 2})], spec.value)] == ["more"]


def test_what_is_not_connects_has_no_such_columns() -> None:
    assert connect_columns([value({"id": 1}), b'{"id": 1}', b'{"id": 2}']) == ()
    assert connect_columns([b'{"schema": null, "payload": {}}', b'{"schema": 1, "payload": 2, "x": 3}']) == ()
    assert connect_columns([b'{"schema": {"fields": 5}, "payload": {}}']) == ()


def test_real_time_refuses_the_envelope_by_name() -> None:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "k:1"},
        "value": {"format": "json", "schema": "id BIGINT", "envelope": "connect"},
        "freshness": "real_time",
        "to_topics": [{"topic": "out"}],
    }
    try:
        problem = real_time_problem(PipelineSpec.model_validate(body))
    except ValueError as exc:
        problem = (("freshness",), str(exc))
    assert problem is not None and "envelope of connect" in problem[1]
