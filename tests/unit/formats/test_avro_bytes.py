"""Any bytes give what a plain reader of Avro finds in them, or a problem: alone, and beside any others."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.support.formats.avro import PlainReader, RefusedError
from tests.support.formats.avro_schemas import mutated, record_schema, value_of, written

from lakebound.formats.avro import many, schema_reader
from lakebound.formats.avro.shape import NumberPart
from lakebound.formats.contract import Problem
from lakebound.formats.schemas import PayloadDecoder, SchemaText

REASONS = {"malformed_avro", "does_not_fit", "not_utf8"}
BOMB = bytes.fromhex("feffffffffffffffff01")
"""The number 2^63-1."""


def decoder(schema: Any) -> PayloadDecoder:
    text = SchemaText("avro", json.dumps(schema))
    return schema_reader.payload_decoder(text, text, schema_reader.columns_of(text, None), None, is_framed=False)


def fates(decode: PayloadDecoder, payloads: list[bytes]) -> list[Any]:
    """What became of each: its row, or its problem."""
    found = decode.decode(payloads)
    for column in found.columns.values():
        column.validate(full=True)
    rows = iter(pa.table(dict(found.columns)).to_pylist())
    made = [found.problems.get(at) or next(rows) for at in range(len(payloads))]
    assert found.count == len(payloads) and next(rows, None) is None
    return made


def plain(schema: Any, payload: bytes) -> Any:
    try:
        return PlainReader(payload).whole(schema)
    except RefusedError:
        return None


def same(left: Any, right: Any) -> bool:
    """Whether values are equal; one that is no number is equal to itself here."""
    if isinstance(left, dict) and isinstance(right, dict):
        return same([*left.items()], [*right.items()])
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) or (left != left and right != right)


@pytest.mark.parametrize("seed", range(40))
def test_any_bytes_land_as_a_plain_reader_finds_them_or_are_a_problem(seed: int) -> None:
    draw = random.Random(seed)
    schema = record_schema(draw, fields=draw.randint(1, 5))
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    valid = [written(parsed, value_of(draw, schema)) for _ in range(40)]
    payloads = [mutated(draw, draw.choice(valid)) if draw.random() < 0.5 else draw.choice(valid) for _ in range(200)]
    decode = decoder(schema)
    found, wrong = fates(decode, payloads), 0
    for payload, fate in zip(payloads, found, strict=True):
        want = plain(schema, payload)
        if isinstance(fate, Problem):
            wrong += 1
            assert want is None and fate.reason in REASONS and fate.detail, (payload.hex(), fate)
        else:
            assert same(fate, want), payload.hex()
    assert wrong and wrong < len(payloads)
    for at in draw.sample(range(len(payloads)), 20):
        assert same(fates(decode, [payloads[at]]), [found[at]]), "alone"
    few = draw.sample(range(len(payloads)), 15)
    assert same(fates(decode, [payloads[at] for at in few]), [found[at] for at in few]), "beside others"


def field(kind: Any) -> Any:
    return {"type": "record", "name": "T", "fields": [{"name": "a", "type": "int"}, {"name": "v", "type": kind}]}


HOSTILE: list[tuple[Any, str, str, str]] = [
    ("string", "02", "malformed_avro", "v: the record ends before it"),
    ("string", "0206616263ff", "malformed_avro", "1 byte behind the record: was it written with another schema?"),
    ("string", "0208616263", "malformed_avro", "v: it claims 4 bytes, and the record has 3 more"),
    ("string", "02" + BOMB.hex(), "malformed_avro", "v: it claims 9,223,372,036,854,775,807 bytes, and the record has 0 more"),
    ("string", "0201", "malformed_avro", "v: it claims -1 bytes, and the record has 0 more"),
    ("string", "0204c328", "not_utf8", "v: b'\\xc3(' is not UTF-8"),
    ("string", "0206eda080", "not_utf8", "v: b'\\xed\\xa0\\x80' is not UTF-8"),
    ("int", "0280", "malformed_avro", "v: the record ends within a number"),
    ("int", "02808080808001", "malformed_avro", "v: 17179869184 is beyond an int"),
    ("long", "02ffffffffffffffffffff01", "malformed_avro", "v: a number has more than 64 bits"),
    ("long", "02ffffffffffffffffff02", "malformed_avro", "v: a number has more than 64 bits"),
    ("double", "0200000000", "malformed_avro", "v: it takes 8 bytes, and the record has 4 more"),
    ("boolean", "0202", "malformed_avro", "v: the byte 02 is no boolean"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "0202", "malformed_avro", "v: there is no symbol 1: the enum has 1"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "0201", "malformed_avro", "v: there is no symbol -1: the enum has 1"),
    (["null", "int"], "0204", "malformed_avro", "v: there is no branch 2: the union has 2"),
    (["null", "int"], "02" + BOMB.hex(), "malformed_avro", f"v: there is no branch {2**63 - 1}: the union has 2"),
    (
        {"type": "array", "items": "int"},
        "02" + BOMB.hex(),
        "malformed_avro",
        f"v: it claims {2**63 - 1:,} items, and the record has 0 bytes more",
    ),
    (
        {"type": "array", "items": "int"},
        "02ffffffffffffffffff0100",
        "malformed_avro",
        f"v: it claims {2**63:,} items, and the record has 0 bytes more",
    ),
    ({"type": "array", "items": "int"}, "0201040200", "malformed_avro", "v: a block claims to end 1 byte after where it does"),
    ({"type": "array", "items": "int"}, "02010102", "malformed_avro", "v: a block claims -1 bytes, and the record has 1 more"),
    ({"type": "map", "values": "int"}, "020402610202610400", "does_not_fit", "v: the map has the key 'a' twice"),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        "02" + BOMB.hex(),
        "does_not_fit",
        f"v: {2**63 - 1} microseconds since 1970 are not within the years 1 to 9999",
    ),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        "02" + BOMB.hex(),
        "does_not_fit",
        f"v: {2**63 - 1} milliseconds since 1970 are not within the years 1 to 9999",
    ),
    (
        {"type": "int", "logicalType": "date"},
        "02ffffffff0f",
        "does_not_fit",
        "v: -2147483648 days since 1970 are not within the years 1 to 9999",
    ),
    (
        {"type": "int", "logicalType": "time-millis"},
        "0201",
        "does_not_fit",
        "v: -1 milliseconds since midnight are no time of a day",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        "0206018699",
        "does_not_fit",
        "v: 999.93 is beyond DECIMAL(4,2)",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        "0200",
        "does_not_fit",
        "v: 0 bytes are no number of at most 38 digits",
    ),
]


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case[0]}: {case[1]}"[:60])
def test_what_is_wrong_is_named(case: tuple[Any, str, str, str]) -> None:
    kind, payload, reason, detail = case
    decode = decoder(field(kind))
    want = Problem(reason, detail)
    raw = bytes.fromhex(payload)
    assert fates(decode, [raw]) == [want]
    assert fates(decode, [raw] * 40) == [want] * 40


def test_blocks_with_their_size_are_read() -> None:
    decode = decoder(field({"type": "array", "items": "int"}))
    raw = bytes.fromhex("020304020406020800")
    raw = bytes.fromhex("02" + "03" + "04" + "0204" + "02" + "08" + "00")  # of two items in two bytes, then of one
    assert fates(decode, [raw]) == [{"a": 1, "v": [1, 2, 4]}]
    assert fates(decode, [raw] * 40) == [{"a": 1, "v": [1, 2, 4]}] * 40


def test_a_bomb_in_a_field_that_nobody_needs_costs_nothing() -> None:
    schema = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}, {"name": "v", "type": "int"}],
    }
    text = SchemaText("avro", json.dumps(schema))
    decode = schema_reader.payload_decoder(text, text, pa.schema([pa.field("v", pa.int32())]), None, is_framed=False)
    assert fates(decode, [BOMB + b"\0\x02"]) == [{"v": 1}]
    assert fates(decode, [BOMB + b"\0\x02"] * 30) == [{"v": 1}] * 30


@pytest.mark.parametrize("kind", ["string", {"type": "array", "items": "int"}, {"type": "array", "items": "double"}])
def test_memory_and_time_are_bounded_by_the_payload(kind: Any) -> None:
    size = 1_000_000
    count = bytearray()
    number = size * 2 if kind == "string" else (size if kind["items"] == "int" else size // 8) * 2
    while number > 127:
        count.append(number & 127 | 128)
        number >>= 7
    raw = b"\x02" + bytes([*count, number]) + b"\x00" * size + (b"" if kind == "string" else b"\0")
    decode = decoder(field(kind))
    tracemalloc.start()
    before = time.process_time()
    found = decode.decode([raw])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.problems == {} and len(found.columns["v"]) == 1
    assert peak < 60 * size and time.process_time() - before < 20


def test_long_texts_land() -> None:
    decode = decoder(field("string"))
    schema = fastavro.parse_schema(field("string"))
    texts = ["é" * 5_000_000, "short", "x" * 10_000_000]
    found = fates(decode, [written(schema, {"a": at, "v": text}) for at, text in enumerate(texts)])
    assert [row["v"] for row in found] == texts


@pytest.mark.parametrize("blocks", [1, 50])
def test_long_lists_of_numbers_are_read_by_record(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, read = 0, many._READERS[NumberPart]

    def counted(*args: Any) -> None:
        nonlocal rounds
        rounds += 1
        read(*args)

    monkeypatch.setitem(many._READERS, NumberPart, counted)
    items = bytes([2, 4]) * (1000 // blocks)
    long = b"\x02" + (count_of(len(items)) + items) * blocks + b"\0"
    short = b"\x02\x04\x06\x08\0"
    found = fates(decoder(field({"type": "array", "items": "int"})), [long] * 30 + [short] * 3)
    assert [row["v"] for row in found] == [[1, 2] * (len(items) // 2) * blocks] * 30 + [[3, 4]] * 3
    assert 0 < rounds < 200


def count_of(items: int) -> bytes:
    found, left = bytearray(), items * 2
    while left > 127:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])
