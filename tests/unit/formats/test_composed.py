"""Keys, headers and values together: every format of a key with every class of value, and headers of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.formats.composed import ComposedFormat, KeyColumns
from lakebound.formats.contract import NO_VALUE, Decoded, Problem, Records
from lakebound.formats.headers import HeaderColumn, HeadersFormat, headers_array, headers_of
from lakebound.formats.kinds import JsonFormat, ValueFormat, decoder_of
from lakebound.formats.plain import PlainFormat

NEEDED = JsonFormat(pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]))
OPTIONAL = JsonFormat(pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())]))
VALUE = JsonFormat(pa.schema([pa.field("n", pa.int32())]))
KEYS: dict[str, tuple[KeyColumns, dict[bytes | None, dict[str, Any] | str]]] = {
    "string": (
        KeyColumns(PlainFormat("k", "string"), None, ("k",)),
        {
            b"a": {"k": "a"},
            b"": {"k": ""},
            None: {"k": None},
            "ä\x00".encode(): {"k": "ä\x00"},
            b"\xff": "not_utf8",
            b"\xed\xa0\x80": "not_utf8",
        },
    ),
    "bytes": (
        KeyColumns(PlainFormat("k", "bytes"), None, ("k",)),
        {b"a": {"k": b"a"}, b"": {"k": b""}, None: {"k": None}, b"\xff": {"k": b"\xff"}},
    ),
    "json": (
        KeyColumns(OPTIONAL, "k"),
        {
            b'{"id": 1, "name": "x", "more": 2}': {"k": {"id": 1, "name": "x"}},
            b"{}": {"k": {"id": None, "name": None}},
            None: {"k": None},
            b"": "empty_value",
            b"[]": "not_an_object",
            b"1": "not_an_object",
            b"{": "malformed_json",
            b'{"id": "x"}': "does_not_fit",
            b'{"id": "\xff"}': "not_utf8",
        },
    ),
    "columns": (
        KeyColumns(NEEDED, None, ("name", "id")),
        {
            b'{"id": 1, "name": "x"}': {"name": "x", "id": 1},
            b'{"id": 2}': {"name": None, "id": 2},
            b"{}": "missing_field",
            None: "missing_field",
        },
    ),
}
VALUES: dict[bytes | None, dict[str, Any] | str] = {
    b'{"n": 1}': {"n": 1},
    b"{}": {"n": None},
    b"": "empty_value",
    None: "null_value",
    b'{"n": 1e9}': "does_not_fit",
    b"\xff": "not_utf8",
}


def decode(form: ValueFormat, records: Records) -> tuple[Decoded, list[dict[str, Any]]]:
    found = decoder_of(form).decode(records)
    rows = pa.table(dict(found.columns), schema=pa.schema([field.with_nullable(True) for field in form.columns])).to_pylist()
    assert len(rows) == len(found.good)
    return found, rows


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("null_is_row", [False, True])
def test_a_record_lands_where_key_and_value_fit_and_says_which_does_not(kind: str, null_is_row: bool) -> None:
    part, keys = KEYS[kind]
    form = ComposedFormat(VALUE, part, HeadersFormat((HeaderColumn("h", "h"),)), null_is_row)
    cases = [*product(keys.items(), VALUES.items())]
    headers = [[("h", b"%d" % at)] for at in range(len(cases))]
    found, rows = decode(form, Records([key for (key, _), _ in cases], [value for _, (value, _) in cases], headers))
    landed = dict(zip(found.good, rows, strict=True))
    for at, ((key, of_key), (value, of_value)) in enumerate(cases):
        expected = {"n": None} if value is None and null_is_row else of_value
        if isinstance(expected, str):
            problem = found.problems[at]
            assert problem.reason == expected and not problem.detail.startswith("key"), "the value's problem is told first"
            assert value is not None or problem == NO_VALUE
        elif isinstance(of_key, str):
            assert found.problems[at].reason == of_key and found.problems[at].detail.startswith("key: ")
        else:
            assert landed[at] == {**of_key, **expected, "h": str(at)}, (key, value)
    assert len(landed) >= 4 and len(found.problems) > 5


def test_a_record_without_a_value_is_a_row_only_where_no_column_of_the_value_is_needed() -> None:
    records = Records([b"1"], [None])
    key = KEYS["string"][0]
    _, rows = decode(ComposedFormat(OPTIONAL, key, null_is_row=True), records)
    assert rows == [{"k": "1", "id": None, "name": None}]
    found, rows = decode(ComposedFormat(NEEDED, key, null_is_row=True), records)
    assert rows == []
    assert found.problems == {0: Problem("missing_field", "required but missing or null: id")}


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_plain_values_are_as_they_were_sent(kind: Any) -> None:
    values = [b"a", None, b"", "ä".encode(), b"\xff\xfe", b"\x00"]
    found, rows = decode(PlainFormat("value", kind), Records([None] * 6, values))
    is_text = kind == "string"
    assert found.problems.get(1) == NO_VALUE and (4 in found.problems) == is_text
    if is_text:
        assert found.problems[4].detail == "the value is not UTF-8: byte 1 of 2 is ff"
    expected: list[Any] = ["a", "", "ä", "\x00"] if is_text else [b"a", b"", "ä".encode(), b"\xff\xfe", b"\x00"]
    assert [row["value"] for row in rows] == expected


def test_of_columns_of_one_name_none_is_lost_silently() -> None:
    with pytest.raises(ValueError, match="one name"):
        ComposedFormat(VALUE, KeyColumns(PlainFormat("N", "string"), None, ("N",)))


WANTED = HeadersFormat(
    (
        HeaderColumn("text", "a"),
        HeaderColumn("raw", "a", "BINARY"),
        HeaderColumn("number", "n", "BIGINT"),
        HeaderColumn("small", "n", "INT"),
        HeaderColumn("nameless", "", "BINARY"),
        HeaderColumn("every", None),
    )
)


def of_headers(*headers: Sequence[tuple[str, bytes | None]]) -> tuple[Decoded, list[dict[str, Any]]]:
    return decode(WANTED, Records([None] * len(headers), [b""] * len(headers), headers))


def test_of_equal_names_the_last_counts_and_what_is_not_there_is_null() -> None:
    many = [(f"x{number}", b"1") for number in range(1_000)]
    sent = [
        [],
        [("a", b"1"), ("a", b"2")],
        [("a", b"1"), ("a", None)],
        [("A", b"1"), ("", b"\xff"), ("", b"e")],
        [*many, ("a", b"last")],
        [("n", b"-007"), ("a", b"")],
    ]
    found, rows = of_headers(*sent)
    assert not found.problems
    assert [row["text"] for row in rows] == [None, "2", None, None, "last", ""]
    assert [row["raw"] for row in rows] == [None, b"2", None, None, b"last", b""]
    assert [row["nameless"] for row in rows] == [None, None, None, b"e", None, None]
    assert [(row["number"], row["small"]) for row in rows] == [*[(None, None)] * 5, (-7, -7)]
    assert [[(one["name"], one["value"]) for one in row["every"]] for row in rows] == sent


@pytest.mark.parametrize(
    ("header", "reason", "detail"),
    [
        (("a", b"x\xff"), "not_utf8", "header a: is not UTF-8: byte 2 of 2 is ff"),
        (("n", b""), "does_not_fit", "header n: '' is no BIGINT in decimal text"),
        (("n", b"1.0"), "does_not_fit", "header n: '1.0' is no BIGINT in decimal text"),
        (("n", b" 1"), "does_not_fit", "header n: ' 1' is no BIGINT in decimal text"),
        (("n", b"1\n"), "does_not_fit", "header n: '1\\n' is no BIGINT in decimal text"),
        (("n", "١".encode()), "does_not_fit", "header n: '١' is no BIGINT in decimal text"),
        (("n", b"\x00\x00\x00\x01"), "does_not_fit", "header n: '\\x00\\x00\\x00\\x01' is no BIGINT in decimal text"),
        (("n", b"9223372036854775808"), "does_not_fit", "header n: '9223372036854775808' is no BIGINT in decimal text"),
        (("n", b"2147483648"), "does_not_fit", "header n: '2147483648' is no INT in decimal text"),
        (("n", b"9" * 50), "does_not_fit", f"header n: '{'9' * 40}'… is no BIGINT in decimal text"),
    ],
)
def test_a_header_that_does_not_fit_is_named(header: tuple[str, bytes], reason: str, detail: str) -> None:
    found, rows = of_headers([], [header], [("n", b"5")])
    assert {at: (one.reason, one.detail) for at, one in found.problems.items()} == {1: (reason, detail)}
    assert [row["number"] for row in rows] == [None, 5]


def test_headers_that_nobody_read_are_no_nulls() -> None:
    with pytest.raises(ValueError, match="without their headers"):
        WANTED.decoder().decode(Records([None], [b""]))


HEADERS_SENT = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=4)


@given(st.lists(st.none() | HEADERS_SENT, max_size=9))
def test_headers_come_back_from_arrow_as_they_went_in(sent: list[list[tuple[str, bytes | None]] | None]) -> None:
    array, expected = headers_array(sent), [[*(one or ())] for one in sent]
    assert [[*one] for one in headers_of(array)] == expected
    for first in range(len(sent)):
        assert [[*one] for one in headers_of(array.slice(first, 3))] == expected[first : first + 3]
