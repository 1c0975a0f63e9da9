"""The generator's records as Avro and Protobuf, by Confluent's serialisers with a registry: the same fields as in JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from arm_names import Work
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Format = Literal["avro", "protobuf"]
FORMATS: tuple[Format, ...] = get_args(Format)
FIELDS = {"event_id": "string", "device": "string", "value": "double", "kind": "string", "pad": "string"}
"""Of each record: Avro and Protobuf have the same words for these types."""
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "namespace": "bench",
        "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()],
    }
)


@dataclass(frozen=True)
class Encoding:
    """How values are written, if not as JSON.

    Attributes:
        format: Of the values.
        registry: Address of the registry that gets their schema, with Confluent's API.
    """

    format: Format
    registry: str

    @property
    def words(self) -> list[str]:
        """What tells it to a producer in a process of its own."""
        return ["--format", self.format, "--registry", self.registry]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a producer the options of ``Encoding.words``."""
    parser.add_argument("--format", choices=FORMATS, help="of the values, instead of JSON")
    parser.add_argument("--registry", help="its address, with Confluent's API")


def encoding_asked(args: argparse.Namespace) -> Encoding | None:
    """Return what these options say."""
    return None if args.format is None else Encoding(args.format, args.registry)


def encoding_of(work: Work, registry: str | None) -> Encoding | None:
    """Return how the records of a work are written; None: as JSON."""
    return Encoding(cast(Format, work), registry) if work in FORMATS and registry is not None else None


def encoded(values: Sequence[bytes], encoding: Encoding | None, topic: str) -> Sequence[bytes]:
    """Return JSON objects as values of a format, each behind the id of its schema, which is registered for the topic."""
    if encoding is None:
        return values
    client = SchemaRegistryClient.new_client({"url": encoding.registry})
    serialise: Any = AvroSerializer(client, AVRO)
    make: Any = dict
    if encoding.format == "protobuf":
        make = _message_class()
        serialise = ProtobufSerializer(make, client, {"use.deprecated.format": False})
    context = SerializationContext(topic, MessageField.VALUE)
    return [serialise(make(**json.loads(value)), context) for value in values]


@contextmanager
def own_registry(folder: Path, works: Sequence[Work]) -> Iterator[str | None]:
    """Run a registry until the end, if any of the works needs one, and return its address."""
    if not any(work in FORMATS for work in works):
        yield None
        return
    # Needs the repository on the path (PYTHONPATH), as only these arms do.
    from tests.support.registry.server import SchemaRegistry

    folder.mkdir(parents=True, exist_ok=True)
    registry = SchemaRegistry(folder)
    with ExitStack() as ending:
        ending.callback(registry.stop)
        registry.wait_ready()
        yield registry.url


def _message_class() -> Any:
    """Return the message of the same fields, without a compiler."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="bench/event.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name="Event")
    for number, (name, kind) in enumerate(FIELDS.items(), 1):
        message.field.add(name=name, number=number, type=getattr(kinds, f"TYPE_{kind.upper()}"), label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Event"))
