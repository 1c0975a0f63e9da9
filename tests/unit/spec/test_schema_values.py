"""How YAML names the schema of values: in one place, and read back as the application is told it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import SchemaValueSpec

BODY = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "sales.orders"}],
}
RIGHT: list[dict[str, Any]] = [
    {"registry": "shop"},
    {"registry": "shop", "subject": "all-orders"},
    {"registry": "shop", "subject_strategy": "record_name", "record": "shop.Order"},
    {"registry": "shop", "schema": "id BIGINT NOT NULL"},
    {"schema_file": "shop/order.avsc"},
    {"schema_file": "order.avsc", "record": "shop.Order", "schema": "id BIGINT"},
]


def spec(**value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**BODY, "value": {"format": "avro", **value}})


@pytest.mark.parametrize("kind", ["avro", "protobuf", "json_schema"])
@pytest.mark.parametrize("value", RIGHT)
def test_an_application_reads_what_the_author_wrote(kind: str, value: dict[str, Any]) -> None:
    wanted = spec(**{**value, "format": kind})
    assert PipelineSpec.model_validate_json(wanted.model_dump_json(by_alias=True)) == wanted
    assert isinstance(wanted.value, SchemaValueSpec)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "say where the schemas are"),
        ({"registry": "shop", "schema_file": "a.avsc"}, "either registry or schema_file, not both"),
        ({"schema_file": "a.avsc", "subject": "orders"}, "subject: only a registry"),
        ({"schema_file": "a.avsc", "subject_strategy": "record_name", "record": "a"}, "subject_strategy: only a registry"),
        ({"schema_file": "../a.avsc"}, "folder 'schemas'"),
        ({"schema_file": "/etc/passwd"}, "folder 'schemas'"),
        ({"registry": "shop", "subject_strategy": "topic_record_name"}, "record: is missing"),
        ({"registry": "shop", "subject": "a", "subject_strategy": "record_name", "record": "a"}, "either subject or"),
        ({"registry": "shop", "schema": "id HUGEINT"}, "HUGEINT"),
    ],
)
def test_what_says_two_things_is_refused(value: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        spec(**value)


def test_the_subject_is_named_as_the_producers_name_it() -> None:
    named = [
        ({}, "orders-value", "orders-key"),
        ({"subject": "all"}, "all", "all"),
        ({"subject_strategy": "record_name", "record": "shop.Order"}, "shop.Order", "shop.Order"),
        ({"subject_strategy": "topic_record_name", "record": "shop.Order"}, "orders-shop.Order", "orders-shop.Order"),
    ]
    for changes, of_value, of_key in named:
        key = {"format": "avro", "registry": "shop", **changes}
        both = PipelineSpec.model_validate({**BODY, "value": {"format": "json", "schema": "v INT"}, "key": key})
        read_as = spec(registry="shop", **changes).schema_sources | both.schema_sources
        assert {part: one.subject_of("orders") for part, one in read_as.items()} == {"value": of_value, "key": of_key}


def test_real_time_is_refused_with_a_way_out() -> None:
    with pytest.raises(ValidationError, match="use 0ms"):
        PipelineSpec.model_validate(
            {
                **BODY,
                "value": {"format": "avro", "registry": "shop"},
                "freshness": "real_time",
                "tables": [],
                "to_topics": [{"topic": "clean"}],
            }
        )
