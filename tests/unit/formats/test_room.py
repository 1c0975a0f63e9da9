"""A record that would take much more memory than its bytes goes to quarantine, alone."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakebound.formats import room
from lakebound.formats.avro import decoder as avro_decoder
from lakebound.formats.avro import schema_reader as avro
from lakebound.formats.contract import Decoded, Records
from lakebound.formats.json.decoder import JsonDecoder
from lakebound.formats.protobuf import decoder as protobuf_decoder
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


def test_records_that_are_decoded_at_once_take_together_what_the_machine_has() -> None:
    for one in (avro_decoder, protobuf_decoder):
        assert room.LEAST_BYTES * one._MOST_AT_ONCE <= 2 << 30 and room.PER_BYTE * one._MOST_BYTES_AT_ONCE <= 2 << 30


@pytest.mark.parametrize(("size", "is_bomb"), [(100, False), (5_000, True)])
def test_a_short_record_of_very_many_items_is_a_problem_and_one_of_many_is_none(size: int, is_bomb: bool) -> None:
    """Hundreds of such records lie in one piece, and each of them takes what the piece takes."""
    form = of_protobuf(f"message R {{ repeated I a = 1; }} message I {{ {FIELDS} }}")
    found = form.decode([b"\x0a\0" * size] * 300)
    assert len(found.problems) == (300 if is_bomb else 0)
