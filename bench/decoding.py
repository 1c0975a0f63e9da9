"""The time in which the driver decodes a record of eight flat fields, in each format, by how many records come at once.

The least of many repeats, alternating between the formats. Run it on one core that does nothing else:
``taskset -c 1 python bench/decoding.py``. With ``--profile avro`` it says instead in which functions the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Sequence
from io import BytesIO

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lakebound.formats.contract import Records, ValueDecoder
from lakebound.formats.kinds import JsonFormat, SchemaFormat, schema_reader
from lakebound.formats.schemas import KnownSchemas, SchemaKind, SchemaText

SIZES = (100, 1_000, 10_000, 100_000)
FIELDS = {
    "id": "long",
    "device": "string",
    "kind": "string",
    "site": "string",
    "count": "int",
    "value": "double",
    "ok": "boolean",
    "note": "string",
}
_COLUMNS = {"long": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
_PROTOBUF = {"long": "int64", "int": "int32", "double": "double", "boolean": "bool", "string": "string"}
_ID = 7
_FRAME = b"\0" + _ID.to_bytes(4, "big")


def body(number: int) -> dict[str, object]:
    """Return the fields of a record."""
    return {
        "id": 1_700_000_000_000 + number,
        "device": f"device-{number % 97}",
        "kind": "reading",
        "site": f"site-{number % 11}",
        "count": number % 1000,
        "value": number * 0.37,
        "ok": number % 3 == 0,
        "note": f"note {number % 1000:04d}",
    }


def avro() -> tuple[SchemaText, list[bytes]]:
    """Return the schema and the values in Avro."""
    schema = {"type": "record", "name": "Event", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
    parsed, values = parse_schema(schema), []
    for number in range(SIZES[-1]):
        out = BytesIO()
        schemaless_writer(out, parsed, body(number))
        values.append(_FRAME + out.getvalue())
    return SchemaText("avro", json.dumps(schema)), values


def protobuf() -> tuple[SchemaText, list[bytes]]:
    """Return the schema and the values in Protobuf; the byte behind the id names the schema's first message."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", syntax="proto3")
    message = file.message_type.add(name="Event")
    lines = []
    for number, (name, kind) in enumerate(FIELDS.items(), 1):
        word = _PROTOBUF[kind]
        message.field.add(name=name, number=number, type=getattr(kinds, f"TYPE_{word.upper()}"), label=kinds.LABEL_OPTIONAL)
        lines.append(f"  {word} {name} = {number};")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))
    text = "\n".join(['syntax = "proto3";', "message Event {", *lines, "}"])
    return SchemaText("protobuf", text), [
        _FRAME + b"\0" + make(**body(number)).SerializeToString() for number in range(SIZES[-1])
    ]


def of_schema(schema: SchemaText) -> ValueDecoder:
    """Return the decoder of values behind the id of a schema."""
    kind: SchemaKind = schema.kind
    columns = pa.schema([one.with_nullable(True) for one in schema_reader(kind).columns_of(schema, None)])
    return SchemaFormat(columns, schema, None, KnownSchemas(((_ID, schema),))).decoder()


def cases() -> dict[str, tuple[ValueDecoder, list[bytes]]]:
    """Return the decoders and what they get, by format."""
    columns = pa.schema([pa.field(name, _COLUMNS[kind]) for name, kind in FIELDS.items()])
    found: dict[str, tuple[ValueDecoder, list[bytes]]] = {
        "json": (JsonFormat(columns).decoder(), [json.dumps(body(number)).encode() for number in range(SIZES[-1])])
    }
    for name, (schema, values) in (("avro", avro()), ("protobuf", protobuf())):
        found[name] = of_schema(schema), values
    return found


def batch(values: Sequence[bytes], size: int) -> Records:
    """Return so many records, without headers, as the driver's reader gives them."""
    return Records([None] * size, values[:size], [()] * size)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each size")
    parser.add_argument("--profile", choices=("json", "avro", "protobuf"))
    parser.add_argument("--size", type=int, default=SIZES[0], help="records at once, of --profile")
    args = parser.parse_args()
    found = cases()
    for decoder, values in found.values():
        decoded = decoder.decode(batch(values, SIZES[-1]))
        assert not decoded.problems and decoded.columns["note"].to_pylist()[:2] == ["note 0000", "note 0001"]
    if args.profile:
        decoder, values = found[args.profile]
        records, profile = batch(values, args.size), cProfile.Profile()
        with profile:
            for _ in range(max(1, 200_000 // args.size)):
                decoder.decode(records)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    print("| format | bytes a record | " + " | ".join(f"{size:,} at once" for size in SIZES) + " |")
    print("|---|---|" + "---|" * len(SIZES))
    least = {name: dict.fromkeys(SIZES, float("inf")) for name in found}
    for size in SIZES:
        until = time.monotonic() + args.seconds
        while time.monotonic() < until:
            for name, (decoder, values) in found.items():
                records = batch(values, size)
                began = time.perf_counter()
                decoder.decode(records)
                least[name][size] = min(least[name][size], (time.perf_counter() - began) / size * 1e6)
    for name, (_, values) in found.items():
        mean = sum(map(len, values)) / len(values)
        print(f"| {name} | {mean:.0f} | " + " | ".join(f"{least[name][size]:.2f}" for size in SIZES) + " |")
    print("\nµs per record")


if __name__ == "__main__":
    main()
