"""Each JSON value in each type of column lands as sent, or is told to be no value of the type.

The expected value is worked out here by the standard library, from the JSON text alone.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.formats.contract import Decoded, Records
from lakebound.formats.kinds import JsonFormat, decoder_of

BAD = "quarantined"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TOKENS = [
    *("true", "false", "0", "-0", "1", "-1", "7", "127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 39, "9" * 5000, "1.0", "100.00", "1.005"),
    *("-0.0", "0.1", "12345678901234567.89", "999.994", "999.995", "-999.995", "16777217", "1e2", "1E-2", "1e400", "-1e400"),
    *("1e-400", "1e999999999", "1e-999999999", "1e99999999999999999999", "3.4028235e38", "3.4028236e38", "7e-46", "1e39"),
    *("1.00000005960464477539062500001", "0." + "0" * 2000 + "1", "253402300799", "253402300800", "-62135596800"),
    *("-62135596801", "1700000000", "1700000000000", "1700000000.5", '""', '" "', '"x"', '"true"', '"null"', '"NaN"', '"1"'),
    *('"Infinity"', '"-INF"', '"1.5"', '"-0"', '"+1.5"', '"007"', '"1,5"', '"1.234,56"', '"1e2"', '".5"', '"5."', '"0x1"'),
    *('"1"', '" 1"', '"AAEC"', '"AAE"', '"AA=="', '"!"', '"\\u00e9\\ud83d\\ude00"', '"a\\nb"', '"\\"Infinity\\""'),
    *('"2026-11-28"', '"2026-11-28T10:00Z"', '"12:30"', '"1700000000"', '"20261128"', "[]", "[1, 2]", "{}", '{"a":1e400}'),
    *('{ "a" : [1.10, "x"] }', "[null]", '{"a":"\\u0041"}'),
]


def decoded(kind: pa.DataType, texts: list[str]) -> Decoded:
    records = Records([None] * len(texts), [f'{{"v": {text}}}'.encode() for text in texts])
    return decoder_of(JsonFormat(pa.schema([pa.field("v", kind)]))).decode(records)


def landed(kind: pa.DataType, texts: list[str]) -> dict[str, Any]:
    """What became of each text: its value, or BAD."""
    found = decoded(kind, texts)
    column = found.columns["v"]
    assert column.type == kind
    values = iter(column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(kind) else column.to_pylist())
    for at, problem in found.problems.items():
        assert problem.reason == "does_not_fit", texts[at]
        assert problem.detail.startswith("v: "), problem
    return {text: BAD if at in found.problems else next(values) for at, text in enumerate(texts)}


def whole(bits: int) -> Callable[[str], Any]:
    def expected(text: str) -> Any:
        if not re.fullmatch("-?[0-9]{1,4000}", text):
            return BAD
        return int(text) if -(1 << bits - 1) <= int(text) < 1 << bits - 1 else BAD

    return expected


def double(text: str) -> Any:
    if text == '"NaN"':
        return "nan"
    if text[0] not in "-0123456789":
        return BAD
    number = float(text) if text != "-0" else 0.0
    return BAD if number in (float("inf"), -float("inf")) else number


def single(text: str) -> Any:
    """The nearest FLOAT, of two that are equally near the even one."""
    number = double(text)
    if not isinstance(number, float) or number == 0:
        return number
    exact = Fraction(text)
    if abs(exact) >= Fraction(2**128 - 2**103):
        return BAD
    sign, size = (-1.0 if exact < 0 else 1.0), abs(exact)
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 25, -149)
    while size / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    return sign * float(round(size / Fraction(2) ** exponent) * Fraction(2) ** exponent)


def decimal(precision: int, scale: int) -> Callable[[str], Any]:
    def expected(text: str) -> Any:
        inside = json.loads(text) if text[0] == '"' else text
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", inside):
            return BAD
        mantissa, _, exponent = inside.lower().partition("e")
        with localcontext(prec=10_000):
            if abs(int(exponent or 0)) > 9_000:
                return Decimal(0) if exponent[0] == "-" and Decimal(mantissa) else BAD
            rounded = Decimal(inside).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
            return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else BAD

    return expected


def text_itself(text: str) -> Any:
    return json.loads(text) if text[0] == '"' else text


def binary(text: str) -> Any:
    if text[0] != '"':
        return BAD
    try:
        return base64.b64decode("".join(json.loads(text).split()), validate=True)
    except ValueError:
        return BAD


def boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(text, BAD)


def moment(text: str) -> Any:
    known = {'"2026-11-28"': "2026-11-28", '"2026-11-28T10:00Z"': "2026-11-28T10:00", '"20261128"': "2026-11-28"}
    if text in known:
        return (datetime.fromisoformat(known[text]).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    seconds = int(text) if re.fullmatch("-?[0-9]{1,12}", text) else 10**18
    return seconds * 10**6 if -62_135_596_800 <= seconds < 253_402_300_800 else BAD


def day(text: str) -> Any:
    known = {'"2026-11-28"', '"2026-11-28T10:00Z"', '"20261128"'}
    return date(2026, 11, 28) if text in known else BAD


ORACLES: dict[pa.DataType, Callable[[str], Any]] = {
    pa.int8(): whole(8),
    pa.int16(): whole(16),
    pa.int32(): whole(32),
    pa.int64(): whole(64),
    pa.float64(): double,
    pa.float32(): single,
    pa.decimal128(5, 2): decimal(5, 2),
    pa.decimal128(38, 0): decimal(38, 0),
    pa.decimal128(38, 38): decimal(38, 38),
    pa.string(): text_itself,
    pa.binary(): binary,
    pa.bool_(): boolean,
    pa.timestamp("us", tz="UTC"): moment,
    pa.date32(): day,
}


def same(found: Any) -> Any:
    return repr(found) if isinstance(found, float) else found


@pytest.mark.parametrize("kind", ORACLES, ids=str)
def test_a_value_lands_as_it_was_sent_or_not_at_all(kind: pa.DataType) -> None:
    expected = {text: ORACLES[kind](text) for text in TOKENS}
    assert len(set(map(str, expected.values()))) > 1
    for texts in (TOKENS, random.Random(1).sample(TOKENS, len(TOKENS)), *([text] for text in TOKENS)):
        found = landed(kind, texts)
        assert {text: same(value) for text, value in found.items()} == {
            text: same(expected[text]) if expected[text] != "nan" else "nan" for text in texts
        }


@pytest.mark.parametrize("kind", ORACLES, ids=str)
def test_inside_of_lists_maps_and_objects_it_is_the_same(kind: pa.DataType) -> None:
    alone = landed(kind, TOKENS)
    inner = pa.field("x", kind)
    forms: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
        "[null,%s]": (pa.list_(kind), lambda value: [None, value]),
        '{"k":%s,"n":null}': (pa.map_(pa.string(), kind), lambda value: [("k", value), ("n", None)]),
        '[{"y":[]},null,{"x":%s}]': (pa.list_(pa.struct([inner])), lambda value: [{"x": None}, None, {"x": value}]),
    }
    for form, (outer, shape) in forms.items():
        found = decoded(outer, [form % text for text in TOKENS])
        landed_ones = [text for text in TOKENS if not same_bad(alone[text])]
        assert {TOKENS[at] for at in found.problems} == {*TOKENS} - {*landed_ones}, form
        rows = pa.array([shape(alone[text]) for text in landed_ones], outer)
        assert repr(found.columns["v"].to_pylist()) == repr(rows.to_pylist()), form


def same_bad(value: Any) -> bool:
    return isinstance(value, str) and value == BAD


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
SCALARS = st.none() | st.booleans() | st.text(max_size=8) | st.integers()
VALUES = st.recursive(SCALARS, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside))


@settings(max_examples=examples(300))
@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_numbers_land_in_texts_and_decimals_as_they_are_written(texts: list[str]) -> None:
    assert landed(pa.string(), texts) == {text: text for text in texts}
    for precision, scale in ((5, 2), (38, 10)):
        assert landed(pa.decimal128(precision, scale), texts) == {text: decimal(precision, scale)(text) for text in texts}
    assert {text: same(value) for text, value in landed(pa.float32(), texts).items()} == {
        text: same(single(text)) for text in texts
    }


@settings(max_examples=examples(200))
@given(VALUES, st.integers(0, 3))
def test_a_text_column_holds_the_records_own_text(value: Any, blanks: int) -> None:
    text = json.dumps(value, indent=blanks or None, ensure_ascii=blanks == 1)
    if "\\ud" in text or any(0xD800 <= ord(one) < 0xE000 for one in text):
        return
    expected = value if value is None or isinstance(value, str) else text
    assert landed(pa.string(), [text, '"x"']) == {text: expected, '"x"': "x"}


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=6), st.sampled_from([*ORACLES]))
def test_what_becomes_of_a_record_does_not_depend_on_the_others(texts: list[str], kind: pa.DataType) -> None:
    together = landed(kind, texts)
    assert repr(together) == repr({text: landed(kind, [text])[text] for text in together})
