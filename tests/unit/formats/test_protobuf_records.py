"""Records that cannot land: each has a reason, none stops the others, and none depends on them."""

from __future__ import annotations

import datetime
import random
import time
from typing import Any

import pyarrow as pa
import pytest
from tests.support.formats.protobuf import message_class

from lakebound.formats.contract import Decoded, Problem, Records
from lakebound.formats.kinds import SchemaFormat, decoder_of
from lakebound.formats.protobuf.schema_reader import columns_of, payload_decoder
from lakebound.formats.registered import KnownSchemas
from lakebound.formats.schemas import SchemaText

TEXT = """
syntax = "proto2";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
message Order {
  required string id = 1;
  optional int32 n = 2;
  optional google.protobuf.Timestamp at = 3;
  repeated Line lines = 4;
  map<string, Line> held = 5;
  optional google.protobuf.Struct more = 6;
  repeated sint64 packed = 7 [packed = true];
  optional group Old = 8 { optional fixed32 x = 1; }
  optional google.protobuf.Duration took = 9;
  optional fixed64 big = 10;
  message Line { optional string sku = 1; optional double price = 2; repeated bytes raw = 3; }
}
message Refund { optional string id = 1; message Part { optional int32 n = 1; } }
"""
SCHEMA = SchemaText("protobuf", TEXT)
COLUMNS = columns_of(SCHEMA, None)
ORDER = message_class(TEXT, "shop.Order")
PLAIN = payload_decoder(SCHEMA, SCHEMA, COLUMNS, None, is_framed=False)
FRAMED = payload_decoder(SCHEMA, SCHEMA, COLUMNS, None, is_framed=True)


def order(**fields: Any) -> bytes:
    made: bytes = ORDER(**{"id": "a", **fields}).SerializeToString()
    return made


FULL = order(
    n=5,
    at={"seconds": 1, "nanos": 2000},
    lines=[{"sku": "s", "price": 1.5, "raw": [b"\xff"]}, {}],
    held={"k": {"sku": "t"}},
    more={"fields": {"a": {"number_value": 1.5}}},
    packed=[1, -1, 300],
    old={"x": 7},
    took={"seconds": 3},
    big=2**64 - 1,
)


def problem(payload: bytes, decoder: Any = PLAIN) -> Problem | None:
    found: Decoded = decoder.decode([payload])
    assert {len(column) for column in found.columns.values()} == {1 - len(found.problems)}
    for name, column in found.columns.items():
        column.validate(full=True)
        assert column.type == COLUMNS.field(name).type
    return found.problems.get(0)


def field(number: int, kind: int, content: bytes) -> bytes:
    tag = number << 3 | kind
    return bytes([tag & 127 | 128, tag >> 7, *content]) if tag > 127 else bytes([tag, *content])


GOOD = order()
BOMB = b"\xff\xff\xff\xff\xff\xff\xff\xff\x0f"  # 2^60 and more bytes


@pytest.mark.parametrize(
    ("payload", "reason", "told"),
    [
        (b"", "missing_field", "id: "),
        (order()[:-1], "malformed_protobuf", "id has 1 bytes, and 0 are left"),
        (GOOD + b"\x10", "malformed_protobuf", "n breaks off"),
        (GOOD + b"\x10" + b"\xff" * 11, "malformed_protobuf", "n breaks off, or is too long a number"),
        (GOOD + b"\x07", "malformed_protobuf", "no field of the record begins where one should"),
        (GOOD + b"\x00\x01", "malformed_protobuf", "no field of the record begins where one should"),
        (GOOD + b"\x0c", "malformed_protobuf", "id ends, and has not begun"),
        (GOOD + b"\x0a" + BOMB, "malformed_protobuf", "id has 1,152,921,504,606,846,975 bytes, and 0 are left"),
        (GOOD + b"\x3a" + BOMB, "malformed_protobuf", "packed has"),
        (GOOD + field(2000, 2, BOMB), "malformed_protobuf", "field 2000 has"),
        (GOOD + b"\x22\x03\x0a\x05a", "malformed_protobuf", "lines.element.sku has 5 bytes"),
        (GOOD + b"\x43\x0d\x01\x00\x00\x00", "malformed_protobuf", "old does not end"),
        (GOOD + b"\x43\x4c", "malformed_protobuf", "old ends as field 9 does"),
        (GOOD + b"\x3a\x01\xff", "malformed_protobuf", ""),
        (GOOD + field(2000, 3, b"") * 101 + field(2000, 4, b"") * 101, "malformed_protobuf", "100 levels"),
        (b"\x0a\x01\xff", "not_utf8", "id: "),
        (order(lines=[{}, {"sku": "b"}]).replace(b"\x0a\x01b", b"\x0a\x01\xff"), "not_utf8", "lines.element.sku: "),
        (order(held={"k": {"sku": "b"}}).replace(b"\x0a\x01b", b"\x0a\x01\xff"), "not_utf8", "held.value.sku: "),
        (order(held={"b": {}}).replace(b"\x0a\x01b", b"\x0a\x01\xff"), "not_utf8", "held.key: "),
        (order(at={"nanos": -1}), "does_not_fit", "at: 0 seconds and -1 nanoseconds"),
        (order(at={"nanos": 10**9}), "does_not_fit", "at: "),
        (order(at={"seconds": 253_402_300_800}), "does_not_fit", "at: "),
        (order(at={"seconds": -62_135_596_801}), "does_not_fit", "at: "),
        (order(at={"seconds": 2**63 - 1}), "does_not_fit", "at: "),
        (order(took={"seconds": 1, "nanos": -1}), "does_not_fit", "took: "),
        (order(took={"seconds": -(2**63)}), "does_not_fit", "took: "),
        (order(more={"fields": {"a": {"number_value": float("nan")}}}), "does_not_fit", "more: it cannot be written as JSON"),
    ],
)
def test_what_cannot_land_has_a_reason(payload: bytes, reason: str, told: str) -> None:
    found = problem(payload)
    assert found is not None
    assert found.reason == reason
    assert told in found.detail


