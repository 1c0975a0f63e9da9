"""What confluent-kafka's own serialiser writes, with the schemas that it registers: in the value, and in headers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer, prefix_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.formats.protobuf import message_class

from lakebound.formats.contract import Problem, Records
from lakebound.formats.framing import SCHEMA_HEADERS, schema_of
from lakebound.formats.kinds import SchemaFormat, decoder_of
from lakebound.formats.protobuf.schema_reader import columns_of
from lakebound.formats.registered import KnownSchemas
from lakebound.formats.schemas import PartOfRecord, Reference, SchemaId, SchemaText

LINE = """
syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Line { google.protobuf.Timestamp at = 1; }
"""
ORDER = """
syntax = "proto3"; package shop; import "lines/line.proto";
message Refund { string id = 1; }
message Order {
  string id = 1; repeated Line lines = 2;
  message Note { string text = 1; map<string, string> by = 2; message Deep { int32 n = 1; } }
}
"""
SENT: dict[str, dict[str, Any]] = {
    "shop.Refund": {"id": "r"},
    "shop.Order": {"id": "o", "lines": [{"at": {"seconds": 5}}, {}]},
    "shop.Order.Note": {"text": "n", "by": {"a": "b"}},
    "shop.Order.Note.Deep": {"n": -1},
}


def sent(registry: Any, name: str, where: Any, field: MessageField) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A message as the serialiser writes it, and the headers that it adds."""
    made = message_class(ORDER, name, {"lines/line.proto": LINE})
    headers: dict[str, bytes] = {}
    serialiser = ProtobufSerializer(made, registry, {"use.deprecated.format": False, "schema.id.serializer": where})
    value = serialiser(made(**SENT[name]), SerializationContext("orders", field, headers))
    return value, [*headers.items()]


def text_of(registry: Any, schema: Any) -> SchemaText:
    """A registered schema with what it imports."""
    versions = [(one.name, registry.get_version(one.subject, one.version).schema) for one in schema.references]
    return SchemaText("protobuf", schema.schema_str, tuple(Reference(name, text_of(registry, one)) for name, one in versions))


@pytest.mark.parametrize("where", [prefix_schema_id_serializer, header_schema_id_serializer])
@pytest.mark.parametrize("field", [MessageField.VALUE, MessageField.KEY])
@pytest.mark.parametrize("name", SENT)
def test_what_the_serialiser_writes_is_read_with_the_schema_that_it_registered(name: str, field: Any, where: Any) -> None:
    registry: Any = SchemaRegistryClient.new_client({"url": "mock://"})
    written = {one: sent(registry, one, where, field) for one in SENT}
    part: PartOfRecord = "key" if field == MessageField.KEY else "value"
    own, headers = written[name]
    frame = schema_of(own, headers, SCHEMA_HEADERS[part])
    assert frame is not None
    schema_id: SchemaId = frame[0]
    registered = registry.get_schema_by_guid(schema_id) if isinstance(schema_id, str) else registry.get_schema(schema_id)
    schema = text_of(registry, registered)
    form = SchemaFormat(columns_of(schema, name), schema, name, KnownSchemas(((schema_id, schema),), asks=False), part)
    values = [value for value, _ in written.values()]
    empty = [None] * len(values)
    found = decoder_of(form).decode(Records(empty, values, [added for _, added in written.values()]))
    (row,) = pa.table(dict(found.columns)).to_pylist(maps_as_pydicts="strict")
    assert {key: value for key, value in row.items() if key != "lines"} == {k: v for k, v in SENT[name].items() if k != "lines"}
    others = [one for one in SENT if one != name]
    assert [found.problems[at] for at in sorted(found.problems)] == [
        Problem("other_message", f"the record is a {one}, and {name} is read") for one in others
    ]
