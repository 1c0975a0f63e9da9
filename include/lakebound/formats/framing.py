"""What Confluent's serialisers put around a value: which schema it was written with.

The bytes: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format. A
value begins with a zero byte and the schema's number in four bytes, big-endian; or a header of the record has a one byte and
the schema's GUID in sixteen, and the value has nothing around it. What a format has behind the id, as Protobuf's message
indexes, stands behind it in the header, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final, Literal

from lakebound.formats.contract import Headers
from lakebound.formats.schemas import PartOfRecord, SchemaId

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
Header = Literal["__key_schema_id", "__value_schema_id"]
SCHEMA_HEADERS: Final[Mapping[PartOfRecord, Header]] = {"key": KEY_HEADER, "value": VALUE_HEADER}
"""Which header may name the schema of a part of the record."""
_NUMBER, _GUID = 0, 1
_NUMBER_BYTES, _GUID_BYTES = 5, 17
_GLUE, _GLUE_COMPRESSIONS, _GLUE_BYTES = 3, (0, 5), 18
_FOREIGN = {b"\xc3\x01": "Avro's single-object encoding", b"Obj\x01": "the head of an Avro file"}


def number_at_start(value: bytes) -> int | None:
    """Return the id of the schema with which a value begins; None where it does not begin with one."""
    if len(value) < _NUMBER_BYTES or value[0] != _NUMBER:
        return None
    return int.from_bytes(value[1:_NUMBER_BYTES], "big")


def foreign_frame(value: bytes) -> str | None:
    """Return what else a value begins with that says its schema, as a noun; None where it is nothing that is known."""
    if len(value) >= _GLUE_BYTES and value[0] == _GLUE and value[1] in _GLUE_COMPRESSIONS:
        return "the frame of AWS Glue's serialisers"
    return next((what for begin, what in _FOREIGN.items() if value.startswith(begin)), None)


def schema_of(value: bytes, headers: Headers | None = None, name: Header = VALUE_HEADER) -> tuple[SchemaId, bytes] | None:
    """Return which schema a value was written with, and what stands behind the id; None where nothing says it.

    Args:
        value: As Kafka has it.
        headers: Of the record; None where nobody asked for them.
        name: Of the header that may name the schema; the last one of that name counts.
    """
    content = naming_header(headers, name)
    if content is not None:
        return _of_header(content, value)
    number = number_at_start(value)
    return None if number is None else (number, value[_NUMBER_BYTES:])


def naming_header(headers: Headers | None, name: Header) -> bytes | None:
    """Return what the header has that alone names the schema of a record; None where the value itself names it."""
    return next((content for header, content in reversed(headers or ()) if header == name and content is not None), None)


def _of_header(content: bytes, value: bytes) -> tuple[SchemaId, bytes] | None:
    if len(content) >= _GUID_BYTES and content[0] == _GUID:
        return str(uuid.UUID(bytes=content[1:_GUID_BYTES])), content[_GUID_BYTES:] + value
    number = number_at_start(content)
    return None if number is None else (number, content[_NUMBER_BYTES:] + value)
