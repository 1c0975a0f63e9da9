"""What is wrong with a record that is not one JSON object is said with the field and the place."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.formats.json.malformed import MOST_LEVELS, explain_malformed

CASES: dict[bytes, str] = {
    b'\xef\xbb\xbf{"a":1}': "the value begins with a byte order mark (UTF-8), which JSON has not: "
    "the producer must leave it out",
    b'\x00\x00\x00\x00\x07{"a":1}': "the value begins with the five bytes of Confluent's wire format (schema id 7): it was "
    "written with a schema registry, which value.format avro, protobuf and json_schema read, and json does not",
    b'{"a":1,"b":"x\ty"}': "b: character 14: a raw control character (U+0009) in a text; JSON writes it as \\u0009",
    b'{"a":{"b":NaN}}': "b: character 11: NaN is no JSON number",
    b'{"NaN":"NaN","c":-Infinity}': "c: character 18: -Infinity is no JSON number",
    b'{"a":1}{"a":2}': "a: character 8: the JSON value has ended, and something follows; a record holds one value",
    b'{"a":1,"b":"cut': "b: character 12: not well-formed JSON (unterminated string starting at)",
    b'{"a":1,"b":': "b: character 12: the text ends within the JSON value; it may have been cut",
    b'{"a":01}': "a: character 7: not well-formed JSON (expecting ',' delimiter)",
    b"[1]": "the value is an array, not a JSON object",
    b'"text"': "the value is a text, not a JSON object",
}


@pytest.mark.parametrize("value", CASES)
def test_the_place_and_the_kind_are_said(value: bytes) -> None:
    assert explain_malformed(value) == CASES[value]


def test_levels_are_counted_outside_of_texts() -> None:
    deep = MOST_LEVELS + 1
    assert f"lie {deep} levels deep" in (explain_malformed(b'{"a":' * deep + b"1" + b"}" * deep) or "")
    assert explain_malformed(json.dumps({"a": "{" * 2 * deep}).encode()) is None


def test_what_is_right_is_not_explained() -> None:
    assert explain_malformed(b'{"a":1}') is None
    assert explain_malformed(None) == "character 1: the text ends within the JSON value; it may have been cut"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"id": 1, "payload": json.dumps({f"key{number}": "value" for number in range(1300)})})[:-1] + ', "x": NULL}',
        '{"id": 1, "x": NULL, "payload": "' + '\\"' * 15_000,
        '{"id": 1, "x": NULL' + " " * 30_000,
        '{"id": 1, "x": NULL' + '"' * 30_000,
        '{"id": 1, "x": NULL' + ' "' * 15_000,
        '{"id": 1, "payload": "' + '\\"' * 15_000,
    ],
    ids=["JSON in a text", "cut", "blanks", "quotes", "quotes and blanks", "cut within"],
)
def test_the_time_grows_with_the_length_and_not_faster(text: str) -> None:
    began = time.process_time()
    told = explain_malformed(text.encode())
    assert told is not None and told.startswith(("x: ", "payload: ")) and "character" in told
    assert time.process_time() - began < 1


@given(st.binary(max_size=60) | st.text('{}[]":,NaN\\ \t1e+-', max_size=40).map(str.encode))
def test_any_bytes_are_explained_or_not_and_no_value_is_told(value: bytes) -> None:
    told = explain_malformed(value)
    assert told is None or (told.isprintable() and len(told) < 300)