@pytest.mark.parametrize(
    "payload",
    [
        FULL,
        GOOD + field(2000, 2, b"\x03abc") + field(2001, 0, b"\x05") + field(2002, 3, b"") + field(2002, 4, b""),  # unknown
        GOOD + b"\x12\x01x",  # a known number as another kind of field is unknown
        GOOD + field(2000, 3, b"") * 99 + field(2000, 4, b"") * 99,
        order(lines=[{"sku": "x" * 10_000_000}]),
        order(packed=range(100_000)),
        order(lines=[{}] * 10_000),
        order(took={"seconds": -1, "nanos": -1}),
    ],
)
def test_what_is_unusual_lands(payload: bytes) -> None:
    assert problem(payload) is None


@pytest.mark.parametrize(
    ("start", "reason", "told"),
    [
        (b"\x00", None, ""),
        (b"\x02\x00", None, ""),
        (b"\x02\x80\x00", None, ""),
        (b"\x02\x02", "other_message", "the record is a shop.Refund, and shop.Order is read"),
        (b"\x04\x02\x00", "other_message", "shop.Refund.Part"),
        (b"\x04\x00\x04", "other_message", "shop.Order.Line"),
        (b"\x02\x04", "no_message_indexes", "[2]"),
        (b"\x02\x01", "no_message_indexes", "[-1]"),
        (b"", "no_message_indexes", "cut or wrong"),
        (b"\x01", "no_message_indexes", "cut or wrong"),
        (b"\x04\x00", "no_message_indexes", "cut or wrong"),
        (b"\xfe\xff\xff\xff\x0f", "no_message_indexes", "cut or wrong"),
        (b"\xff" * 20, "no_message_indexes", "cut or wrong"),
    ],
)
def test_message_indexes(start: bytes, reason: str | None, told: str) -> None:
    found = problem(start + (GOOD if reason is None else b""), FRAMED)
    assert (found.reason if found else None) == reason
    assert told in (found.detail if found else "")


@pytest.mark.parametrize("name", ["shop.Refund", "shop.Refund.Part", "shop.Order.Line"])
def test_another_message_than_the_first_is_named(name: str) -> None:
    starts = {
        "shop.Refund": [b"\x02\x02"],
        "shop.Refund.Part": [b"\x04\x02\x00"],
        "shop.Order.Line": [b"\x04\x00\x04", b"\x04\x00\x00"],
    }
    columns = columns_of(SCHEMA, name)
    decoder = payload_decoder(SCHEMA, SCHEMA, columns, name, is_framed=True)
    for start in starts[name]:  # with and without the messages of a map and of a group
        assert not decoder.decode([start]).problems
    found = decoder.decode([b"\x00"]).problems[0]
    assert found == Problem("other_message", f"the record is a shop.Order, and {name} is read")


def test_a_record_never_depends_on_its_neighbours() -> None:
    """Each mutation of a full record is as it is alone, and Protobuf's own class agrees on which are messages."""
    rnd = random.Random(7)
    payloads = [_mutated(FULL, rnd) for _ in range(400)]
    together = PLAIN.decode(payloads)
    rows = pa.table(dict(together.columns)).to_pylist()
    assert len(rows) == len(together.good)
    by_place = dict(zip(together.good, rows, strict=True))
    refused = 0
    for at, payload in enumerate(payloads):
        alone = PLAIN.decode([payload])
        assert together.problems.get(at) == alone.problems.get(0)
        if at in by_place:
            assert repr(pa.table(dict(alone.columns)).to_pylist()[0]) == repr(by_place[at])
        refused += alone.problems.get(0, Problem("", "")).reason == "malformed_protobuf"
        assert _is_message(payload) == (alone.problems.get(0, Problem("", "")).reason != "malformed_protobuf")
    assert 60 < refused < 380


