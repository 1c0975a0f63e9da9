"""Each type with each class of its values, in each place of a message, in each syntax: what was serialised is read back."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.support.formats.protobuf import message_class

from lakebound.formats.contract import Decoded
from lakebound.formats.protobuf.schema_reader import columns_of, payload_decoder
from lakebound.formats.schemas import SchemaText

UTC = datetime.UTC
MANY = 13
TEXTS = ("", "a", "é𝄞\0", "x" * 3_000)
VALUES: dict[str, tuple[Any, ...]] = {
    "double": (0.0, -0.0, 1.5, -2.25e300, 5e-324, math.inf, -math.inf, math.nan),
    "float": (0.0, -0.0, 1.5, 3.4028234663852886e38, 1.401298464324817e-45, math.inf, math.nan),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (0, 1, -1, 127, 128, 2**31 - 1, -(2**31))),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))),
    **dict.fromkeys(("uint32", "fixed32"), (0, 1, 2**31, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 1, 2**63, 2**64 - 1)),
    "bool": (False, True),
    "string": TEXTS,
    "bytes": (b"", b"\0", b"\xff\xfe", b"x" * 3_000),
}
KEYS = [kind for kind in VALUES if kind not in ("double", "float", "bytes")]
HEADS = {"proto2": 'syntax = "proto2";', "proto3": 'syntax = "proto3";', "editions": 'edition = "2023";'}
PRESENT = {"proto2": "optional ", "proto3": "optional ", "editions": ""}
KINDS = {
    "double": "double", "float": "float", "bool": "bool", "string": "string", "bytes": "binary",
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "int32"),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), "int64"),
    **dict.fromkeys(("uint64", "fixed64"), "decimal128(20, 0)"),
}  # fmt: skip


def decoded(text: str, payloads: list[bytes], columns: pa.Schema | None = None, record: str | None = None) -> Decoded:
    schema = SchemaText("protobuf", text)
    columns = columns_of(schema, record) if columns is None else columns
    decoder = payload_decoder(schema, schema, columns, record, is_framed=False)
    found = decoder.decode(payloads)
    assert found.count == len(payloads)
    # Few records are read one by one, many of them together.
    many = decoder.decode([payload for payload in payloads for _ in range(MANY)])
    assert {at // MANY for at in many.problems} == {*found.problems}
    for name, column in found.columns.items():
        again = [value for value in column.to_pylist() for _ in range(MANY)]
        assert all(same(one, other) for one, other in zip(many.columns[name].to_pylist(), again, strict=True))
    for name, column in found.columns.items():
        column.validate(full=True)
        assert column.type == columns.field(name).type
        assert len(column) == len(payloads) - len(found.problems)
    assert [*found.columns] == columns.names
    return found


def rows(found: Decoded) -> list[dict[str, Any]]:
    assert not found.problems
    return pa.table(dict(found.columns)).to_pylist(maps_as_pydicts="strict")


def same(one: Any, other: Any) -> bool:
    """Equality by which NaN is itself and the two zeros are two."""
    return repr(one) == repr(other)


def expected(kind: str, value: Any) -> Any:
    return Decimal(value) if kind.endswith("64") and kind[0] in "uf" else value


def cases() -> Iterator[tuple[str, str]]:
    for syntax in HEADS:
        for kind in VALUES:
            yield syntax, kind


@pytest.mark.parametrize(("syntax", "kind"), [*cases()])
def test_each_value_in_each_place(syntax: str, kind: str) -> None:
    there = PRESENT[syntax]
    text = f"""{HEADS[syntax]}
        message M {{
          {there}{kind} maybe = 1;
          repeated {kind} many = 2;
          map<int32, {kind}> mapped = 3;
          oneof either {{ {kind} one = 4; {kind} other = 5; }}
          {there}Inside inside = 6;
          message Inside {{ {there}{kind} value = 20000; }}
        }}"""
    made = message_class(text, "M")
    messages, wanted = [], []
    for value in VALUES[kind]:
        messages.append(made(maybe=value, many=[value, *VALUES[kind]], mapped={7: value}, other=value, inside={"value": value}))
        wanted.append((expected(kind, value), [expected(kind, each) for each in (value, *VALUES[kind])]))
    found = rows(decoded(text, [one.SerializeToString() for one in (*messages, made())]))
    for row, (value, many) in zip(found, wanted, strict=False):
        for got in (row["maybe"], row["mapped"][7], row["other"], row["inside"]["value"]):
            assert same(got, value)
        assert same(row["many"], many)
        assert row["one"] is None
    assert len(found) == len(wanted) + 1
    assert found[-1] == {"maybe": None, "many": [], "mapped": {}, "one": None, "other": None, "inside": None}


@pytest.mark.parametrize("kind", VALUES)
def test_a_field_without_presence_is_its_default_where_it_is_not_there(kind: str) -> None:
    texts = (
        f'syntax = "proto3"; message M {{ {kind} value = 1; }}',
        f'edition = "2023"; message M {{ {kind} value = 1 [features.field_presence = IMPLICIT]; }}',
        f'edition = "2023"; option features.field_presence = IMPLICIT; message M {{ {kind} value = 1; }}',
    )
    for text in texts:
        made = message_class(text, "M")
        found = rows(decoded(text, [made(value=value).SerializeToString() for value in VALUES[kind]] + [b""]))
        wanted = [expected(kind, value) for value in (*VALUES[kind], made().value)]
        assert all(same(row["value"], value) for row, value in zip(found, wanted, strict=True))
        assert str(columns_of(SchemaText("protobuf", text), None).field("value").type) == KINDS[kind]


@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_a_map(key: str) -> None:
    text = f'syntax = "proto3"; message M {{ map<{key}, In> held = 1; message In {{ int32 n = 1; }} }}'
    made = message_class(text, "M")
    message = made()
    for number, value in enumerate(VALUES[key]):
        message.held[value].n = number
    (row,) = rows(decoded(text, [message.SerializeToString()]))
    assert row["held"] == {expected(key, value): {"n": number} for number, value in enumerate(VALUES[key])}


def test_of_a_key_that_comes_twice_the_last_value_counts_and_what_an_entry_lacks_is_its_default() -> None:
    text = 'syntax = "proto3"; message M { map<string, int32> held = 1; }'
    entries = (b"\x0a\x01a\x10\x01", b"\x0a\x01b", b"\x0a\x01a\x10\x02", b"\x10\x05", b"")
    payload = b"".join(b"\x0a" + bytes([len(one)]) + one for one in entries)
    assert dict(message_class(text, "M").FromString(payload).held) == {"a": 2, "b": 0, "": 0}
    assert rows(decoded(text, [payload])) == [{"held": {"a": 2, "b": 0, "": 0}}]


@pytest.mark.parametrize("closed", [False, True])
def test_an_enum_is_its_name_and_a_number_without_one_is_kept(closed: bool) -> None:
    head = 'syntax = "proto2";' if closed else 'syntax = "proto3";'
    text = f"""{head} enum E {{ option allow_alias = true; NO = 0; A = 1; ALSO_A = 1; NEGATIVE = -1; }}
        message M {{ optional E e = 1; repeated E many = 2; map<int32, E> held = 3; }}"""
    # Bytes, as a newer writer has written them: Protobuf's own class would not keep them in a closed enum.
    tail = {0: b"\x00", 1: b"\x01", -1: b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 7: b"\x07", 300: b"\xac\x02"}
    names = {0: "NO", 1: "A", -1: "NEGATIVE", 7: "7", 300: "300"}
    payloads = []
    for raw in tail.values():
        entry = b"\x08\x05\x10" + raw
        payloads.append(
            b"\x08" + raw + b"\x10" + raw + b"\x12" + bytes([len(raw)]) + raw + b"\x1a" + bytes([len(entry)]) + entry
        )
    found = rows(decoded(text, payloads))
    assert found == [{"e": name, "many": [name, name], "held": {5: name}} for name in names.values()]


def test_groups_and_delimited_messages_are_structs() -> None:
    two = """syntax = "proto2"; message M { optional group Single = 1 { optional int32 n = 2; }
        repeated group Line = 3 { optional string s = 4; } oneof x { group Chosen = 5 { optional bool b = 6; } } }"""
    edition = """edition = "2023"; option features.message_encoding = DELIMITED; message M { S single = 1; repeated L line = 3;
        oneof x { C chosen = 5; } message S { int32 n = 2; } message L { string s = 4; } message C { bool b = 6; } }"""
    for text in (two, edition):
        made = message_class(text, "M")
        message = made(single={"n": 5}, line=[{"s": "a"}, {}], chosen={"b": False})
        found = rows(decoded(text, [message.SerializeToString(), b""]))
        full = {"single": {"n": 5}, "line": [{"s": "a"}, {"s": None}], "chosen": {"b": False}}
        assert found == [full, {"single": None, "line": [], "chosen": None}]


def test_packed_and_unpacked_numbers_are_the_same() -> None:
    text = 'syntax = "proto3"; message M { repeated int32 p = 1; repeated int32 u = 2 [packed = false]; }'
    assert rows(decoded(text, [b"\x0a\x02\x01\x02\x08\x03\x10\x04\x12\x02\x05\x06"])) == [{"p": [1, 2, 3], "u": [4, 5, 6]}]


def test_a_message_that_comes_twice_is_merged_and_of_a_value_the_last_one_counts() -> None:
    text = (
        'syntax = "proto3"; message M { In i = 1; int32 n = 2; message In { int32 a = 1; int32 b = 2; repeated int32 c = 3; } }'
    )
    payload = b"\x0a\x04\x08\x01\x18\x07\x10\x01\x0a\x04\x10\x02\x18\x08\x10\x02"
    assert rows(decoded(text, [payload])) == [{"i": {"a": 1, "b": 2, "c": [7, 8]}, "n": 2}]


ONEOF = """syntax = "proto3"; message M { In around = 1; repeated In more = 2; In of = 3;
  message In { int32 n = 9; oneof what { string a = 1; int32 b = 2; Part c = 3; fixed32 d = 4; } Part after = 5; }
  message Part { int32 x = 1; int32 y = 2; oneof own { bool p = 3; bool q = 4; } } }"""


@pytest.mark.parametrize("count", [1, 60])
def test_of_a_oneof_the_last_field_counts_as_protobuf_reads_it(count: int) -> None:
    made, draw = message_class(ONEOF, "M"), random.Random(count)
    parts: list[dict[str, Any]] = [{"a": "x"}, {"a": ""}, {"b": 0}, {"b": 7}, {"d": 5}, {"n": 3}, {"after": {"x": 4}}]
    parts += [{"c": {"x": 1}}, {"c": {"y": 2, "p": True}}, {"c": {"q": False}}]
    for _ in range(30):
        payloads = []
        for _ in range(count):
            inside = [made.In(**draw.choice(parts)).SerializeToString() for _ in range(draw.randrange(6))]
            payload = b""
            for one in inside:
                payload += draw.choice([b"\x0a", b"\x12", b"\x1a"]) + bytes([len(one)]) + one
            one = b"".join(inside)
            payloads.append(payload + b"\x12" + bytes([len(one)]) + one)
        assert rows(decoded(ONEOF, payloads)) == [as_row(made.FromString(one)) for one in payloads]


def as_row(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is None:
            found[field.name] = value if not field.has_presence or message.HasField(field.name) else None
        elif field.is_repeated:
            found[field.name] = [as_row(one) for one in value]
        else:
            found[field.name] = as_row(value) if message.HasField(field.name) else None
    return found


def test_a_oneof_of_which_one_field_is_read_is_null_where_another_one_comes_last() -> None:
    schema = SchemaText("protobuf", 'syntax = "proto3"; message M { oneof what { string a = 1; int32 b = 2; } }')
    decoder = payload_decoder(schema, schema, pa.schema([("a", pa.string())]), None, is_framed=False)
    assert rows(decoder.decode([b"\x0a\x01x\x10\x05", b"\x10\x05\x0a\x01x", b"\x10\x05"])) == [
        {"a": None},
        {"a": "x"},
        {"a": None},
    ]


WELL_KNOWN_HEAD = "".join(
    f'import "google/protobuf/{name}.proto";' for name in ("any", "duration", "empty", "struct", "timestamp", "wrappers")
)


def well_known(kind: str) -> str:
    return f"""syntax = "proto3"; {WELL_KNOWN_HEAD}
        message M {{ google.protobuf.{kind} v = 1; repeated google.protobuf.{kind} many = 2;
          map<string, google.protobuf.{kind}> held = 3; }}"""


def read_back(kind: str, *fill: Callable[[Any], object]) -> list[Any]:
    """What becomes of values of one of Protobuf's own messages, the same in each place."""
    text = well_known(kind)
    made = message_class(text, "M")
    messages = []
    for one in fill:
        message = made()
        message.v.SetInParent()
        one(message.v)
        one(message.many.add())
        message.held["k"].MergeFrom(message.v)
        messages.append(message.SerializeToString())
    found = rows(decoded(text, [*messages, b""]))
    for row in found[:-1]:
        assert same(row["many"], [row["v"]])
        assert same(row["held"]["k"], row["v"])
    assert found[-1] == {"v": None, "many": [], "held": {}}
    assert len(found) == len(fill) + 1
    return [row["v"] for row in found[:-1]]


