"""Message indexes behind maps and groups, which serialisers count differently: no record is read as two messages."""

from __future__ import annotations

import random

import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from tests.support.formats.protobuf import message_class

from lakebound.formats.protobuf.files import files_of
from lakebound.formats.protobuf.records import indexes_of, message_at, messages_at, record_of
from lakebound.formats.protobuf.schema_reader import columns_of, payload_decoder
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError

TEXT = """syntax = "proto3"; message O {
  map<string, int32> m = 1; message A { string x = 1; } message B { string x = 1; } A a = 2; B b = 3;
}"""


def reasons(record: str, *starts: bytes, text: str = TEXT) -> list[str]:
    schema = SchemaText("protobuf", text)
    decoder = payload_decoder(schema, schema, columns_of(schema, record), record, is_framed=True)
    found = decoder.decode([start + b"\x0a\x01z" for start in starts])
    return [found.problems[at].reason if at in found.problems else "landed" for at in range(len(starts))]


BEGINNINGS = [bytes([4, 0, 2 * index]) for index in range(4)]


def test_indexes_that_name_two_messages_are_read_as_neither() -> None:
    assert reasons("O.A", *BEGINNINGS) == ["landed", "no_message_indexes", "other_message", "no_message_indexes"]
    assert reasons("O.B", *BEGINNINGS) == ["other_message", "no_message_indexes", "landed", "no_message_indexes"]


def test_the_reason_names_both() -> None:
    schema = SchemaText("protobuf", TEXT)
    decoder = payload_decoder(schema, schema, columns_of(schema, "O.A"), "O.A", is_framed=True)
    (problem,) = decoder.decode([BEGINNINGS[1]]).problems.values()
    assert "[0, 1]" in problem.detail and "O.A or O.B" in problem.detail


def test_a_group_is_no_message_that_a_record_could_be() -> None:
    text = "message O { optional group G = 1 { optional int32 a = 2; } message A { optional string x = 1; } }"
    assert reasons("O.A", *BEGINNINGS[:3], text=text) == ["landed", "landed", "no_message_indexes"]


def test_a_message_that_shares_all_its_indexes_is_refused_where_records_name_them() -> None:
    text = TEXT.replace("A a = 2;", "message C { string x = 1; } A a = 2;")
    schema = SchemaText("protobuf", text)
    columns = columns_of(schema, "O.B")
    with pytest.raises(UnreadableSchemaError, match=r"O\.A, O\.C"):
        payload_decoder(schema, schema, columns, "O.B", is_framed=True)
    payload = message_class(text, "O.B")(x="z").SerializeToString()
    assert not payload_decoder(schema, schema, columns, "O.B", is_framed=False).decode([payload]).problems


def test_no_indexes_are_of_two_messages_in_any_schema() -> None:
    draw, shared, one_each = random.Random(17), 0, 0
    for _ in range(15):
        parts = [f"map<string, int32> m{at} = {at};" for at in range(1, draw.randrange(1, 4))]
        parts += [f"message N{at} {{ string x = 1; {_map_at_random(draw)} }}" for at in range(draw.randrange(1, 5))]
        draw.shuffle(parts)
        text = f'syntax = "proto3"; message O {{ int32 id = 20; {" ".join(parts)} }} message Other {{ string x = 1; }}'
        file = record_of(files_of(SchemaText("protobuf", text)).added_to(DescriptorPool()), None).file
        taken: dict[tuple[int, ...], str] = {}
        every = [file.message_types_by_name["O"], file.message_types_by_name["Other"]]
        every += [one for one in every[0].nested_types if one.name.startswith("N")]
        every += [inner for one in every[2:] for inner in one.nested_types if inner.name == "Deep"]
        for message in every:
            try:
                found = indexes_of(message)
            except UnreadableSchemaError:
                shared += 1
                continue
            for indexes in found:
                assert taken.setdefault(indexes, message.full_name) == message.full_name
                assert [one.full_name for one in messages_at(file, indexes)] == [message.full_name]
                only = message_at(file, indexes)
                assert only is not None and only.full_name == message.full_name
                one_each += 1
    assert one_each > 30 and shared


def _map_at_random(draw: random.Random) -> str:
    return draw.choice(("", "message Deep { int32 n = 1; }", "map<string, int32> m = 2; message Deep { int32 n = 1; }"))
