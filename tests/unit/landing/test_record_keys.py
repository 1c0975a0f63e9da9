"""Which row of a store the key of a record without a value names: exactly one, or none with a reason."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.landing.to_stores.record_keys import MOST_KEY_BYTES, key_reader

TEXT, LONG, DATE = pa.string(), pa.int64(), pa.date32()


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (TEXT, b"card-1", "card-1"),
        (TEXT, "é".encode(), "é"),
        (TEXT, b"", ""),
        (TEXT, b" 17", " 17"),
        (TEXT, b"true", "true"),
        (TEXT, b'{"card": "card-1"}', "card-1"),
        (TEXT, b' \n{"card":"\\u00e9"} ', "é"),
        (LONG, b"0", 0),
        (LONG, b"-9223372036854775808", -(2**63)),
        (LONG, b'{"card": 17}', 17),
        (pa.int8(), b"127", 127),
        (DATE, b"2026-01-31", date(2026, 1, 31)),
        (DATE, b'{"card": "0001-01-01"}', date(1, 1, 1)),
    ],
)
def test_a_key_is_the_text_of_the_column_or_an_object_with_it(kind: pa.DataType, key: bytes, value: Any) -> None:
    found = key_reader("card", kind, None)(key)
    assert (found.value, found.problem) == (value, None)
    pa.array([found.value], kind)


@pytest.mark.parametrize(
    ("kind", "key", "problem"),
    [
        (TEXT, None, "neither a value nor a key"),
        (TEXT, b"\xff", "not UTF-8"),
        (TEXT, b"\x00\x00\x00\x00\x07\x0ccard-1", r"U\+0000, as keys in the format of a schema registry"),
        (TEXT, b"card\x00", r"U\+0000"),
        (TEXT, b'"card-1"', "begins as JSON"),
        (TEXT, b'["card-1"]', "begins as JSON"),
        (TEXT, b'{"card": "card-1"', "not a well-formed JSON object"),
        (TEXT, b'{"card": "card-1"} more', "not a well-formed JSON object"),
        (TEXT, b'{"card": NaN}', "not a well-formed JSON object"),
        (TEXT, b"{" * 100_000, "not a well-formed JSON object"),
        (TEXT, b'{"card": "a", "tenant": "b"}', "whose only field is not card"),
        (TEXT, b'{"card": "a", "card": "b"}', "whose only field is not card"),
        (TEXT, b'{"Card": "a"}', "whose only field is not card"),
        (TEXT, b'{"payload": {"card": "a"}}', "whose only field is not card"),
        (TEXT, b"{}", "whose only field is not card"),
        (TEXT, b'{"card": 17}', "not a text"),
        (TEXT, b'{"card": null}', "not a text"),
        (TEXT, b'{"card": ["a"]}', "not a text"),
        (TEXT, b'{"card": "\\u0000"}', r"U\+0000"),
        (TEXT, b'{"card": "\\ud800"}', "half a character"),
        (TEXT, b"x" * (MOST_KEY_BYTES + 1), "longer than 512 bytes"),
        (TEXT, "é".encode() * 257, "longer than 512 bytes"),
        (LONG, b"", "not a whole number"),
        (LONG, b"017", "not a whole number"),
        (LONG, b"+17", "not a whole number"),
        (LONG, b"-0", "not a whole number"),
        (LONG, b"17.0", "not a whole number"),
        (LONG, "١٧".encode(), "not a whole number"),
        (LONG, b"\x00\x00\x00\x00\x00\x00\x00\x11", r"U\+0000"),
        (LONG, b"9223372036854775808", "beyond a whole number of 64 bits"),
        (LONG, b'{"card": true}', "not a whole number"),
        (LONG, b'{"card": "17"}', "not a whole number"),
        (LONG, b'{"card": 17.0}', "not a whole number"),
        (pa.int8(), b"128", "beyond a whole number of 8 bits"),
        (DATE, b"20260131", "not a date"),
        (DATE, b"2026-02-30", "not a date"),
        (DATE, b"2026-01-31T00:00:00Z", "not a date"),
    ],
)
def test_what_may_mean_another_row_or_none_has_a_problem(kind: pa.DataType, key: bytes | None, problem: str) -> None:
    found = key_reader("card", kind, None)(key)
    assert found.value is None
    with pytest.raises(AssertionError, match=problem):
        assert found.problem is None, found.problem


def test_where_values_are_bytes_the_key_is_the_column_as_it_is() -> None:
    read = key_reader("key", pa.binary(), "bytes")
    assert read(b"\x00{\xff").value == b"\x00{\xff"
    assert read(b"").value == b""
    assert read(None).problem is not None
    assert read(b"x" * 513).problem is not None


def test_where_the_column_is_the_key_as_a_text_it_is_taken_as_it_is() -> None:
    read = key_reader("card", pa.string(), "string")
    for text in ("a", "", '{"card": "b"}', '"c"', "[1]", " d ", "007"):
        assert read(text.encode()).value == text
    assert all(read(key).problem is not None for key in (None, b"\xff", b"a\x00b", b"x" * 513))


@given(st.text(), st.integers(-(2**63), 2**63 - 1), st.dates())
def test_both_forms_of_a_key_mean_the_same_row(text: str, number: int, day: date) -> None:
    for kind, value, plain in ((TEXT, text, text), (LONG, number, str(number)), (DATE, day, day.isoformat())):
        read = key_reader("card", kind, None)
        given_value = value if kind == LONG else plain
        found = [read(plain.encode()), read(json.dumps({"card": given_value}).encode())]
        assert all(one.value == value for one in found if one.problem is None)
        assert found[1].problem is None or "\x00" in plain or len(plain.encode()) > MOST_KEY_BYTES


@given(st.binary(), st.sampled_from([TEXT, LONG, pa.int16(), DATE]))
def test_any_bytes_are_a_key_or_have_a_problem(key: bytes, kind: pa.DataType) -> None:
    found = key_reader("card", kind, None)(key)
    assert (found.value is None) == (found.problem is not None)
    pa.array([found.value], kind)
