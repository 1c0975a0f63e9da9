"""Whole records: which are one JSON object, which fields count, and that nothing depends on sizes or on neighbours."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pyarrow as pa
import pytest
from tests.support.streams.long_form import examples
from tests.support.tables.json_texts import mutations

from lakebound.formats.contract import Decoded, Problem, Records
from lakebound.formats.json.malformed import MOST_LEVELS
from lakebound.formats.kinds import JsonFormat, ValueFormat, decoder_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("amount", pa.decimal128(5, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("labels", pa.map_(pa.string(), pa.string())),
    ]
)
JSON = JsonFormat(SCHEMA)


def decode(form: ValueFormat, *values: bytes | None) -> Decoded:
    return decoder_of(form).decode(Records([b"k"] * len(values), values))


def fate(value: bytes | None, form: ValueFormat = JSON) -> Any:
    """The record's fields that are not null, or its reason."""
    found = decode(form, value)
    if found.problems:
        assert found.problems[0].detail
        return found.problems[0].reason
    return {name: column[0].as_py() for name, column in found.columns.items() if column[0].is_valid}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null_value"),
        (b"", "empty_value"),
        (b"   ", "not_an_object"),
        (b"null", "not_an_object"),
        (b'[{"id":"a"}]', "not_an_object"),
        (b'\xef\xbb\xbf{"id":"a"}', "not_an_object"),
        (b'\x00\x00\x00\x00\x07{"id":"a"}', "not_an_object"),
        (b'{"id":"a"', "malformed_json"),
        (b'{"id":"a"}]', "malformed_json"),
        (b'{"id":"a"}{"id":"b"}', "malformed_json"),
        (b'{"id":"a","x":NaN}', "malformed_json"),
        (b'{"id":"a","x":"\x01"}', "malformed_json"),
        (b'{"id":"a",}', "malformed_json"),
        (b'{"id":"\xff"}', "not_utf8"),
        (b'{"id":"a","x":"\xff"}', "not_utf8"),
        (b'{"id":"\\ud800"}', "not_utf8"),
        (b'{"id":"a","x":{"\\udc00":1}}', "not_utf8"),
        (b'{"n":1}', "missing_field"),
        (b'{"id":null}', "missing_field"),
        (b'{"id":"a","n":"x"}', "does_not_fit"),
        (b'{"n":"x"}', "does_not_fit"),
        (b'{"id":"a","labels":{"a":"1","\\u0061":"2"}}', "does_not_fit"),
        (b"{'id':'a','n':'x'}", "does_not_fit"),
    ],
)
def test_a_record_that_cannot_land_has_a_reason(value: bytes | None, reason: str) -> None:
    assert fate(value) == reason


def test_of_a_field_that_comes_twice_the_last_value_counts() -> None:
    assert fate(b'{"id":"a","id":"b","n":"x","n":1,"amount":1e9,"amount":1}')["n"] == 1
    assert fate(b'{"id":"a","n":1,"n":"x"}') == "does_not_fit"
    assert fate(b'{"id":"a","at":"12h","\\u0061t":null}') == {"id": "a"}
    assert fate(b'{"id":"a","labels":{"a":"1","a":"2"},"labels":{}}') == {"id": "a", "labels": []}


def test_no_size_keeps_a_record_from_landing() -> None:
    long = "x" * 21_000_000
    assert fate(b'{"id":"%s"}' % long.encode()) == {"id": long}
    assert fate(b'{"id":"a","%s":1}' % (b"n" * 60_000)) == {"id": "a"}
    assert fate(b'{"id":"a","x":%s}' % (b"1" * 5_000)) == {"id": "a"}
    assert fate(b'{"id":%s}' % (b"1" * 5_000)) == {"id": "1" * 5_000}
    assert fate(b'{"id":"a","n":%s}' % (b"1" * 100_000)) == "does_not_fit"


def test_levels_are_bounded_and_the_stack_is_not_what_bounds_them() -> None:
    def deep(levels: int) -> bytes:
        return b'{"id":"a","x":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    def below(calls: int) -> Any:
        return below(calls - 1) if calls else fate(deep(MOST_LEVELS))

    assert below(300) == {"id": "a"}
    assert fate(deep(MOST_LEVELS + 1)) == "malformed_json"
    assert fate(deep(100_000)) == "malformed_json"
    assert fate(b'{"id":"%s"}' % (b"[" * 2_000)) == {"id": "[" * 2_000}


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 20 * MOST_LEVELS])
def test_levels_are_bounded_in_a_record_with_single_quotes(levels: int) -> None:
    def nested(inside: bytes, depth: int) -> bytes:
        return inside.replace(b"@", b"[" * (depth - 1) + b"]" * (depth - 1))

    closing = b"{'id':'a','x':'%s','y':@}" % (b"]" * levels)
    quoted = b"""{'id':'a','x"':@,'y"':1}"""
    for form in (closing, quoted):
        assert fate(nested(form, levels)) == "malformed_json"
        assert fate(nested(form, MOST_LEVELS)) == {"id": "a"}
    assert fate(b"{'id':'%s'}" % (b"[" * levels)) == {"id": "[" * levels}


