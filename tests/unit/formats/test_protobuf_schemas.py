"""Texts of schemas are read as protoc reads them, or refused by name; no file is opened, and time is bounded."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from tests.support.formats.protobuf import descriptors

from lakebound.formats.protobuf.files import files_of
from lakebound.formats.protobuf.mapping import MESSAGES, TYPE_NAMES, WRAPPERS
from lakebound.formats.protobuf.schema_reader import columns_of
from lakebound.formats.schemas import Reference, SchemaText, UnreadableSchemaError
from lakebound.tables.type_names import type_name

PROTO2 = r"""
// A comment, /* and none inside
/* and one that // has a " in it */
syntax = "proto2";
package a.b;
option java_package = "x" 'y\n\x41\101"';
option (own).option = { a: 1 b: [1, 2] c { d: "}" } e: -inf };
message Outer {
  option deprecated = true;
  required int32 message = 1 [default = -5, (own.rule).min = 3, deprecated = true];
  optional .a.b.Outer.Inner full = 0x02 [json_name = "fullName"];
  optional Inner relative = 03;
  optional Kind kind = 4 [default = B];
  optional bytes raw = 5 [default = "\0\377\"" "more"];
  optional double huge = 6 [default = -1.5e300];
  optional double nothing = 7 [default = nan];
  repeated sint64 packed = 8 [packed = true];
  map<fixed32, Outer.Inner> some_map_field = 9;
  optional group Grouped = 10 { optional string inside = 1; repeated group Deep = 2 { required bool b = 1; } }
  oneof choice { option (own).x = 1; string text = 11; group Chosen = 12 { optional int32 n = 1; } }
  extensions 100, 200 to 300, 1000 to max [verification = UNVERIFIED];
  reserved 50, 60 to 70; reserved "old", "older";
  message Inner {
    enum Local { option allow_alias = true; X = 0; Y = 0; MINUS = -0x10; reserved 5 to max; }; optional Local l = 1;
  };
  enum Kind { A = 1; B = 2 [(own) = "x"]; reserved 7; }
  extend Other { optional Inner ext = 101; }
  ;
};
message Other { extensions 100 to max; }
extend Other { repeated group Ext = 102 { optional int32 n = 1; } }
service S { rpc M (Outer) returns (stream Outer) { option (own).http = { get: "/{x}" }; } }
"""
PROTO3 = """
syntax = "proto3"; package p; import public "common/types.proto"; import "google/protobuf/timestamp.proto";
message M {
  int32 a = 1; optional int32 b = 2; optional string _c = 3; repeated int64 d = 4; repeated int64 e = 5 [packed = false];
  common.Money money = 6; google.protobuf.Timestamp at = 7; oneof x { int32 f = 8; common.Kind g = 9; }
  map<string, common.Money> byName = 10; optional bool option = 11; optional bool _b = 12; M next = 13;
}
"""
COMMON = 'syntax = "proto3"; package common; message Money { string c = 1; } enum Kind { NONE = 0; }'
EDITION = """
edition = "2023"; package e; option features.field_presence = IMPLICIT; option features.(pb.cpp).string_type = VIEW;
message M {
  option features = { json_format: LEGACY_BEST_EFFORT, [pb.cpp]: { a: 1 } };
  int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; int32 c = 3 [features = { field_presence: LEGACY_REQUIRED }];
  repeated int32 d = 4 [features.repeated_field_encoding = PACKED]; N n = 5 [features.message_encoding = DELIMITED];
  string s = 6 [features.utf8_validation = NONE]; E e = 7; oneof o { string t = 8; }
}
message N { N n = 1; reserved old, older; }
enum E { option features.enum_type = OPEN; Z = 0; }
enum C { option features.enum_type = CLOSED; ONE = 1; }
"""
EDITION_2024 = """
edition = "2024"; package e4; option features.default_symbol_visibility = EXPORT_ALL;
export message M { int32 a = 1; export enum E { Z = 0; } local message L { string s = 1; } L l = 2; E e = 3; }
local enum K { UNKNOWN = 0; }
"""


def schema(text: str, **references: str) -> SchemaText:
    named = {path.replace("__", "/") + ".proto": one for path, one in references.items()}
    return SchemaText("protobuf", text, tuple(Reference(path, SchemaText("protobuf", one)) for path, one in named.items()))


def bare(file: FileDescriptorProto) -> dict[str, Any]:
    """What the bytes of messages depend on."""
    return {
        "package": file.package,
        "edition": (file.syntax or "proto2", file.edition, features(file.options)),
        "messages": [bare_message(one) for one in file.message_type],
        "enums": [bare_enum(one) for one in file.enum_type],
        "extensions": [bare_field(one) for one in file.extension],
    }


def features(options: Any) -> str:
    """Those of an edition; protoc leaves the visibility of names out of what it writes."""
    found = {field.name: value for field, value in options.features.ListFields() if not field.is_extension}
    found.pop("default_symbol_visibility", None)
    return str(found)


def bare_message(message: Any) -> Any:
    return (
        message.name,
        (message.options.map_entry, message.options.message_set_wire_format, features(message.options)),
        [bare_field(one) for one in message.field],
        [bare_field(one) for one in message.extension],
        [one.name for one in message.oneof_decl],
        [(one.start, one.end) for one in message.extension_range],
        [bare_message(one) for one in message.nested_type],
        [bare_enum(one) for one in message.enum_type],
    )


def bare_field(field: Any) -> Any:
    oneof = field.oneof_index if field.HasField("oneof_index") else None
    own = (field.name, field.number, field.type, field.label, field.type_name, field.extendee)
    return (*own, oneof, field.proto3_optional, features(field.options))


def bare_enum(enum: Any) -> Any:
    return enum.name, features(enum.options), enum.options.allow_alias, [(one.name, one.number) for one in enum.value]


@pytest.mark.parametrize("text", [PROTO2, PROTO3, EDITION, EDITION_2024, "", "message M {}"])
def test_a_text_is_read_as_protoc_reads_it(text: str) -> None:
    # protoc wants the company's own options to be defined; Lakebound passes over them.
    known = text.replace('option (own).option = { a: 1 b: [1, 2] c { d: "}" } e: -inf };', "").replace(
        "(own.rule).min = 3, ", ""
    )
    known = (
        known.replace("option (own).x = 1;", "")
        .replace('[(own) = "x"]', "")
        .replace('option (own).http = { get: "/{x}" };', "")
    )
    known = known.replace("option features.(pb.cpp).string_type = VIEW;", "").replace(", [pb.cpp]: { a: 1 }", "")
    theirs = FileDescriptorSet.FromString(descriptors(known, (("common/types.proto", COMMON),))).file[-1]
    pool = DescriptorPool()
    ours = FileDescriptorProto()
    files_of(schema(text, common__types=COMMON)).added_to(pool).CopyToProto(ours)
    assert bare(ours) == bare(theirs)


def test_a_serialised_schema_is_the_same_as_its_text() -> None:
    """As confluent-kafka registers it from Python."""
    own = FileDescriptorSet.FromString(descriptors(PROTO3.replace("M next = 13;", ""), (("common/types.proto", COMMON),))).file
    references = tuple(
        Reference(one.name, SchemaText("protobuf", base64.b64encode(one.SerializeToString()).decode())) for one in own[:-1]
    )
    made = SchemaText("protobuf", base64.b64encode(own[-1].SerializeToString()).decode() + "\n", references)
    assert columns_of(made, None) == columns_of(schema(PROTO3.replace("M next = 13;", ""), common__types=COMMON), "p.M")


@pytest.mark.parametrize(
    "path",
    [
        *(f"google/protobuf/{name}.proto" for name in ("any", "cpp_features", "descriptor", "field_mask", "type", "wrappers")),
        *("google/type/money.proto", "google/type/date.proto", "confluent/meta.proto", "confluent/type/decimal.proto"),
    ],
)
def test_what_every_schema_may_import(path: str) -> None:
    assert columns_of(schema(f'syntax = "proto3"; import "{path}"; message M {{ int32 a = 1; }}'), None).names == ["a"]


def test_what_is_imported_is_found_through_other_files() -> None:
    inner = SchemaText("protobuf", 'syntax = "proto3"; message Inner { int32 n = 1; }')
    outer = SchemaText(
        "protobuf", 'syntax = "proto3"; import "in.proto"; message Outer { Inner i = 1; }', (Reference("in.proto", inner),)
    )
    own = SchemaText("protobuf", 'import "out.proto"; message M { optional Outer o = 1; }', (Reference("out.proto", outer),))
    assert columns_of(own, None).field("o").type == pa.struct([pa.field("i", pa.struct([pa.field("n", pa.int32())]))])


def one(field: str, more: str = "") -> str:
    return f'syntax = "proto3"; message M {{ {field} }} {more}'


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("", "", "the schema has no message"),
        ("hello", "", "line 1: a message or another statement"),
        ('syntax = "proto4";', "", "the syntax 'proto4' is not known"),
        ('edition = "2026";', "", "the edition '2026' is not known"),
        ('edition = "UNSTABLE";', "", "is not known"),
        ("message M {\n\n int32 a = 1 }", "", "line 3: ';' is missing; found '}'"),
        ("message M {", "", "the text ends here"),
        ("message M { optional int32 a = 99999999999; }", "", "line 1: a number is too large"),
        ("message M { optional int32 a = 1e5; }", "", "a whole number is missing"),
        ("message M { optional int32 a = 0; }", "", "Protobuf refuses it"),
        ("message M { optional int32 a = 1; optional int32 b = 1; }", "", "Protobuf refuses it"),
        ("message M { optional Nowhere a = 1; }", "", "Nowhere"),
        ('message M { optional int32 a = 1 [features.x = "y"]; }', "", "there is no feature x"),
        ('message M { optional string a = 1 [default = "]; }', "", "is not understood"),
        ("message M { /* optional int32 a = 1; }", "", "is not understood"),
        ("message M { optional int32 a = 1; } \u2603", "", "is not understood"),
        ('import "/etc/passwd"; message M {}', "", "imports /etc/passwd, which is not among the references"),
        ('import "../own.proto"; message M {}', "", "imports ../own.proto, which is not among the references"),
        ('import "google/protobuf/descriptor_pb2.py"; message M {}', "", "which is not among the references"),
        (one("M m = 1;"), "m", "the message M contains itself"),
        (one("A a = 1;", "message A { repeated B b = 1; } message B { map<int32, A> a = 1; }"),
         "a.b.element.a.value", "A contains itself"),
        (one("A a = 1;", "message A {}"), "a", "the message A has no fields"),
        (one("int32 a = 1; A b = 2;", "message A { int32 userId = 1; int32 userid = 2; }"), "b.userid", "differs from userId"),
        (one("int32 A = 1; int32 a = 2;"), "a", "differs from A by upper and lower case only"),
        ("message M { optional int32 a = 1; extensions 5; } extend M { optional int32 x = 5; }", "", "extension x"),
        (one("A0 a = 1;", "".join(f"message A{n} {{ A{n + 1} x = 1; A{n + 1} y = 2; }}" for n in range(40))
             + "message A40 { int32 z = 1; }"), None, "more than 5,000 columns"),
        (one("A0 a = 1;", "".join(f"message A{n} {{ A{n + 1} x = 1; }}" for n in range(300)) + "message A300 { int32 z = 1; }"),
         "a", "more than 100 messages inside of each other"),
        ("message M {" * 40 + "}" * 40, "", "more than 32 levels deep"),
        ("message M { option (x) = " + "{ a " * 100_000 + "; }", "", "the text ends here"),
        ("/*" * 500_000, "", "is not understood"),
        ('"' + "\\a" * 400_000, "", "is not understood"),
        ("message M { optional int32 a = " + "9" * 900_000 + "; }", "", "a whole number is missing"),
        ("x" * 1_000_001, "", "it has 1,000,001 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_has_no_column_is_named(text: str, path: str | None, reason: str) -> None:
    start = time.process_time()
    with pytest.raises(UnreadableSchemaError) as found:
        columns_of(schema(text), None)
    assert reason in found.value.reason
    assert path is None or found.value.path == path
    assert time.process_time() - start < 5


def test_references_that_contradict_each_other_or_go_in_a_circle_are_refused() -> None:
    one, other = SchemaText("protobuf", "message A {}"), SchemaText("protobuf", "message B {}")
    with pytest.raises(UnreadableSchemaError, match=r"two different schemas are imported as a\.proto"):
        columns_of(SchemaText("protobuf", "message M {}", (Reference("a.proto", one), Reference("a.proto", other))), None)
    circle = schema('import "a.proto"; message M {}', a='import "b.proto";', b='import "a.proto";')
    with pytest.raises(UnreadableSchemaError, match="in a circle"):
        columns_of(circle, None)


def test_a_message_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UnreadableSchemaError, match=r"no message p\.X; it has p\.M, p\.M\.In"):
        columns_of(schema("package p; message M { message In { optional int32 a = 1; } }"), "p.X")
    assert columns_of(schema("package p; message M { message In { optional int32 a = 1; } }"), "p.M.In").names == ["a"]


def test_a_message_of_a_company_is_none_of_protobufs_own_by_its_name() -> None:
    text = 'syntax = "proto3"; package google.protobuf; message M { Timestamp at = 1; } message Timestamp { string text = 1; }'
    assert columns_of(schema(text), None).field("at").type == pa.struct([pa.field("text", pa.string())])


def test_required_fields_are_not_nullable() -> None:
    text = "message M { required int32 a = 1; optional int32 b = 2; required In c = 3; message In { required int32 d = 1; } }"
    assert [one.nullable for one in columns_of(schema(text), None)] == [False, True, False]
    edition = 'edition = "2023"; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }'
    assert not columns_of(schema(edition), None).field("a").nullable


PAGE = Path(__file__).parents[3] / "docs/formats/protobuf.md"
SHAPES = {
    "enum": ("E v = 1;", "STRING"),
    "message": ("In v = 1;", "STRUCT"),
    "group": ("optional group V = 1 { optional int32 a = 1; }", "STRUCT"),
    "repeated": ("repeated int32 v = 1;", "ARRAY"),
    "map": ("map<int32, int32> v = 1;", "MAP"),
    "oneof": ("oneof o { int32 v = 1; int32 w = 2; }", "the fields'"),
}
"""What each shape is in a text; a group in proto2 alone."""


def test_the_page_says_which_column_each_type_has() -> None:
    """Every type of the code is on the page, and no other."""
    table = PAGE.read_text(encoding="utf-8").partition("## Types")[2].partition("\n\n**")[0]
    said = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", table, re.MULTILINE))
    simple = [*TYPE_NAMES.values(), *WRAPPERS, *MESSAGES]
    simple.remove("enum")
    assert said.keys() == {*simple, *SHAPES}
    imports = "".join(
        f'import "google/protobuf/{name}.proto";' for name in "any duration empty struct timestamp wrappers".split()
    )
    for name, column in said.items():
        field, start = SHAPES.get(name, (f"{name} v = 1;", column))
        head = "" if name == "group" else 'syntax = "proto3";'
        text = f"{head} {imports} message M {{ {field} }} enum E {{ Z = 0; }} message In {{ optional int32 a = 1; }}"
        made = type_name(columns_of(schema(text), None).field(0).type)
        assert column == start
        assert made.startswith(column if name != "oneof" else "INT"), name
