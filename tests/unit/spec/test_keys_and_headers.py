"""What may be written of keys and headers, which columns they give, and which names clash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebound.errors import InvalidSpecError
from lakebound.inspection.validation.expectation_files import own_columns
from lakebound.spec.input_columns import input_columns
from lakebound.spec.load import load_file
from lakebound.spec.pipeline import PipelineSpec

BODY: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "json", "schema": "id BIGINT, name STRING"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "sales.orders"}],
}
REGISTERED = {"format": "avro", "registry": "shop"}
OBJECT = {"format": "json", "schema": "a INT NOT NULL, `b c` STRUCT<d: DATE>"}


def columns(**changes: Any) -> dict[str, str]:
    spec = PipelineSpec.model_validate(BODY | changes)
    assert PipelineSpec.model_validate_json(spec.model_dump_json(by_alias=True)) == spec, "as orders hand it on"
    found = {one.name: one.type for one in input_columns(spec)}
    assert own_columns(spec) == {name: kind.partition("<")[0] for name, kind in found.items()} | {"_kafka": "STRUCT"}
    return found


VALUE = {"id": "BIGINT", "name": "STRING"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, VALUE),
        ({"key": {"format": "string"}}, {"key": "STRING", **VALUE}),
        ({"key": {"format": "bytes", "as": "k"}}, {"k": "BINARY", **VALUE}),
        ({"key": OBJECT}, {"key": "STRUCT", **VALUE}),
        ({"key": {**OBJECT, "as": "k"}}, {"k": "STRUCT", **VALUE}),
        ({"key": {**OBJECT, "columns": ["b c", "a"]}}, {"b c": "STRUCT", "a": "INT", **VALUE}),
        (
            {
                "key": {
                    "format": "json",
                    "json_schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
                    "columns": ["x"],
                }
            },
            {"x": "BIGINT", **VALUE},
        ),
        ({"value": {"format": "bytes"}}, {"key": "BINARY", "value": "BINARY"}),
        ({"value": {"format": "bytes"}, "key": {"format": "string", "as": "k"}}, {"k": "STRING", "value": "BINARY"}),
        ({"value": {"format": "string"}}, {"value": "STRING"}),
        (
            {
                "headers": [
                    {"name": "trace-id"},
                    {"name": "n", "type": "INT"},
                    {"name": "", "as": "e", "type": "BINARY"},
                    {"all": True},
                ]
            },
            {**VALUE, "trace-id": "STRING", "n": "INT", "e": "BINARY", "headers": "ARRAY<STRUCT<name: STRING, value: BINARY>>"},
        ),
    ],
)
def test_the_columns_are_those_of_key_value_and_headers(changes: dict[str, Any], expected: dict[str, str]) -> None:
    assert list(columns(**changes).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"key": {"format": "string", "as": "ID"}}, "key.as: value.schema gives a column id, too; give another name with as"),
        (
            {"key": {**OBJECT, "columns": ["a"]}, "headers": [{"name": "A"}]},
            "headers[0].name: key.columns[0] gives a column a, too",
        ),
        ({"headers": [{"name": "x", "as": "_Kafka"}]}, "headers[0].as: the column _kafka is reserved"),
        ({"headers": [{"name": "x"}, {"name": "x"}]}, "headers[1].name: headers[0].name gives a column x, too"),
        (
            {"value": {"format": "string"}, "key": {"format": "bytes", "as": "value"}},
            "key.as: value.format gives a column value",
        ),
        ({"key": {**OBJECT, "columns": ["z"]}}, "key: columns: z is not one of the columns of the schema: a, b c"),
        ({"key": {**OBJECT, "columns": ["a", "a"]}}, "key: columns: a column is named twice"),
        (
            {"key": {**OBJECT, "columns": ["a"], "as": "k"}},
            "key: give either as, for one column with the whole key, or columns",
        ),
        ({"key": {"format": "json"}}, "key.schema: is missing"),
        ({"key": {"format": "json", "schema": "a MONEY"}}, "key.schema: column a: MONEY is not a type"),
        ({"key": {"format": "string", "schema": "a INT"}}, "key.schema: unknown key here; it belongs under value"),
        ({"key": {"format": "xml"}}, "key.format: must be json, avro, protobuf, json_schema, string or bytes, not 'xml'"),
        ({"key": {"as": "k"}}, "key.format: is missing: json, avro, protobuf, json_schema, string or bytes"),
        ({"key": {"format": "avro"}}, "key: say where the schemas are"),
        ({"key": {**REGISTERED, "as": "k", "columns": ["a"]}}, "key: give either as, for one column with the whole key"),
        ({"key": {**REGISTERED, "columns": ["a", "a"]}}, "key: columns: a column is named twice"),
        (
            {"key": {**REGISTERED, "schema": "a INT", "columns": ["b"]}},
            "key: columns: b is not one of the columns",
        ),
        ({"key": {**REGISTERED, "as": "ID"}}, "key.as: value.schema gives a column id, too; give another name with as"),
        ({"key": {**REGISTERED, "columns": ["name"]}}, "key.columns[0]: value.schema gives a column name, too"),
        ({"key": {**REGISTERED, "as": "_kafka"}}, "key.as: the column _kafka is reserved"),
        (
            {"key": REGISTERED, "freshness": "real_time", "to_topics": [{"topic": "out"}], "tables": []},
            "key: format: avro cannot be decoded with freshness: real_time, where Python cannot run, and Spark's own decoder",
        ),
        ({"key": "string"}, "key: "),
        ({"headers": {"a": "STRING"}}, "headers: must be a list, not keys and values"),
        ({"headers": [{"all": True, "name": "x"}]}, "headers[0]: give either name, for one header, or all: true"),
        ({"headers": [{"as": "x"}]}, "headers[0]: give either name, for one header, or all: true"),
        ({"headers": [{"all": True, "type": "STRING"}]}, "headers[0]: type: the column of all headers is always ARRAY"),
        ({"headers": [{"name": ""}]}, "headers[0]: as: is missing; a header with an empty name"),
        ({"headers": [{"name": "x", "type": "DOUBLE"}]}, "headers[0].type: must be STRING, BINARY, BIGINT or INT"),
        (
            {"key": OBJECT, "freshness": "real_time", "to_topics": [{"topic": "out"}], "tables": []},
            "key: format: json cannot be decoded with freshness: real_time",
        ),
        ({"null_values": "row", "value": OBJECT}, "null_values: row gives a record without a value a row"),
    ],
)
def test_a_mistake_names_its_field(tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(BODY | changes))
    with pytest.raises(InvalidSpecError) as caught:
        load_file(file)
    assert f": {line}" in str(caught.value), caught.value


def test_the_columns_of_a_key_that_a_registry_has_are_not_known_here() -> None:
    spec = PipelineSpec.model_validate(BODY | {"key": REGISTERED})
    assert own_columns(spec) is None and spec.schema_evolution == "add_columns"
    known = columns(key={**REGISTERED, "schema": "a INT, b STRING", "columns": ["b"]})
    assert known == {"b": "STRING", **VALUE}


def test_names_that_only_spark_can_read_are_left_to_it() -> None:
    unclear = {"format": "json", "schema": "a INT DEFAULT 1"}
    spec = PipelineSpec.model_validate(BODY | {"value": unclear, "null_values": "row", "key": {"format": "string", "as": "a"}})
    assert spec.whole_key == ("a", "string")
