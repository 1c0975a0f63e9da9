"""All versions of a schema become one set of columns; what cannot be read with them is named, and hides nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats import room
from lakebound.formats.contract import Records
from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.registered import NewSchemasError, new_schemas_in
from lakebound.formats.schemas import ReadSchemas, SchemaId, SchemaText, UnreadableSchemaError
from lakebound.formats.versions import Version, schemas_of_subjects

ID = {"name": "id", "type": "long"}
CITY = {"name": "city", "type": ["null", "string"], "default": None}
NOTE = {"name": "note", "type": "string", "default": "none"}


def avro(*fields: dict[str, Any]) -> SchemaText:
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


def versions(*schemas: SchemaText) -> list[Version]:
    return [Version(number, (number + 10,), schema) for number, schema in enumerate(schemas, 1)]


def read(
    *schemas: SchemaText, passed_over: dict[SchemaId, str] | None = None, strange: dict[SchemaId, str] | None = None
) -> ReadSchemas:
    return schemas_of_subjects({"orders-value": versions(*schemas)}, None, passed_over or {}, strange or {})


def framed(number: int, schema: SchemaText, value: dict[str, Any]) -> bytes:
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(schema.text)), value)
    return b"\0" + number.to_bytes(4, "big") + content.getvalue()


def decoded(found: ReadSchemas, *values: bytes | None) -> tuple[list[dict[str, Any]], dict[int, str]]:
    form = SchemaFormat(found.columns, found.reader, known=found.known)
    made = form.decoder().decode(Records([None] * len(values), values))
    rows = pa.table(dict(made.columns)).to_pylist()
    return rows, {at: problem.reason for at, problem in made.problems.items()}


def test_a_removed_field_keeps_its_column_and_a_new_one_has_its_default() -> None:
    old, new = avro(ID, CITY), avro(ID, NOTE)
    found = read(old, new)
    assert [(field.name, field.nullable) for field in found.columns] == [("id", True), ("note", True), ("city", True)]
    rows, problems = decoded(found, framed(11, old, {"id": 1, "city": "Bern"}), framed(12, new, {"id": 2, "note": "x"}))
    assert rows == [{"id": 1, "note": "none", "city": "Bern"}, {"id": 2, "note": "x", "city": None}]
    assert not problems


INSIDE: list[Any] = [
    lambda kind: kind,
    lambda kind: {"type": "array", "items": kind},
    lambda kind: {"type": "map", "values": kind},
    lambda kind: {"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": kind}]},
]


def around(value: Any, place: int) -> tuple[Any, Any]:
    """Return a value in each of INSIDE as it is written, and as a column has it."""
    return [(value, value), ([value], [value]), ({"k": value}, [("k", value)]), ({"inner": value}, {"inner": value})][place]


@pytest.mark.parametrize("place", range(len(INSIDE)))
def test_a_removed_field_inside_of_a_column_keeps_its_place_too(place: int) -> None:
    def order(*names: str) -> SchemaText:
        fields = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
        return avro(ID, {"name": "at", "type": ["null", INSIDE[place]({"type": "record", "name": "Place", "fields": fields})]})

    old, new = order("city", "zip"), order("city", "land")
    found = read(old, new)
    written, _ = around({"city": "Bern", "zip": "3000"}, place)
    newer, _ = around({"city": "Rom", "land": "IT"}, place)
    rows, problems = decoded(found, framed(11, old, {"id": 1, "at": written}), framed(12, new, {"id": 2, "at": newer}))
    assert not problems
    assert [row["at"] for row in rows] == [
        around({"city": "Bern", "land": None, "zip": "3000"}, place)[1],
        around({"city": "Rom", "land": "IT", "zip": None}, place)[1],
    ]


def test_a_type_that_is_removed_from_a_union_keeps_its_place_too() -> None:
    def order(*kinds: str) -> SchemaText:
        return avro(ID, {"name": "what", "type": ["null", *kinds]})

    old, new = order("string", "boolean", "long"), order("string", "long", "double")
    values = [
        framed(11, old, {"id": 1, "what": "a"}),
        framed(11, old, {"id": 2, "what": 7}),
        framed(11, old, {"id": 3, "what": True}),
    ]
    rows, problems = decoded(read(old, new), *values, framed(12, new, {"id": 4, "what": 0.5}))
    nothing = dict.fromkeys(("string", "long", "double", "boolean"))
    assert [row["what"] for row in rows] == [nothing | {"string": "a"}, nothing | {"long": 7}, nothing | {"double": 0.5}]
    # By Avro's rules the newest version does not read it.
    assert problems == {2: "does_not_fit"}


def test_records_of_many_versions_stay_in_their_order() -> None:
    old, new = avro(ID, CITY), avro(ID, NOTE)
    values = [framed(11, old, {"id": n, "city": "a"}) if n % 3 else framed(12, new, {"id": n, "note": "b"}) for n in range(100)]
    values[50] = b"{}"
    rows, problems = decoded(read(old, new), *values)
    assert [row["id"] for row in rows] == [n for n in range(100) if n != 50]
    assert problems == {50: "no_schema_id"}


def test_a_version_that_cannot_be_read_sends_its_records_alone_to_quarantine() -> None:
    text, number = avro(ID, CITY), avro(ID, {"name": "city", "type": "long"})
    found = read(number, text)
    rows, problems = decoded(found, framed(11, number, {"id": 1, "city": 5}), framed(12, text, {"id": 2, "city": "Bern"}))
    assert rows == [{"id": 2, "city": "Bern"}]
    assert problems == {0: "schema_does_not_fit"}


def test_a_newest_version_that_is_passed_over_leaves_the_columns_as_they_were() -> None:
    old, new = avro(ID, CITY), avro(ID, NOTE)
    found = read(old, new, passed_over={12: "the table has no such column"})
    assert found.columns.names == ["id", "city"]
    _, problems = decoded(found, framed(11, old, {"id": 1, "city": None}), framed(12, new, {"id": 2, "note": "x"}))
    assert problems == {1: "schema_does_not_fit"}


def test_the_newest_version_that_has_columns_is_the_reader() -> None:
    recursive = avro(ID, {"name": "next", "type": ["null", "Order"], "default": None})
    found = read(avro(ID, CITY), recursive)
    assert found.columns.names == ["id", "city"]
    assert found.known is not None
    assert "next" in dict(found.known.refused)[12]


def test_without_any_version_that_has_columns_the_newest_is_named() -> None:
    with pytest.raises(UnreadableSchemaError, match=r"next.*orders-value"):
        read(avro(ID, {"name": "next", "type": ["null", "Order"], "default": None}))


def test_subjects_share_columns_and_differ_in_none() -> None:
    found = schemas_of_subjects({"a": versions(avro(ID, CITY)), "b": [Version(1, (21,), avro(ID, NOTE))]}, None, {}, {})
    assert found.columns.names == ["id", "city", "note"]
    rows, problems = decoded(
        found, framed(11, avro(ID, CITY), {"id": 1, "city": "Bern"}), framed(21, avro(ID, NOTE), {"id": 2, "note": "x"})
    )
    # What another topic's schema has as a default is nothing that this topic's records have.
    assert rows == [{"id": 1, "city": "Bern", "note": None}, {"id": 2, "city": None, "note": "x"}]
    assert not problems
    with pytest.raises(UnreadableSchemaError, match="use a pipeline for each topic"):
        schemas_of_subjects(
            {"a": versions(avro(ID)), "b": [Version(1, (21,), avro({"name": "ID", "type": "long"}))]}, None, {}, {}
        )


def test_an_unknown_schema_is_asked_for_and_one_that_is_in_no_subject_is_bad() -> None:
    schema = avro(ID)
    value = framed(99, schema, {"id": 1})
    with pytest.raises(NewSchemasError) as caught:
        decoded(read(schema), framed(11, schema, {"id": 1}), value)
    assert (caught.value.part, caught.value.ids) == ("value", {99})
    assert (told := new_schemas_in(f"Traceback …\n{type(caught.value).__name__}: {caught.value}\n")) is not None
    assert (told.part, told.ids) == ("value", {99})
    rows, problems = decoded(read(schema, strange={99: "it is no version of subject orders-value"}), value)
    assert (rows, problems) == ([], {0: "schema_does_not_fit"})


def test_a_record_without_a_value_is_one() -> None:
    schema = avro(ID)
    rows, problems = decoded(read(schema), None, framed(11, schema, {"id": 1}), b"", b"\0\0")
    assert (rows, problems) == ([{"id": 1}], {0: "null_value", 2: "no_schema_id", 3: "no_schema_id"})


ORDER_PROTO, LINE_PROTO = "message Order { int64 id = 1; }", "message Line { string text = 1; }"


def test_a_message_that_is_put_before_the_first_one_is_not_what_records_are() -> None:
    texts = [ORDER_PROTO, f"{LINE_PROTO} {ORDER_PROTO}", f"{ORDER_PROTO} {LINE_PROTO}"]
    schemas = [SchemaText("protobuf", f'syntax = "proto3"; {text}') for text in texts]
    payloads = [b"\0\x08\x01", b"\2\2\x08\x02", b"\0\x08\x03"]
    for count in range(1, 4):
        found = read(*schemas[:count])
        assert found.columns.names == ["id"] and found.known is not None and not found.known.refused
        values = [b"\0" + (at + 11).to_bytes(4, "big") + payload for at, payload in enumerate(payloads[:count])]
        assert decoded(found, *values) == ([{"id": at + 1} for at in range(count)], {})


def test_a_first_message_that_the_newest_version_does_not_have_is_given_up() -> None:
    old, new = (SchemaText("protobuf", f'syntax = "proto3"; {text} message A {{}}') for text in (ORDER_PROTO, LINE_PROTO))
    found = read(old, new)
    assert found.columns.names[0] == "text" and found.known is not None
    assert "no message Line" in dict(found.known.refused)[11]


def test_each_subject_has_its_own_first_message() -> None:
    def of(number: int, *texts: str) -> list[Version]:
        schemas = (SchemaText("protobuf", f'syntax = "proto3"; {text}') for text in texts)
        return [Version(at, (number + at,), schema) for at, schema in enumerate(schemas, 1)]

    subjects = {"a": of(10, ORDER_PROTO, f"{LINE_PROTO} {ORDER_PROTO}"), "b": of(20, LINE_PROTO, f"{ORDER_PROTO} {LINE_PROTO}")}
    found = schemas_of_subjects(subjects, None, {}, {})
    found_values = {11: b"\0\x08\x01", 12: b"\2\2\x08\x02", 21: b"\0\x0a\1a", 22: b"\2\2\x0a\1b"}
    rows, problems = decoded(found, *(b"\0" + known.to_bytes(4, "big") + one for known, one in found_values.items()))
    assert not problems
    assert [(row["id"], row["text"]) for row in rows] == [(1, None), (2, None), (None, "a"), (None, "b")]


def test_a_record_that_is_put_before_others_of_a_union_is_not_what_records_are() -> None:
    order, line = ({"type": "record", "name": name, "fields": [ID]} for name in ("Order", "Line"))
    old, new = SchemaText("avro", json.dumps([order, "null"])), SchemaText("avro", json.dumps([line, order]))
    rows, problems = decoded(read(old, new), b"\0\0\0\0\x0b\0\x02", b"\0\0\0\0\x0c\2\x04", b"\0\0\0\0\x0c\0\x04")
    assert rows == [{"id": 1}, {"id": 2}] and problems == {2: "does_not_fit"}


@pytest.mark.parametrize("is_alias", [True, False])
def test_a_version_whose_record_has_another_name_is_another_type(is_alias: bool) -> None:
    """Two types in one subject: the newer one is refused until the pipeline names it, and makes no column."""
    text = (
        json.loads(avro(ID, NOTE).text)
        | {"name": "Payment", "namespace": "shop"}
        | ({"aliases": ["Order"]} if is_alias else {})
    )
    order, payment = avro(ID, CITY), SchemaText("avro", json.dumps(text))
    later = avro(ID, CITY, {"name": "at", "type": "long", "default": 0})
    values = framed(11, order, {"id": 1, "city": "Bern"}), framed(12, payment, {"id": 2, "note": "x"})
    found = read(order, payment, later)
    rows, problems = decoded(found, *values, framed(13, later, {"id": 3, "city": "Ulm", "at": 9}))
    assert found.known is not None
    if is_alias:
        assert not problems and "note" in found.columns.names
        return
    assert found.columns.names == ["id", "city", "at"] and problems == {1: "schema_does_not_fit"}
    assert "Payment" in dict(found.known.refused)[12] and "`record:`" in dict(found.known.refused)[12]
    assert [row["id"] for row in rows] == [1, 3]
    named = schemas_of_subjects({"orders-value": versions(order, payment, later)}, "shop.Payment", {}, {})
    rows, problems = decoded(named, *values)
    assert [row["note"] for row in rows] == ["x"] and list(problems) == [0]


def test_a_version_that_was_deleted_before_it_was_used_decides_nothing() -> None:
    mistake = SchemaText("avro", avro(ID, NOTE).text.replace("Order", "Foo"))
    both = [Version(1, (1,), mistake, is_older=True), Version(2, (2,), avro(ID, CITY))]
    found = schemas_of_subjects({"s": both}, None, {}, {})
    assert found.known is not None
    assert found.columns.names == ["id", "city"] and [one for one, _ in found.known.writers] == [2]
    assert "Foo" in dict(found.known.refused)[1]
    used = [replace(both[0], is_used=True), both[1]]
    known = schemas_of_subjects({"s": used}, None, {}, {}).known
    assert known is not None and [one for one, _ in known.writers] == [1], "the tables have followed it"
    at = [{"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}} for unit in ("millis", "micros")]
    units = [Version(1, (1,), avro(at[0]), is_older=True), Version(2, (2,), avro(at[1]))]
    known = schemas_of_subjects({"s": units}, None, {}, {}, wanted=pa.schema([("at", pa.int64())])).known
    assert known is not None and [one for one, _ in known.writers] == [2] and "millis" in dict(known.refused)[1]


@pytest.mark.parametrize("order", [("eu", "us"), ("us", "eu")])
def test_an_id_that_subjects_share_is_read_with_the_newest_of_its_own_topic(order: tuple[str, str]) -> None:
    """A registry gives one id to a text that is in two subjects: the ordinary case of a topic per region."""
    old = avro(ID)
    newest = {
        "eu": avro(ID, {"name": "x", "type": "long", "default": 5}),
        "us": avro(ID, {"name": "x", "type": "long", "default": 7}),
    }
    subjects = {f"{one}-value": [Version(1, (1,), old), Version(2, (2 if one == "eu" else 3,), newest[one])] for one in order}
    topics = {f"{one}-value": [one] for one in order}
    found = schemas_of_subjects(subjects, None, {}, {}, topics=topics)
    form = SchemaFormat(found.columns, found.reader, known=found.known)
    assert form.reads_topics
    values = [
        framed(1, old, {"id": 1}),
        framed(1, old, {"id": 2}),
        framed(2, newest["eu"], {"id": 3, "x": 1}),
        framed(1, old, {"id": 4}),
    ]
    made = form.decoder().decode(Records([None] * 4, values, None, ["eu", "us", "eu", "us"]))
    assert not made.problems
    assert pa.table(dict(made.columns)).to_pylist() == [
        {"id": 1, "x": 5},
        {"id": 2, "x": 7},
        {"id": 3, "x": 1},
        {"id": 4, "x": 7},
    ]
    alone = schemas_of_subjects({"eu-value": subjects["eu-value"]}, None, {}, {}, topics=topics)
    assert not SchemaFormat(alone.columns, alone.reader, known=alone.known).reads_topics


def test_a_schema_that_one_of_two_subjects_cannot_read_has_a_problem_in_its_topic_alone() -> None:
    old = avro(ID)
    subjects = {
        "a-value": [Version(1, (1,), old)],
        "b-value": [Version(1, (1,), old, "it imports what is not there"), Version(2, (2,), avro(ID, CITY))],
    }
    found = schemas_of_subjects(subjects, None, {}, {}, topics={"a-value": ["a"], "b-value": ["b", "c"]})
    made = (
        SchemaFormat(found.columns, found.reader, known=found.known)
        .decoder()
        .decode(Records([None] * 3, [framed(1, old, {"id": at}) for at in range(3)], None, ["a", "b", "c"]))
    )
    assert [*made.problems] == [1, 2] and "it imports what is not there" in made.problems[1].detail


def test_keys_of_topics_that_are_one_value_in_one_and_records_in_another_are_refused() -> None:
    subjects = {"a-key": [Version(1, (1,), SchemaText("avro", '"string"'))], "b-key": [Version(1, (2,), avro(ID))]}
    for each in (subjects, dict(reversed(subjects.items()))):
        with pytest.raises(
            UnreadableSchemaError, match=r"subject a-key has one value.*subject b-key has fields; use a pipeline"
        ):
            schemas_of_subjects(each, None, {}, {}, part="key")
        assert set(schemas_of_subjects(each, None, {}, {}).columns.names) == {"value", "id"}, "of values these are two columns"


def test_records_of_many_schemas_have_one_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = [avro(ID, CITY, {"name": f"f{number}", "type": "long", "default": 0}) for number in range(8)]
    values = [framed(11 + at % 8, schemas[at % 8], {"id": 1, "city": "x" * 100, f"f{at % 8}": 1}) for at in range(800)]
    found = read(*schemas)
    one = SchemaFormat(found.columns, found.reader, known=found.known).decoder().decode(Records([None] * 100, values[::8]))
    monkeypatch.setattr(room, "MOST_AT_ONCE_BYTES", 3 * sum(column.nbytes for column in one.columns.values()))
    with pytest.raises(room.TooMuchAtOnceError):
        decoded(found, *values)
    assert decoded(found, *values[:100])[1] == {}


PACKAGES = ("", "a", "a.v1", "a.v2")
INNER = "message I { int64 x = 1; } I i = 2;"
HELPER = "message Addr { string s = 1; }"
ORDER, AT_PLACE_1 = b"\x00\x08\x05", b"\x02\x02\x08\x05"
"""Records of the first message of a file, and of its second one."""


def proto(package: str, *messages: str) -> SchemaText:
    return SchemaText("protobuf", "\n".join(['syntax = "proto3";', f"package {package};" if package else "", *messages]))


def message(name: str, *, inner: bool, more: str = "") -> str:
    return f"message {name} {{ int64 id = 1; {INNER if inner else ''} {more} }}"


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize(("older", "newer"), [(one, other) for one in PACKAGES for other in PACKAGES])
def test_a_message_is_found_in_another_package_and_alone_by_another_name(older: str, newer: str, inner: bool) -> None:
    """The registry lets a subject change the package, and a producer may put messages before the one that it sends."""
    old = proto(older, message("Order", inner=inner))
    added = message("Order", inner=inner, more="int64 b = 7;")
    for new, payload, name in (
        (proto(newer, added), ORDER, None),
        (proto(newer, added.replace("Order", "OrderV2")), ORDER, None),
        (proto(newer, added, HELPER), ORDER, None),
        (proto(newer, HELPER, added), AT_PLACE_1, None),
        (proto(newer, HELPER, added), AT_PLACE_1, f"{newer}.Order".lstrip(".")),
    ):
        found = schemas_of_subjects({"orders-value": versions(old, new)}, name, {}, {})
        assert found.known is not None and not found.known.refused, new.text
        assert "id" in found.columns.names and "b" in found.columns.names and "s" not in found.columns.names
        values = [b"\0\0\0\0" + bytes([number]) + content for number, content in ((11, ORDER), (12, payload))]
        form = SchemaFormat(found.columns, found.reader, name, found.known)
        made = form.decoder().decode(Records([None] * 2, values))
        assert not made.problems and made.columns["id"].to_pylist() == [5, 5]


def test_a_message_that_may_be_another_one_is_not_read() -> None:
    """Renamed, and no longer alone: nothing says which of the two it is now."""
    found = read(proto("", message("Order", inner=False)), proto("", message("A", inner=False), message("B", inner=False)))
    rows, problems = decoded(found, b"\0\0\0\0\x0b" + ORDER, b"\0\0\0\0\x0c" + ORDER)
    assert problems == {0: "schema_does_not_fit"} and len(rows) == 1


LAYOUTS = (
    lambda text: text.replace(" = ", "="),
    lambda text: text.replace("; ", ";\n  \r\n"),
    lambda text: f"// head\n{text}/* tail\n */",
    lambda text: text.replace("{", "\t{ // it's \"one\n").replace(";", " ; /* ' */"),
)


def test_how_a_proto_text_is_laid_out_makes_no_other_schema() -> None:
    text = 'syntax = "proto3";\nmessage M { int64 a = 1; map<string, int32> m = 2; // x\n sint32 s = 3 [deprecated = true]; }'
    assert {SchemaText("protobuf", layout(text)).fingerprint for layout in LAYOUTS} == {
        SchemaText("protobuf", text).fingerprint
    }
    quoted = text.replace("true", '"a // b"')
    others = [quoted, quoted.replace("a // b", "a"), quoted.replace(" // b", "  // b")]
    others += [text.replace("a = 1", "b = 1"), text.replace("a = 1", "a = 11"), text.replace("int64", "int 64")]
    assert len({SchemaText("protobuf", one).fingerprint for one in (text, *others)}) == 1 + len(others)


@pytest.mark.parametrize("piece", ["/* ", "/*", '"', '\\"', '"\\"', "'\\'x", "// ", "a ", "*/", "/"])
def test_a_text_that_is_meant_to_harm_takes_little_time(piece: str) -> None:
    """By the square of its length, each of these would take hours."""
    assert len(SchemaText("protobuf", piece * (1_000_000 // len(piece))).fingerprint) == 64


def test_a_nested_message_is_no_other_message_of_its_last_name() -> None:
    line, order = "message Line { int64 id = 1; }", "message Order { message Line { int64 id = 1; } int64 id = 1; }"
    old, new = proto("p", line), proto("p", order, line)
    found = schemas_of_subjects({"orders-value": versions(old, new)}, "p.Order.Line", {}, {})
    assert found.known is not None and [*dict(found.known.refused)] == [11]
    inner = proto("c", "message b { message Order { int64 x = 1; } int64 y = 1; }", message("Order", inner=False))
    found = schemas_of_subjects(
        {"orders-value": versions(proto("a.b", message("Order", inner=False), HELPER), inner)}, None, {}, {}
    )
    assert found.columns.names == ["id"] and found.known is not None and not found.known.refused
