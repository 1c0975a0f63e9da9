"""Records of older and newer schemas than the one that is read: each column takes the writer's field of its name."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.support.formats.protobuf import message_class

from lakebound.formats.protobuf.schema_reader import columns_of, payload_decoder
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError


def read(writer: str, reader: str, columns: pa.Schema, *payloads: bytes, record: str | None = None) -> list[dict[str, Any]]:
    written, own = SchemaText("protobuf", writer), SchemaText("protobuf", reader)
    found = payload_decoder(written, own, columns, record, is_framed=False).decode(payloads)
    assert not found.problems
    assert {name: column.type for name, column in found.columns.items()} == {one.name: one.type for one in columns}
    return pa.table(dict(found.columns)).to_pylist(maps_as_pydicts="strict")


def all_columns(*texts: str) -> pa.Schema:
    """What a table has that followed several schemas."""
    found: dict[str, pa.Field] = {}
    for text in texts:
        for one in columns_of(SchemaText("protobuf", text), None):
            found.setdefault(one.name, one.with_nullable(True))
    return pa.schema([*found.values()])


HEAD = 'syntax = "proto3";'
OLD = f"""{HEAD} message M {{ int32 id = 1; string gone = 2; In part = 3; repeated In parts = 4; }}
    message In {{ int32 a = 1; string x = 2; }}"""
NEW = f"""{HEAD}
    message M {{
      int32 id = 1; In part = 3; repeated In parts = 4; string text = 5; optional int32 maybe = 6; E e = 7; bool ok = 8;
      repeated string tags = 9; map<string, int32> counts = 10; double d = 11; bytes raw = 12; uint64 big = 13; In more = 14;
    }}
    message In {{ int32 a = 1; int64 b = 3; optional string c = 4; }}
    enum E {{ NONE = 0; ONE = 1; }}"""


def test_a_field_that_only_the_reader_has_is_its_default_or_null_by_presence() -> None:
    made = message_class(OLD, "M")(id=1, gone="g", part={"a": 2, "x": "y"}, parts=[{"a": 3}])
    (row,) = read(OLD, NEW, columns_of(SchemaText("protobuf", NEW), None), made.SerializeToString())
    assert row == {
        "id": 1, "part": {"a": 2, "b": 0, "c": None}, "parts": [{"a": 3, "b": 0, "c": None}], "text": "", "maybe": None,
        "e": "NONE", "ok": False, "tags": [], "counts": {}, "d": 0.0, "raw": b"", "big": 0, "more": None,
    }  # fmt: skip


def test_a_field_that_only_the_writer_has_keeps_its_value_and_one_of_neither_is_null() -> None:
    made = message_class(OLD, "M")(id=1, gone="g")
    columns = pa.schema([("gone", pa.string()), ("id", pa.int64()), ("nowhere", pa.date32()), ("text", pa.string())])
    assert read(OLD, NEW, columns, made.SerializeToString()) == [{"gone": "g", "id": 1, "nowhere": None, "text": ""}]


def test_a_renamed_field_is_two_columns_and_a_moved_number_is_none() -> None:
    old, new = f"{HEAD} message M {{ string a = 1; string b = 2; }}", f"{HEAD} message M {{ string b = 1; string c = 2; }}"
    columns = all_columns(old, new)
    assert read(old, new, columns, message_class(old, "M")(a="1", b="2").SerializeToString()) == [{"a": "1", "b": "2", "c": ""}]
    assert read(new, new, columns, message_class(new, "M")(b="1", c="2").SerializeToString()) == [
        {"a": None, "b": "1", "c": "2"}
    ]


FITS = [
    *(("int32", kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.decimal128(10, 0))),
    *(("uint32", kind) for kind in (pa.int32(), pa.int64(), pa.decimal128(10, 0), pa.decimal128(12, 2))),
    *(("int64", kind) for kind in (pa.int32(), pa.int64(), pa.decimal128(19, 0), pa.decimal128(38, 18))),
    *(("uint64", kind) for kind in (pa.int64(), pa.decimal128(20, 0), pa.decimal128(38, 0))),
    *(("float", kind) for kind in (pa.float32(), pa.float64())),
    *(("E", kind) for kind in (pa.string(), pa.int32(), pa.int64())),
    *((text, kind) for text in ("string", "bytes") for kind in (pa.string(), pa.binary())),
    ("double", pa.float64()),
    ("bool", pa.bool_()),
    ("google.protobuf.Int32Value", pa.int64()),
    ("google.protobuf.Int32Value", pa.string()),
    ("google.protobuf.Timestamp", pa.string()),
    ("In", pa.string()),
]
KINDS = sorted({kind for _, kind in FITS}, key=str)


@pytest.mark.parametrize("written", sorted({written for written, _ in FITS}))
def test_which_column_holds_which_field(written: str) -> None:
    """In all pairs: a column that cannot hold what is written is refused with its path, before a record comes."""
    text = f"""{HEAD} import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; enum E {{ Z = 0; }}
        message In {{ int32 a = 1; }} message M {{ message P {{ {written} v = 1; }} P p = 1; repeated {written} many = 2; }}"""
    schema = SchemaText("protobuf", text)
    fitting = 0
    for kind in KINDS:
        for path, column in (("p.v", pa.field("p", pa.struct([("v", kind)]))), ("many", pa.field("many", pa.list_(kind)))):
            columns = pa.schema([column])
            if (written, kind) in FITS:
                payload_decoder(schema, schema, columns, "M", is_framed=False)
                fitting += 1
            elif not _holds_more(written, kind):
                with pytest.raises(UnreadableSchemaError, match="cannot hold") as found:
                    payload_decoder(schema, schema, columns, "M", is_framed=False)
                assert found.value.path == path
    assert fitting


def _holds_more(written: str, kind: pa.DataType) -> bool:
    """Whole numbers in columns of other whole numbers: each has its test above or below."""
    whole = written in ("int32", "uint32", "int64", "uint64", "E", "google.protobuf.Int32Value")
    return whole and (pa.types.is_integer(kind) or pa.types.is_decimal(kind))


@pytest.mark.parametrize("column", [pa.struct([("v", pa.int32())]), pa.int32(), pa.map_(pa.string(), pa.int32())])
def test_another_shape_is_refused(column: pa.DataType) -> None:
    text = f"{HEAD} message M {{ repeated int32 many = 1; }}"
    schema = SchemaText("protobuf", text)
    with pytest.raises(UnreadableSchemaError, match="repeated int32, which a column") as found:
        payload_decoder(schema, schema, pa.schema([("many", column)]), None, is_framed=False)
    assert found.value.path == "many"


def test_a_number_beyond_its_column_is_a_problem_of_its_record_alone() -> None:
    text = f"{HEAD} message M {{ int64 n = 1; repeated uint64 big = 2; }}"
    made, schema = message_class(text, "M"), SchemaText("protobuf", text)
    columns = pa.schema([("n", pa.int8()), ("big", pa.list_(pa.int64()))])
    payloads = [
        made(n=127),
        made(n=128),
        made(n=-128),
        made(n=-129),
        made(big=[1, 2**63 - 1]),
        made(big=[1, 2**63]),
        made(n=-(2**63)),
    ]
    found = payload_decoder(schema, schema, columns, None, is_framed=False).decode(
        [one.SerializeToString() for one in payloads]
    )
    assert {at: one.detail for at, one in found.problems.items()} == {
        1: "n: 128 is beyond TINYINT",
        3: "n: -129 is beyond TINYINT",
        5: "big.element: 9223372036854775808 is beyond BIGINT",
        6: "n: -9223372036854775808 is beyond TINYINT",
    }
    assert found.columns["n"].to_pylist() == [127, -128, 0]


def test_a_message_in_a_text_column_is_json_also_where_it_contains_itself() -> None:
    text = f"{HEAD} message M {{ Node tree = 1; }} message Node {{ int64 n = 1; repeated Node inside = 2; }}"
    made = message_class(text, "M")(tree={"n": 1, "inside": [{"n": 2}]})
    columns = pa.schema([("tree", pa.string())])
    assert read(text, text, columns, made.SerializeToString()) == [{"tree": '{"inside":[{"n":"2"}],"n":"1"}'}]


def test_a_required_column_that_the_writer_does_not_have_is_refused_unless_it_has_a_default() -> None:
    old = "message M { optional int32 a = 1; }"
    required = "message M { optional int32 a = 1; required int32 b = 2; }"
    writer, reader = SchemaText("protobuf", old), SchemaText("protobuf", required)
    with pytest.raises(UnreadableSchemaError, match="required") as found:
        payload_decoder(writer, reader, columns_of(reader, None), None, is_framed=False)
    assert found.value.path == "b"
    columns = pa.schema([pa.field("b", pa.int32(), nullable=False)])
    assert read(old, f"{HEAD} message M {{ int32 b = 2; }}", columns, b"") == [{"b": 0}]


def test_the_message_is_found_by_its_name_in_another_place_of_the_schema() -> None:
    old = f"{HEAD} message Old {{ int32 a = 1; }} message M {{ int32 b = 1; }}"
    new = f"{HEAD} message M {{ int32 b = 1; int32 c = 2; }}"
    writer, reader = SchemaText("protobuf", old), SchemaText("protobuf", new)
    decoder = payload_decoder(writer, reader, columns_of(reader, None), None, is_framed=True)
    found = decoder.decode([b"\x02\x02\x08\x05", b"\x00\x08\x05"])
    assert found.columns["b"].to_pylist() == [5]
    assert found.problems[1].detail == "the record is a Old, and M is read"
    with pytest.raises(UnreadableSchemaError, match="no message Old; it has M"):
        payload_decoder(reader, writer, columns_of(writer, None), None, is_framed=True)


POOL = {
    "a": ("int32", 5), "b": ("string", "x"), "c": ("optional int64", 7), "d": ("repeated string", ["y", ""]),
    "e": ("bool", True), "f": ("optional bytes", b""), "g": ("In", {"n": 3}),
    "h": ("map<string, int32>", {"k": 0}), "i": ("double", 0.0),
}  # fmt: skip
ABSENT = {"a": 0, "b": "", "c": None, "d": [], "e": False, "f": None, "g": None, "h": {}, "i": 0.0}


def test_chains_of_versions_with_fields_added_and_removed_read_each_other() -> None:
    """In the columns of all versions: the value of the writer's field, else the default of the reader's, else null."""
    rnd, pairs = random.Random(5), 0
    for _ in range(6):
        versions = [sorted(rnd.sample(sorted(POOL), rnd.randrange(2, 8))) for _ in range(4)]
        texts = [
            f"{HEAD} message In {{ int32 n = 1; }} message M {{"
            + "".join(f"{POOL[name][0]} {name} = {ord(name)};" for name in version)
            + "}"
            for version in versions
        ]
        columns = pa.schema(
            [all_columns_of_m.field(name).with_nullable(True) for name in sorted({*itertools.chain(*versions)})]
        )
        for (text, fields), (other, others) in itertools.product(zip(texts, versions, strict=True), repeat=2):
            made = message_class(text, "M")(**{name: POOL[name][1] for name in fields})
            (row,) = read(text, other, columns, made.SerializeToString(), record="M")
            for name in columns.names:
                assert row[name] == (POOL[name][1] if name in fields else ABSENT[name] if name in others else None)
            pairs += 1
    assert pairs == 96


all_columns_of_m = columns_of(
    SchemaText(
        "protobuf",
        f"{HEAD} message In {{ int32 n = 1; }} message M {{"
        + "".join(f"{kind} {name} = {ord(name)};" for name, (kind, _) in POOL.items())
        + "}",
    ),
    "M",
)