def test_random_bytes_stop_nothing() -> None:
    rnd = random.Random(3)
    payloads = [rnd.randbytes(rnd.randrange(60)) for _ in range(2_000)]
    for decoder in (PLAIN, FRAMED):
        found = decoder.decode([*payloads, b"\x00" + GOOD, GOOD])
        assert all(one.reason and one.detail for one in found.problems.values())
        assert sum(at not in found.problems for at in (2_000, 2_001)) == 1


def _is_message(payload: bytes) -> bool:
    try:
        ORDER.FromString(payload)
    except Exception:
        return False
    return True


def _mutated(payload: bytes, rnd: random.Random) -> bytes:
    made = bytearray(payload)
    for _ in range(rnd.choice((0, 1, 1, 2, 5))):
        at = rnd.randrange(len(made))
        how = rnd.randrange(5)
        if how == 0:
            made[at] ^= 1 << rnd.randrange(8)
        elif how == 1:
            del made[at : at + rnd.randrange(1, 4)]
        elif how == 2:
            made[at:at] = rnd.randbytes(rnd.randrange(1, 4))
        elif how == 3:
            del made[at:]
        else:
            made += made[: rnd.randrange(len(made))]
        if not made:
            break
    return bytes(made)


def test_records_of_a_registry_are_read_by_their_ids() -> None:
    known = KnownSchemas(writers=((1, SCHEMA),), refused=((2, "it is away"),), asks=False)
    frame = b"\0\0\0\0\x01"
    values = (frame + b"\0" + FULL, None, b"\0\0\0\0\x02x", frame + b"\x02\x02", frame + b"\0" + GOOD, b"\0\0\0\0\x09", b"")
    form = SchemaFormat(COLUMNS, SCHEMA, None, known)
    found = decoder_of(form).decode(Records((b"other",) * len(values), values))
    assert {at: one.reason for at, one in found.problems.items()} == {
        1: "null_value", 2: "schema_does_not_fit", 3: "other_message", 5: "unknown_schema", 6: "no_schema_id",
    }  # fmt: skip
    assert found.columns["n"].to_pylist() == [5, None]


def test_records_without_a_frame_are_read_with_the_schema_of_the_project() -> None:
    found = decoder_of(SchemaFormat(COLUMNS, SCHEMA)).decode(Records((None, None, None), (FULL, None, GOOD)))
    assert {at: one.reason for at, one in found.problems.items()} == {1: "null_value"}
    assert found.columns["n"].to_pylist() == [5, None]


def test_no_records_give_no_rows() -> None:
    found = PLAIN.decode([])
    assert (found.problems, found.count) == ({}, 0)
    assert {name: (len(column), column.type) for name, column in found.columns.items()} == {
        one.name: (0, one.type) for one in COLUMNS
    }


MIXED = """
syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message M {
  string text = 1; int64 whole = 2; optional sint32 signed = 3; double real = 4; bool yes = 5; fixed32 word = 6; bytes raw = 7;
  E e = 8; repeated int32 packed = 9; repeated string texts = 10; In inside = 11; repeated In many = 12;
  map<string, In> held = 13;
  google.protobuf.Timestamp at = 14; google.protobuf.StringValue wrapped = 15; uint64 big = 16; float small = 2000;
  message In { int32 a = 1; string b = 2; In2 c = 3; } message In2 { repeated sint64 d = 1; optional bool e = 2; }
  enum E { ZERO = 0; ONE = 1; FAR = 100000; }
}
"""


