"""What a new pipeline proposes for keys and headers can be taken as it stands, and lands what the sample has."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lakebound.spec.draft.files import PLACEHOLDER, Beginning, pipeline_yaml
from lakebound.spec.draft.key_and_headers import MOST_HEADERS, key_and_headers
from lakebound.spec.pipeline import PipelineSpec

CONNECTION = "bootstrap_servers: kafka:9092"


def uncommented(lines: list[str]) -> PipelineSpec:
    """Return the pipeline of a new file in which a person has removed the # of the proposal."""
    text = pipeline_yaml(Beginning("orders", "orders", CONNECTION, PLACEHOLDER, beside_values=lines))
    assert PipelineSpec.model_validate(yaml.safe_load(text)).key is None, "a proposal is only a comment"
    for line in lines:
        assert f"\n# {line}\n" in text
        text = text.replace(f"\n# {line}\n", f"\n{line}\n")
    return PipelineSpec.model_validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([b"a", None, "ä".encode()], {"format": "string", "as": "key"}),
        ([b"a", b"\xff"], {"format": "bytes", "as": "key"}),
        ([b"\x00\x00\x00\x00\x07abc"], {"format": "bytes", "as": "key"}),
        ([b'{"id": 1}', b'{"id": 2, "a-b": "x"}'], {"format": "json", "schema": "id BIGINT, `a-b` STRING", "as": "key"}),
        ([b'{"id": 1}', b"x"], {"format": "string", "as": "key"}),
        ([None], None),
    ],
)
def test_the_key_is_proposed_as_the_sample_has_it(keys: list[bytes | None], expected: dict[str, Any] | None) -> None:
    found = uncommented(key_and_headers(keys, [None] * len(keys), ["id", "at"])).key
    assert (None if found is None else found.model_dump(by_alias=True, exclude_none=True)) == expected


def test_headers_are_proposed_by_name_and_names_that_are_taken_get_others() -> None:
    headers = [[("trace-id", b"a"), ("AT", b"x"), ("", b"1")], [("trace-id", b"\xff"), ("_kafka", None), ("on", b"1")], None]
    spec = uncommented(key_and_headers([b"k"] * 3, headers, ["id", "at", "key"]))
    assert spec.whole_key == ("key_of_record", "string")
    assert {(one.name, one.column, one.ddl) for one in spec.headers} == {
        ("trace-id", "trace-id", "BINARY"),
        ("AT", "AT_of_record", "STRING"),
        ("", "nameless", "STRING"),
        ("_kafka", "_kafka_of_record", "STRING"),
        ("on", "on", "STRING"),
    }


def test_of_very_many_headers_the_rest_is_proposed_as_an_array() -> None:
    spec = uncommented(key_and_headers([], [[(f"x{number}\n'", b"1") for number in range(1_000)]], []))
    assert len(spec.headers) == MOST_HEADERS + 1 and spec.headers[-1].all


def test_without_keys_and_headers_nothing_is_proposed() -> None:
    assert key_and_headers([None], [None], []) == [] == key_and_headers([], [()], [])


def test_a_key_whose_schema_a_registry_has_is_proposed_with_it() -> None:
    fields = {"format": "avro", "registry": "company", "subject": "on"}
    found = uncommented(key_and_headers([b"\x00\x00\x00\x00\x07abc"], [None], ["key"], fields)).key
    assert found is not None
    written = found.model_dump(by_alias=True, exclude_defaults=True)
    assert written == {**fields, "as": "key_of_record"}
