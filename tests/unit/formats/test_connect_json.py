"""Kafka Connect's JSON with schema and payload: its own types land as what they mean, all else as it was sent."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.formats.contract import Decoded, Records
from lakebound.formats.json import connect
from lakebound.formats.json.connect import ConnectDecoder
from lakebound.formats.json.decoder import JsonDecoder
from lakebound.formats.kinds import JsonFormat, decoder_of

CONNECTS = "org.apache.kafka.connect.data."
UTC_TIME = pa.timestamp("us", tz="UTC")


def field(name: str, kind: str, named: str | None = None, **more: Any) -> dict[str, Any]:
    own = {} if named is None else {"name": f"{CONNECTS}{named}", "version": 1}
    return {"field": name, "type": kind, "optional": True, **own, **more}


def value_of(payload: Any, *fields: dict[str, Any]) -> bytes:
    schema = {"type": "struct", "name": "shop.Order", "optional": False, "fields": list(fields)}
    return json.dumps({"schema": schema, "payload": payload}).encode()


def decoded(columns: dict[str, pa.DataType], *values: bytes | None, **more: bool) -> Decoded:
    form = JsonFormat(pa.schema(list(columns.items())), is_connects=True, **more)
    return decoder_of(form).decode(Records([None] * len(values), values))


def one(kind: pa.DataType, spec: dict[str, Any], sent: Any) -> Any:
    """Return what becomes of the value of one field: a value, or the problem."""
    found = decoded({"v": kind}, value_of({"v": sent}, spec))
    return found.problems[0].detail if found.problems else found.columns["v"].to_pylist()[0]


def as_bytes(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)).decode()


DECIMAL = field("v", "bytes", "Decimal", parameters={"scale": "2"})
DATE, TIME, TIMESTAMP = field("v", "int32", "Date"), field("v", "int32", "Time"), field("v", "int64", "Timestamp")


@given(st.integers(-(10**17) + 1, 10**17 - 1))
def test_decimals_are_their_unscaled_bytes_and_the_scale(unscaled: int) -> None:
    assert one(pa.decimal128(18, 2), DECIMAL, as_bytes(unscaled)) == Decimal(unscaled).scaleb(-2)


@given(st.dates(), st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_dates_and_times_are_days_and_milliseconds_since_1970(day: date, milliseconds: int) -> None:
    assert one(pa.date32(), DATE, (day - date(1970, 1, 1)).days) == day
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert one(UTC_TIME, TIMESTAMP, milliseconds) == moment
    assert one(pa.timestamp("us"), TIMESTAMP, milliseconds) == moment.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "spec", "sent", "expected"),
    [
        (pa.string(), DECIMAL, as_bytes(-1250), "-12.50"),
        (pa.binary(), DECIMAL, as_bytes(1250), b"\x04\xe2"),
        (pa.decimal128(10, 2), DECIMAL, 12.5, Decimal("12.50")),
        (pa.decimal128(10, 2), DECIMAL, None, None),
        (pa.decimal128(10, 0), field("v", "bytes", "Decimal", parameters={"scale": "-2"}), as_bytes(5), Decimal(500)),
        (pa.int32(), DATE, 20_000, 20_000),
        (pa.int64(), TIMESTAMP, 1_767_225_600_123, 1_767_225_600_123),
        (pa.string(), TIMESTAMP, 1_767_225_600_123, "2026-01-01T00:00:00.123Z"),
        (pa.string(), TIME, 47_100_123, "13:05:00.123"),
        (pa.int32(), TIME, 47_100_123, 47_100_123),
        (pa.string(), field("v", "string"), "2026", "2026"),
        (pa.int64(), field("v", "int64", "Else"), 7, 7),
        (pa.binary(), field("v", "bytes"), "AQI=", b"\x01\x02"),
        (pa.list_(pa.date32()), {"field": "v", "type": "array", "items": DATE}, [0, None], [date(1970, 1, 1), None]),
        (
            pa.struct([("d", pa.date32()), ("x", pa.string())]),
            {"field": "v", "type": "struct", "fields": [{**DATE, "field": "d"}, field("x", "string")]},
            {"d": 1, "x": 1.50},
            {"d": date(1970, 1, 2), "x": "1.5"},
        ),
        (
            pa.map_(pa.string(), pa.date32()),
            {"field": "v", "type": "map", "keys": field("", "string"), "values": DATE},
            {"a": 1},
            [("a", date(1970, 1, 2))],
        ),
    ],
)
def test_a_value_lands_as_its_column_takes_it(kind: pa.DataType, spec: dict[str, Any], sent: Any, expected: Any) -> None:
    assert one(kind, spec, sent) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "sent", "told"),
    [
        (pa.decimal128(10, 2), DECIMAL, "not base64!", "v: a Decimal of Kafka Connect is base64"),
        (pa.decimal128(10, 2), DECIMAL, "", "v: a Decimal of 0 bytes"),
        (pa.decimal128(10, 2), DECIMAL, "AAAA" * 1_000_000, "v: a Decimal of 3000000 bytes"),
        (pa.decimal128(10, 2), field("v", "bytes", "Decimal"), "AQ==", "v is a Decimal without a scale"),
        (pa.decimal128(10, 2), field("v", "bytes", "Decimal", parameters={"scale": "9" * 9}), "AQ==", "without a scale"),
        (pa.string(), field("v", "bytes", "Decimal", parameters={"scale": "-1000"}), "AQ==", "without a scale of at most 400"),
        (pa.string(), field("v", "bytes", "Decimal", parameters={"scale": "401"}), "AQ==", "without a scale of at most 400"),
        (pa.date32(), DATE, 10**9, "v: 1000000000 is no Date"),
        (UTC_TIME, TIMESTAMP, 10**18, "v: 1000000000000000000 is no Timestamp"),
        (UTC_TIME, TIMESTAMP, 1.5, "v: 1.5 is no Timestamp"),
        (pa.string(), TIME, 86_400_000, "v: 86400000 is no Time"),
        (UTC_TIME, TIME, 5, f"v: its type {CONNECTS}Time is not read"),
        (UTC_TIME, {**TIMESTAMP, "name": "io.debezium.time.MicroTimestamp"}, 5, "io.debezium.time.MicroTimestamp is not read"),
        (pa.int32(), field("v", "string"), "a", "v: 'a' is not an INT"),
        (pa.date32(), {"field": "v"}, 5, "v has no type"),
    ],
)
def test_what_cannot_land_is_named(kind: pa.DataType, spec: dict[str, Any], sent: Any, told: str) -> None:
    assert told in one(kind, spec, sent)


def test_records_without_the_envelope_have_a_reason_and_tombstones_have_no_value() -> None:
    good = value_of({"id": 2}, field("id", "int64"))
    found = decoded(
        {"id": pa.int64()},
        good,
        None,
        b'{"id": 1}',
        b"{",
        b"[]",
        b"",
        b'{"schema": null, "payload": null}',
        b'{"schema": null, "payload": {"id": 3}}',
        b'{"schema": {"type": "struct"}, "payload": {"id": 3}}',
        b'{"schema": 5, "payload": {"id": 3}}',
        b'{"schema": null, "payload": 5}',
        b'{"schema": ' + b"[" * 5_000 + b"]" * 5_000 + b', "payload": {}}',
        good,
    )
    assert found.columns["id"].to_pylist() == [2, 3, 2] and found.good == [0, 7, 12]
    reasons = {at: problem.reason for at, problem in found.problems.items()}
    assert (reasons[1], reasons[6]) == ("null_value", "null_value")
    assert reasons[2] == "does_not_fit" and "envelope: connect" in found.problems[2].detail
    assert (reasons[3], reasons[4], reasons[5]) == ("malformed_json", "not_an_object", "empty_value")
    assert (reasons[8], reasons[9], reasons[11]) == ("does_not_fit", "does_not_fit", "malformed_json")


def test_what_needs_no_conversion_stays_as_it_was_written() -> None:
    value = b'{"schema": {"type": "struct", "fields": []}, "payload": {"t": 12345678901234567.8900, "t": 1.50}}'
    assert decoded({"t": pa.string()}, value).columns["t"].to_pylist() == ["1.50"]


def test_unknown_fields_are_those_of_the_payload() -> None:
    strict = decoded({"id": pa.int64()}, value_of({"id": 1, "x": 2}, field("id", "int64")), unknown_refused=True)
    assert strict.problems[0].reason == "unknown_field" and strict.problems[0].detail.endswith(": x")


def test_very_many_schemas_are_read_and_few_are_kept() -> None:
    values = [value_of({"v": n}, {**DATE, "doc": str(n)}) for n in range(1_000)]
    assert decoded({"v": pa.date32()}, *values).columns["v"].null_count == 0


def test_large_schemas_are_read_and_few_bytes_of_them_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_MOST_SCHEMA_BYTES", 5_000)
    decoder = ConnectDecoder(pa.schema([("v", pa.date32())]), JsonDecoder(pa.schema([("v", pa.date32())])))
    values = [value_of({"v": n}, {**DATE, "doc": f"{n:01000}"}) for n in range(20)]
    found = decoder.decode(Records([None] * 20, values))
    assert found.problems == {} and found.columns["v"].null_count == 0
    assert 0 < sum(map(len, decoder._conversions)) <= 5_000
    assert decoder.decode(Records([None], [value_of({"v": 1}, {**DATE, "doc": "x" * 10_000})])).problems == {}


@pytest.mark.parametrize("payload", [b'{"\xff":1}', b'{"m":{"\xff":"AQ=="}}', b'{"s":{"\xff":1}}', b'{"d":"AQ==","x":"\xff"}'])
def test_names_that_are_not_utf8_are_a_reason_and_end_nothing(payload: bytes) -> None:
    money = {"type": "bytes", "name": f"{CONNECTS}Decimal", "parameters": {"scale": "2"}}
    inner = {"type": "struct", "fields": [field("t", "int64", "Timestamp")]}
    map_of_money = {"type": "map", "keys": {"type": "string"}, "values": money}
    fields = [{"field": "d", **money}, {"field": "m", **map_of_money}, {"field": "s", **inner}]
    decimal = pa.decimal128(10, 2)
    columns = {"d": decimal, "m": pa.map_(pa.string(), decimal), "s": pa.struct([("t", UTC_TIME)])}
    good = value_of({"d": "AQ=="}, *fields)
    found = decoded(columns, good, good.replace(b'{"d": "AQ=="}', payload))
    assert {at: problem.reason for at, problem in found.problems.items()} == {1: "not_utf8"}