@pytest.mark.parametrize(
    "value",
    [
        b"""{'id':"%s""" % (b'\\"' * 300_000),
        b"{'id':'%s" % (b"\\'" * 300_000),
        b'{"id":"a","f":1.00000005960464477539062500%s1}' % (b"0" * 1_000_000),
        b'{"id":"a","f":0.1%s,"n":"x"}' % (b"1" * 1_000_000),
    ],
    ids=["cut", "cut in single quotes", "between two FLOATs", "long FLOAT of a bad record"],
)
def test_a_long_record_takes_no_time_by_the_square_of_its_length(value: bytes) -> None:
    form = JsonFormat(pa.schema([*SCHEMA, pa.field("f", pa.float32())]))
    began = time.process_time()
    found = fate(value, form)
    assert time.process_time() - began < 5, "seconds"
    assert found in ("malformed_json", "does_not_fit", {"id": "a", "f": 1.0000001192092896})


@pytest.mark.parametrize("text", ["it's", 'a "b"', "\\", "\\'", "é", ""])
def test_single_quotes_are_read(text: str) -> None:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    assert fate(f"{{'id': {quoted}, \"n\": 1, 'labels': {{'k': 'v'}}}}".encode()) == {
        "id": text,
        "n": 1,
        "labels": [("k", "v")],
    }


def test_fields_that_are_not_wanted_are_named() -> None:
    strict = JsonFormat(SCHEMA, unknown_refused=True)
    assert decode(strict, b'{"id":"a","zz":1,"yy":2}').problems[0] == Problem("unknown_field", "not in the schema: zz, yy")
    many = b",".join(b'"%s%d":1' % (b"z" * 1_000, number) for number in range(500))
    told = decode(strict, b'{"id":"a","line\\n":1,%s}' % many).problems[0].detail
    assert len(told) < 2_000 and told.startswith("not in the schema: line\\n, zzz") and told.endswith(" and 481 more"), told
    unhoused = JsonFormat(SCHEMA, unhoused=("n",))
    assert decode(unhoused, b'{"id":"a","n":null}').problems[0] == Problem("unknown_field", "a table has no column for it: n")
    assert fate(b'{"id":"a","zz":1}', unhoused) == {"id": "a"}


@pytest.mark.parametrize("name", ['a"b', "a.b", "a\\b", "ä", "_problem", "a b", "\x01"])
def test_a_field_may_have_any_name(name: str) -> None:
    form = JsonFormat(pa.schema([pa.field(name, pa.int32()), pa.field("x", pa.struct([pa.field(name, pa.date32())]))]))
    assert fate(json.dumps({name: 7, "x": {name: None}}).encode(), form) == {name: 7, "x": {name: None}}
    assert fate(json.dumps({name: "7"}).encode(), form) == "does_not_fit"


def test_what_becomes_of_a_record_does_not_depend_on_the_others() -> None:
    values: list[bytes | None] = [
        None,
        b"",
        b'{"id":7}',
        b'{"id":"a","at":1700000000}',
        *mutations(seed=2, count=examples(3_000)),
    ]
    random.Random(3).shuffle(values)
    found = decode(JSON, *values)
    rows = iter(pa.table(dict(found.columns)).to_pylist())
    for at, value in enumerate(values):
        alone = decode(JSON, value)
        assert alone.problems.get(0) == found.problems.get(at)
        if at not in found.problems:
            assert pa.table(dict(alone.columns)).to_pylist() == [next(rows)]
    assert found.good == [at for at in range(len(values)) if at not in found.problems]
    assert len(values) / 60 < len(found.good) < 2 * len(values) / 3


def test_kafka_connects_json_is_refused_by_name_and_never_lands_as_nulls() -> None:
    loose, own = (
        JsonFormat(pa.schema([("id", pa.string())])),
        JsonFormat(pa.schema([("payload", pa.struct([("id", pa.string())]))])),
    )
    for content in ({"schema": {"type": "struct"}, "payload": {"id": "a"}}, {"payload": None, "schema": None}):
        value = json.dumps(content).encode()
        for form in (loose, JSON):
            found = decode(form, b'{"id":"a"}', value, b'{"id":"b"}')
            assert found.good == [0, 2] and found.columns["id"].to_pylist() == ["a", "b"]
            assert found.problems[1].reason == "unknown_field" and "schemas.enable=false" in found.problems[1].detail
        assert fate(value, own) == ({"payload": {"id": "a"}} if content["payload"] else {})
    for other in ({"schema": 1}, {"schema": 1, "payload": 2, "id": "a"}, {"id": "a", "x": {"schema": 1, "payload": 2}}):
        assert fate(json.dumps(other).encode(), loose) == ({"id": "a"} if "id" in other else {})
