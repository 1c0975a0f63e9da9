"""Values of several versions of a schema, and bytes that are none: broken off, mutated, bombs, ids of other schemas."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import fastavro

from tests.support.formats import version_chains
from tests.support.formats.avro_schemas import mutated
from tests.support.formats.protobuf import message_class
from tests.support.formats.version_chains import Format, Row, Version, value_of

TEXT = {"avro": version_chains.avro_text, "protobuf": version_chains.proto_text, "json_schema": version_chains.json_text}
REFUSED, STRANGE = 77, 5_000_000
BOMBS = [
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" * 2,  # a length of 2^62
    b"\x80" * 9 + b"\x40" + b"\x00",  # 2^60 items
    b"\xff" * 9 + b"\x01" + b"\xff" * 9 + b"\x01",  # a block that counts backwards
    b"\x80" * 40,  # a number without an end
    b"\x0a" * 3_000,  # messages inside of messages
    b"\x0b" * 3_000,  # groups inside of groups
    b"\x0c" * 50,  # ends of groups that did not begin
    b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"[" * 5_000,
    b'{"id":' * 3_000,
    b'{"id": 1e999999999, "f2": "\xed\xa0\x80"}',
    b"\0" * 5_000,
    b"",
]


def payload(form: Format, version: Version, value: Row) -> bytes:
    """Return a value as its format has it."""
    if form == "json_schema":
        return json.dumps(value).encode()
    if form == "protobuf":
        made: Any = message_class(version_chains.proto_text(version), "shop.Order")(
            **version_chains.proto_value(version, value)
        )
        return b"\0" + bytes(made.SerializeToString())
    content = io.BytesIO()
    fastavro.schemaless_writer(content, _parsed(version), value)
    return content.getvalue()


@lru_cache(maxsize=64)
def _parsed(version: Version) -> Any:
    return fastavro.parse_schema(json.loads(version_chains.avro_text(version)))


def values_of(draw: random.Random, form: Format, versions: list[Version]) -> Iterator[bytes | None]:
    """Yield values; the id of a version is its number in the list, from 1."""
    frames = [b"\0" + number.to_bytes(4, "big") for number in range(1, len(versions) + 1)]
    for number, version in enumerate(versions):
        if not version.fits:
            continue
        yield from (frames[number] + bomb for bomb in BOMBS)
        for at in range(20):
            good = payload(form, version, value_of(draw, version, at))
            yield frames[number] + good
            yield from (frames[number] + mutated(draw, good) for _ in range(4))
            # Another version's bytes, an id that is refused, one of nobody, and other first bytes.
            yield draw.choice([*frames, b"\0" + REFUSED.to_bytes(4, "big"), b"\0" + STRANGE.to_bytes(4, "big")]) + good
            yield draw.choice([None, b"", b"\0", b"\0\0\0\0", b"\x01" + frames[number] + good, draw.randbytes(30), good])
    long_text = {name: "é" * 5_000_000 if name == "f4" else value for name, value in value_of(draw, versions[0], 1).items()}
    yield frames[0] + payload(form, versions[0], long_text)


def names_another(value: bytes | None, versions: int) -> bool:
    """Whether a value names a schema that the decoder does not know."""
    if value is None or len(value) < 5 or value[0] != 0:
        return False
    return int.from_bytes(value[1:5], "big") not in {*range(1, versions + 1), REFUSED, STRANGE}
