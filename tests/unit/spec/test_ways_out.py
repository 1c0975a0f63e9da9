"""What is asked for and not there is refused with the nearest thing that works, and the pages that are named are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from lakebound.errors import InvalidSpecError
from lakebound.spec import ways_out
from lakebound.spec.load import load_file

REPOSITORY = Path(__file__).parents[3]
BODY = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "json", "schema": "order_id STRING"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "sales.orders"}],
}


def problem(tmp_path: Path, body: dict) -> str:
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(body))
    with pytest.raises(InvalidSpecError) as caught:
        load_file(file)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "field", "instead"),
    [
        (
            {"value": {"format": "avro"}},
            "value",
            "where the schemas are: registry: (a name in registries.yaml) or schema_file:",
        ),
        ({"value": {"format": "avro", "registry": "http://r"}}, "value.registry", "; it is a name in registries.yaml"),
        ({"warehouse": "s3://lake"}, "warehouse", "; it is a name in warehouses.yaml"),
        ({"headers": ["trace-id"]}, "headers[0]", "must be keys and values, not 'trace-id', such as {name: trace-id}"),
        ({"headers": ["a, b"]}, "headers[0]", "must be keys and values, not 'a, b', such as {name: \"a, b\"}"),
        ({"value": {"format": "arvo", "registry": "shop"}}, "value.format", "or bytes, not 'arvo'; did you mean 'avro'?"),
        ({"value": {"format": "csv"}}, "value.format", "or bytes, not 'csv'; CSV is not decoded"),
        ({"value": {"format": "json", "schema": "a INT", "registry": "shop"}}, "value.registry", "format: avro, protobuf"),
        ({"tables": [{"format": "delta", "name": "a.b", "mode": "upsert"}]}, "tables[0].mode", "to_stores"),
        ({"tables": [{"format": "delta", "name": "a.b", "key": ["id"]}]}, "tables[0].key", "keys-and-headers.md"),
        ({"include_headers": True}, "include_headers", "headers: [{name: HEADER, as: NAME}]"),
        ({"topics_matching": "sales.*"}, "topics_matching", "lakebound new PIPELINE --from-topic TOPIC"),
        ({"watermark": "1h"}, "watermark", "to_stores: counters"),
        ({"deduplicate": ["id"]}, "deduplicate", "complete-hours.md"),
        ({"tables": [], "to_stores": []}, "tables", "name a table here, or a topic in to_topics"),
    ],
)
def test_a_refusal_names_the_nearest_thing_that_works(tmp_path: Path, changes: dict, field: str, instead: str) -> None:
    told = problem(tmp_path, {**BODY, **changes})
    assert re.search(rf"orders\.yaml:\d+: {re.escape(field)}: ", told) and instead in told, told


def test_a_format_of_which_nothing_is_known_is_refused_in_short(tmp_path: Path) -> None:
    assert problem(tmp_path, {**BODY, "value": {"format": "morse"}}).endswith(
        "value.format: must be json, avro, protobuf, json_schema, string or bytes, not 'morse'"
    )


def test_every_page_that_is_named_is_there() -> None:
    text = Path(ways_out.__file__).read_text()
    pages = set(re.findall(r"docs/[\w/-]+\.md", text))
    assert len(pages) >= 3 and all((REPOSITORY / page).is_file() for page in pages)
