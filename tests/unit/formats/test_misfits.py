"""A bad record's reason names the fields that do not fit; it never fails, and it stays short."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.formats.contract import Problem
from lakebound.formats.json.misfit import MOST_SHOWN
from lakebound.formats.json.record import RecordReader

ITEM = pa.struct({"sku": pa.string(), "price": pa.decimal128(12, 2), "tags": pa.list_(pa.int64())})
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("tiny", pa.int8()),
        pa.field("small", pa.int16()),
        pa.field("n", pa.int32()),
        pa.field("ok", pa.bool_()),
        pa.field("d", pa.float64()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("items", pa.list_(ITEM)),
        pa.field("rates", pa.map_(pa.string(), pa.float64())),
        pa.field("odd name", pa.int32()),
    ]
)
READER = RecordReader(SCHEMA)


def explain(value: bytes | None) -> str | None:
    """What does not fit of a record."""
    found = READER.read(value)
    return found.detail if isinstance(found, Problem) and found.reason == "does_not_fit" else None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"amount": "abc"', "amount: 'abc' is not a DECIMAL(12,2)"),
        (
            '"amount": 12345678901.5',
            "amount: 12345678901.5 is beyond DECIMAL(12,2): it has more than 10 digits before the point",
        ),
        ('"tiny": 200', "tiny: 200 is beyond TINYINT (-128 to 127)"),
        ('"small": -40000', "small: -40000 is beyond SMALLINT (-32768 to 32767)"),
        ('"n": "12"', "n: '12' is not an INT; it is a text, not a number"),
        ('"n": 1.5', "n: 1.5 is not an INT"),
        ('"n": true', "n: true is not an INT"),
        ('"ok": "true"', "ok: 'true' is not a BOOLEAN"),
        ('"d": 1e400', "d: 1e400 is beyond DOUBLE"),
        ('"day": 20000', "day: 20000 is not a DATE"),
        ('"day": 1700000000', "day: 1700000000 looks like epoch seconds; the schema says DATE"),
        ('"day": "2026-02-30"', "day: '2026-02-30' is not a day of the calendar"),
        ('"at": "12:30"', "at: '12:30' is a time without a day"),
        ('"day": "12:30"', "day: '12:30' is a time without a day"),
        ('"at": "yesterday"', "at: 'yesterday' is not a TIMESTAMP"),
        ('"at": "2026-01-01T25:00:00Z"', "at: '2026-01-01T25:00:00Z' has no such time of day"),
        ('"at": 1700000000000', "at: 1700000000000 looks like epoch milliseconds; the schema says TIMESTAMP"),
        ('"at": 1700000000000000', "at: 1700000000000000 looks like epoch microseconds; the schema says TIMESTAMP"),
        ('"at": "1700000000"', "at: '1700000000' looks like epoch seconds as a text; the schema says TIMESTAMP"),
        ('"at": 1700000000.25', "at: 1700000000.25 looks like epoch seconds with a fraction; the schema says TIMESTAMP"),
        ('"at": "0000-12-31"', "at: '0000-12-31' is outside of the years 1 to 9999"),
        ('"local": "2026-01-01T10:00:00Z"', "local: '2026-01-01T10:00:00Z' has a time zone"),
        ('"items": {}', "items: an object is not an array"),
        ('"items": [{"sku": 1}, null, {"price": "x"}]', "items[2].price: 'x' is not a DECIMAL(12,2)"),
        ('"items": [{"tags": [1, 2, "x"]}]', "items[0].tags[2]: 'x' is not a BIGINT"),
        ('"rates": {"EUR": 1, "USD": "x"}', "rates['USD']: 'x' is not a DOUBLE"),
        ('"rates": []', "rates: an array is not an object"),
        ('"odd name": "x"', "`odd name`: 'x' is not an INT"),
        ('"n": "x", "tiny": 128', "tiny: 128 is beyond TINYINT (-128 to 127); n: 'x' is not an INT"),
        ('"amount": "a", "n": "b", "ok": 1, "d": "c"', None),
    ],
)
def test_the_field_is_named(text: str, told: str | None) -> None:
    found = explain(f'{{"id": "a", {text}}}'.encode())
    if told is None:
        told = "amount: 'a' is not a DECIMAL(12,2); n: 'b' is not an INT; ok: 1 is not a BOOLEAN; and more"
    assert found == told


def test_a_record_that_fits_is_not_explained() -> None:
    body = {
        "id": 5,
        "amount": "1000.505",
        "n": 1,
        "d": "NaN",
        "day": "2026-02-28",
        "at": 1700000000,
        "items": [{"price": 9.999}, None],
    }
    assert explain(json.dumps(body).encode()) is None
    assert explain(json.dumps(dict.fromkeys(SCHEMA.names)).encode()) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"[]",
        b"5",
        b"{",
        b'{"n": "\xff"}',
        b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_cannot_be_read_is_not_explained(value: bytes | None) -> None:
    assert explain(value) is None


def test_a_long_value_is_cut() -> None:
    for text in ("x" * 100_000, "\u0000" * 100_000, 10**4000):
        told = explain(json.dumps({"amount": text, "n": text, "d": [text], "ok": text}).encode())
        assert told is not None
        assert len(told) < 3 * (4 * MOST_SHOWN + 120), "an escape has up to four characters"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["12:30", "2026-01-01", "1e5", "-"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["sku", "price", "tags", "EUR"]), inside),
    max_leaves=8,
)


@settings(max_examples=examples(100))
@given(st.dictionaries(st.sampled_from(SCHEMA.names), ANY))
def test_it_never_raises(body: dict[str, object]) -> None:
    told = explain(json.dumps(body).encode())
    assert told is None or any(name in told for name in SCHEMA.names)


@pytest.mark.parametrize("field", ["amount", "d", "n", "at", "day"])
@pytest.mark.parametrize(
    "text", ["9" * 30_000 + "x", "9" * 30_000 + "." + "9" * 30_000 + "x", "1e" + "9" * 30_000 + "x", "9," * 15_000 + "x"]
)
def test_the_time_grows_with_the_length_and_not_faster(field: str, text: str) -> None:
    began = time.process_time()
    told = explain(json.dumps({"id": "a", field: text}).encode())
    assert told is not None and told.startswith(f"{field}: ")
    assert time.process_time() - began < 1