def _made_at_random(rnd: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a message, and what its row is."""
    inner = lambda: {  # noqa: E731
        **({"a": rnd.randrange(-3, 3)} if rnd.random() < 0.6 else {}),
        **({"b": rnd.choice(["", "é", "long" * 30])} if rnd.random() < 0.6 else {}),
        **({"c": {"d": [rnd.randrange(-(2**40), 2**40) for _ in range(rnd.randrange(4))]}} if rnd.random() < 0.3 else {}),
    }
    row_of = lambda one: {  # noqa: E731
        "a": one.get("a", 0), "b": one.get("b", ""), "c": {"d": one["c"]["d"], "e": None} if "c" in one else None
    }  # fmt: skip
    seconds = rnd.randrange(-(10**9), 10**9)
    simple: dict[str, tuple[Any, Any, Any]] = {
        "text": (rnd.choice(["a", "b" * 200]),) * 2 + ("",),
        "whole": (rnd.choice([0, 1, -1, 2**62]),) * 2 + (0,),
        "signed": (rnd.choice([0, -(2**31), 5]),) * 2 + (None,),
        "real": (rnd.random(),) * 2 + (0.0,),
        "yes": (rnd.random() < 0.5,) * 2 + (False,),
        "word": (rnd.randrange(2**32),) * 2 + (0,),
        "raw": (rnd.randbytes(rnd.randrange(5)),) * 2 + (b"",),
        "e": (number := rnd.choice([0, 1, 100000, 7]), {0: "ZERO", 1: "ONE", 100000: "FAR", 7: "7"}[number], "ZERO"),
        "packed": ([rnd.randrange(-200, 200) for _ in range(rnd.randrange(5))],) * 2 + ([],),
        "texts": (["", "x"] * rnd.randrange(3),) * 2 + ([],),
        "inside": (one := inner(), row_of(one), None),
        "many": (some := [inner() for _ in range(rnd.randrange(4))], [row_of(one) for one in some], []),
        "held": (
            by := {key: inner() for key in "ab"[: rnd.randrange(3)]},
            {key: row_of(one) for key, one in by.items()},
            {},
        ),
        "at": ({"seconds": seconds}, datetime.datetime.fromtimestamp(seconds, datetime.UTC), None),
        "wrapped": ({"value": "w"}, "w", None),
        "big": (rnd.choice([1, 2**64 - 1]),) * 2 + (0,),
        "small": (rnd.choice([0.5, -2.0]),) * 2 + (0.0,),
    }
    there = {"text"} | {name for name in simple if rnd.random() < 0.7}  # one that all have, others that some have
    fields = {name: simple[name][0] for name in there}
    return fields, {name: simple[name][1 if name in there else 2] for name in simple}


@pytest.mark.parametrize("count", [1, 5, 30, 600, 5_000])
def test_records_with_any_of_their_fields_are_read_together_as_they_were_made(count: int) -> None:
    rnd, made, schema = random.Random(count), message_class(MIXED, "M"), SchemaText("protobuf", MIXED)
    fields, wanted = zip(*(_made_at_random(rnd) for _ in range(count)), strict=True)
    found = payload_decoder(schema, schema, columns_of(schema, "M"), "M", is_framed=False).decode(
        [made(**one).SerializeToString() for one in fields]
    )
    assert not found.problems
    rows = pa.table(dict(found.columns)).to_pylist(maps_as_pydicts="strict")
    for row, want in zip(rows, wanted, strict=True):
        assert row == want


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize(
    "part", [b"\x22\x00", b"\x2a\x00", b"\x10\x05", b"\x1a\x00", b"\x38\x01", b"\x43\x44", b"\x7b\x7c\x78\x00"]
)
def test_a_long_record_of_nothing_takes_little_time_and_is_exact(part: bytes, count: int) -> None:
    """Lists, maps, numbers, messages and groups that come again and again."""
    times = 60_000 // count
    payload = GOOD + part * times + b"\x10\x07"
    start = time.process_time()
    found = PLAIN.decode([payload] * count)
    assert time.process_time() - start < 5
    assert not found.problems
    row = {name: column[count - 1].as_py() for name, column in found.columns.items()}
    made = ORDER.FromString(payload)
    assert (row["n"], len(row["lines"]), len(row["packed"])) == (7, len(made.lines), len(made.packed))
    assert (row["at"] is None, row["old"] is None) == (not made.HasField("at"), not made.HasField("old"))
    assert len(row["held"]) == len(made.held)
    broken = PLAIN.decode([payload + b"\x0a\x05"] * count)
    assert {one.detail for one in broken.problems.values()} == {"it is no shop.Order: id has 5 bytes, and 0 are left"}
    assert len(broken.problems) == count


def test_a_long_record_of_all_kinds_of_fields_is_as_protobuf_reads_it() -> None:
    rnd = random.Random(9)
    made, schema = message_class(MIXED, "M"), SchemaText("protobuf", MIXED)
    decoder = payload_decoder(schema, schema, columns_of(schema, "M"), "M", is_framed=False)
    payloads = [b"".join(made(**_made_at_random(rnd)[0]).SerializeToString() for _ in range(300)) for _ in range(3)]
    found = decoder.decode(payloads)
    assert not found.problems
    for at, payload in enumerate(payloads):
        one = made.FromString(payload)
        assert len(payload) > 20_000
        for name in ("text", "whole", "real", "yes", "word", "raw", "big", "small"):
            assert found.columns[name][at].as_py() == getattr(one, name)
        assert found.columns["packed"][at].as_py() == [*one.packed]
        assert found.columns["texts"][at].as_py() == [*one.texts]
        assert [each["b"] for each in found.columns["many"][at].as_py()] == [each.b for each in one.many]
        assert found.columns["inside"][at].as_py()["c"]["d"] == [*one.inside.c.d]
        assert {key: each["a"] for key, each in found.columns["held"][at].as_py()} == {
            k: each.a for k, each in one.held.items()
        }