def test_timestamps() -> None:
    moments = [
        datetime.datetime(1, 1, 1, tzinfo=UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(1970, 1, 1, tzinfo=UTC),
        datetime.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ]
    assert read_back("Timestamp", *(lambda v, moment=one: v.FromDatetime(moment) for one in moments)) == moments
    last = read_back("Timestamp", lambda v: v.FromJsonString("9999-12-31T23:59:59.999999999Z"))
    assert last == [moments[-1]], "a column has microseconds; what is below is cut off"


def test_durations_keep_their_nanoseconds() -> None:
    nanos = [0, 1, -1, 1_500_000_000, -1_500_000_000, 315_576_000_000_999_999_999, -315_576_000_000_999_999_999]

    def fill(total: int) -> Callable[[Any], None]:
        def into(value: Any) -> None:
            sign = -1 if total < 0 else 1
            value.seconds, value.nanos = sign * (abs(total) // 10**9), sign * (abs(total) % 10**9)

        return into

    assert read_back("Duration", *map(fill, nanos)) == [Decimal(total).scaleb(-9) for total in nanos]


@pytest.mark.parametrize("kind", ["bool", "bytes", "double", "float", "int32", "int64", "string", "uint32", "uint64"])
def test_wrapped_values_are_values_that_may_be_null(kind: str) -> None:
    name = {"uint32": "UInt32", "uint64": "UInt64"}.get(kind, kind.capitalize()) + "Value"
    found = read_back(name, *(lambda v, value=one: setattr(v, "value", value) for one in VALUES[kind]))
    assert all(map(same, found, [expected(kind, value) for value in VALUES[kind]]))


def test_empty_messages_are_true_where_they_are() -> None:
    assert read_back("Empty", lambda _: None) == [True]


def test_structs_and_values_are_json() -> None:
    content = {"b": [None, True, "é", {"c": -1.5}], "a": 1, "": {}}
    found = read_back("Struct", lambda v: v.update(content), lambda _: None)
    assert found == ['{"":{},"a":1.0,"b":[null,true,"é",{"c":-1.5}]}', "{}"], "sorted: always the same text"
    text = read_back("ListValue", lambda v: v.extend([1, "x", None]))[0]
    assert text == '[1.0,"x",null]'
    assert read_back("Value", lambda v: setattr(v, "null_value", 0), lambda v: setattr(v, "string_value", 'q"')) == [
        "null",
        '"q\\""',
    ]


def test_any_is_json_by_its_type_where_the_schema_has_it_and_bytes_where_not() -> None:
    text = f"""syntax = "proto3"; package p; {WELL_KNOWN_HEAD}
        message M {{ google.protobuf.Any v = 1; }} message K {{ int64 n_x = 1; }}"""
    made, known = message_class(text, "p.M"), message_class(text, "p.K")
    one, other, nothing = made(), made(), made()
    one.v.Pack(known(n_x=5))
    other.v.type_url, other.v.value = "type.googleapis.com/p.Unknown", b"\xff"
    nothing.v.SetInParent()
    found = [
        row["v"] for row in rows(decoded(text, [each.SerializeToString() for each in (one, other, nothing)], record="p.M"))
    ]
    assert found == [
        '{"@type":"type.googleapis.com/p.K","nX":"5"}',
        '{"@type":"type.googleapis.com/p.Unknown","value":"/w=="}',
        '{"@type":"","value":""}',
    ]
