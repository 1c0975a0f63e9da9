"""A record that would take much more memory than its bytes goes to quarantine, alone."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakebound.formats import room
from lakebound.formats.avro import schema_reader as avro
from lakebound.formats.contract import Decoded, Records
from lakebound.formats.json.decoder import JsonDecoder
from lakebound.formats.protobuf import schema_reader as protobuf
from lakebound.formats.schemas import PayloadDecoder, SchemaText

WIDE = {"type": "record", "name": "I", "fields": [{"name": f"f{at}", "type": "long"} for at in range(50)]}
LONG = {"type": "enum", "name": "E", "symbols": ["X" * 1000, "B"]}
ITEMS = bytes([0x90, 3]) + bytes(200) + b"\0"
"""An array of 200 items with the byte zero."""


def of_avro(items: Any) -> PayloadDecoder:
    fields = [{"name": "a", "type": {"type": "array", "items": items}}]
    text = SchemaText("avro", json.dumps({"type": "record", "name": "R", "fields": fields}))
    return avro.payload_decoder(text, text, avro.columns_of(text, None), None, is_framed=False)


def of_protobuf(text: str) -> PayloadDecoder:
    schema = SchemaText("protobuf", f'syntax = "proto3"; {text}')
    return protobuf.payload_decoder(schema, schema, protobuf.columns_of(schema, None), None, is_framed=False)


FIELDS = " ".join(f"int64 f{at} = {at + 1};" for at in range(50))
CASES = {
    "avro nulls": (lambda: of_avro(["null", WIDE]), ITEMS, b"\0"),
    "avro symbols": (lambda: of_avro(LONG), ITEMS, b"\0"),
    "protobuf messages": (
        lambda: of_protobuf(f"message R {{ repeated I a = 1; }} message I {{ {FIELDS} }}"),
        b"\x0a\0" * 200,
        b"",
    ),
    "protobuf names": (
        lambda: of_protobuf(f"message R {{ repeated E a = 1; }} enum E {{ {'X' * 1000} = 0; }}"),
        b"\x0a\xc8\x01" + bytes(200),
        b"",
    ),
    "protobuf default names": (
        lambda: of_protobuf(f"message R {{ repeated I a = 1; }} message I {{ E e = 1; }} enum E {{ {'X' * 1000} = 0; }}"),
        b"\x0a\0" * 200,
        b"",
    ),
}


@pytest.mark.parametrize("neighbours", [0, 3, 30])
@pytest.mark.parametrize("case", CASES)
def test_a_record_that_takes_too_much_is_a_problem_and_its_neighbours_land(
    case: str, neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, bomb, usual = CASES[case]
    assert make().decode([bomb]).problems == {}
    monkeypatch.setattr(room, "LEAST_BYTES", 20_000)
    payloads = [usual] * neighbours + [bomb] + [usual] * neighbours
    found = make().decode(payloads)
    assert {at: one.reason for at, one in found.problems.items()} == {neighbours: "does_not_fit"}
    assert "100 for each of its own bytes" in found.problems[neighbours].detail and found.count == len(payloads)
    assert found.columns["a"].to_pylist() == [[]] * (2 * neighbours)


def test_what_arrow_cannot_hold_is_halved_down_to_one_record() -> None:
    columns = pa.schema([("v", pa.int64())])

    def decode(payloads: Any) -> Decoded:
        if b"bad" in payloads:
            raise pa.ArrowInvalid("overflow")
        return Decoded({"v": pa.array([len(one) for one in payloads], pa.int64())}, {}, len(payloads))

    found = room.decoded_in_room([b"", b"1", b"bad", b"4444", b"bad"], decode, columns)
    assert found.columns["v"].to_pylist() == [0, 1, 4] and [*found.problems] == [2, 4] and found.count == 5


def test_objects_of_many_fields_in_json_are_counted_and_neighbours_land(monkeypatch: pytest.MonkeyPatch) -> None:
    item = pa.struct([(f"f{at}", pa.int64()) for at in range(200)])
    decoder = JsonDecoder(pa.schema([("a", pa.list_(item)), ("m", pa.map_(pa.string(), item))]))
    bombs = [
        b'{"a":[' + b",".join([b"{}"] * 200) + b"]}",
        b'{"a":[' + b",".join([b"null"] * 200) + b"]}",
        b'{"m":{' + b",".join(b'"%d":{}' % at for at in range(200)) + b"}}",
    ]
    usual = [b'{"a":[{}]}', b'{"x":[' + b",".join([b"{}"] * 200) + b"]}"]
    assert decoder.decode(Records([None] * 5, [*bombs, *usual])).problems == {}
    monkeypatch.setattr(room, "LEAST_BYTES", 20_000)
    found = decoder.decode(Records([None] * 5, [*bombs, *usual]))
    assert {at: one.reason for at, one in found.problems.items()} == dict.fromkeys(range(3), "does_not_fit")
    assert [len(one or ()) for one in found.columns["a"].to_pylist()] == [1, 0]


JSON_ITEM = pa.struct([(f"f{at}", pa.int64()) for at in range(200)])
TOGETHER: dict[str, tuple[Any, bytes]] = {
    **{case: (lambda make=make: make().decode, bomb) for case, (make, bomb, _) in CASES.items()},
    "json": (
        lambda: lambda some: JsonDecoder(pa.schema([("a", pa.list_(JSON_ITEM))])).decode(Records([None] * len(some), some)),
        b'{"a":[' + b",".join([b"{}"] * 200) + b"]}",
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_of_records_that_take_too_much_together_fewer_are_decoded_at_once(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, bomb = TOGETHER[case]
    decode = make()
    alone = sum(column.nbytes for column in decode([bomb]).columns.values())
    monkeypatch.setattr(room, "MOST_AT_ONCE_BYTES", 8 * alone)
    payloads = [bomb] * 100
    with pytest.raises(room.TooMuchAtOnceError):
        decode(payloads)
    parts = [*room.in_parts(100, lambda places: decode(payloads[places.start : places.stop]))]
    assert len(parts) > 10 and sum(one.count for one in parts) == 100 and not any(one.problems for one in parts)
    assert pa.concat_arrays([one.columns["a"] for one in parts]).to_pylist() == [*decode([bomb]).columns["a"].to_pylist()] * 100


def test_parts_come_in_their_order_and_one_record_is_never_too_much() -> None:
    tried: list[range] = []

    def decode(places: range) -> list[int]:
        tried.append(places)
        if len(places) > 3:
            raise room.TooMuchAtOnceError
        return [*places]

    assert [one for part in room.in_parts(50, decode) for one in part] == [*range(50)]
    assert max(map(len, tried)) == 50 and [*room.in_parts(0, decode)] == [[]]
    columns = pa.schema([("v", pa.int64())])
    large = Decoded({"v": pa.nulls(1, pa.int64())}, {}, 1)
    assert room.joined([large], columns) is large
