"""Protobuf as a format with schemas (``lakebound.formats.schemas.SchemaReader``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from lakebound.formats.protobuf.decoder import Framed, ProtobufDecoder
from lakebound.formats.protobuf.files import files_of, is_built_in
from lakebound.formats.protobuf.mapping import columns_of_message
from lakebound.formats.protobuf.plan import plan_of
from lakebound.formats.protobuf.records import counterpart, message_at, messages_of, read_indexes, record_of
from lakebound.formats.protobuf.source import read_file
from lakebound.formats.schemas import PayloadDecoder, RecordType, SchemaText


def columns_of(schema: SchemaText, record: str | None) -> pa.Schema:
    """Return the columns of records of a schema; a ``required`` field is not nullable.

    Args:
        schema: The schema.
        record: Full name of the message, where the schema has several; None: its first one.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it has no column; the part is named.
    """
    return columns_of_message(_message(schema, record))


def record_type(schema: SchemaText, payload: bytes) -> RecordType | None:
    """Return the message that the indexes at the beginning of a payload name; None where there are none.

    Args:
        schema: The schema.
        payload: Message indexes, and a message.

    Raises:
        UnreadableSchemaError: The schema cannot be read.
    """
    first, found = _message(schema, None), read_indexes(payload)
    message = None if found is None else message_at(first.file, found[0])
    return None if message is None else RecordType(message.full_name, message.full_name == first.full_name)


def records_of(schema: SchemaText) -> tuple[str, ...]:
    """Return the names of the messages at the top of a schema.

    Raises:
        UnreadableSchemaError: It cannot be read.
    """
    return messages_of(_message(schema, None).file)


def names_of_one(schema: SchemaText) -> frozenset[str]:
    """Return that a message may have another name in each version."""
    return frozenset()


def reads_first() -> bool:
    """Return that the first of several types is read, as all others may be parts of it."""
    return True


def same_record(schema: SchemaText, other: SchemaText, name: str) -> str | None:
    """Return what a schema calls a message of another version; None where it has none that stands for it.

    Args:
        schema: The schema.
        other: The other version.
        name: Full name of the message there.

    Raises:
        UnreadableSchemaError: One cannot be read, or the other version has no such message.
    """
    found = counterpart(_message(other, name), _message(schema, None).file)
    return None if found is None else found.full_name


def is_one_value(schema: SchemaText, record: str | None) -> bool:
    """Return that no schema is of one value without fields: all are of messages."""
    return False


def units_of(schema: SchemaText, record: str | None, columns: pa.Schema) -> Mapping[str, str]:
    """Return that no number is said to be a time: moments are messages of their own."""
    return {}


def payload_decoder(
    writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None, *, is_framed: bool
) -> PayloadDecoder:
    """Return what decodes payloads of one schema to the columns of another.

    Args:
        writer: With which the payloads were written.
        reader: It says what becomes of fields that the writer does not have.
        columns: What is needed: names of fields of either, and their types.
        record: Full name of the message, where the reader has several; None: its first one.
        is_framed: Whether payloads begin with message indexes.

    Raises:
        UnreadableSchemaError: A column cannot hold what the writer writes; it is named.
    """
    read = _message(reader, record)
    written = read if writer == reader else _counterpart(writer, read)
    plan = plan_of(written, read, columns)
    return ProtobufDecoder(plan, Framed.of(written) if is_framed else None)


def _counterpart(writer: SchemaText, read: Descriptor) -> Descriptor:
    # Where none stands for it, the error that there is none of its name says which ones there are.
    return counterpart(read, _message(writer, None).file) or _message(writer, read.full_name)


def imports_of(text: str) -> tuple[str, ...]:
    """Return the paths of the files that a schema imports, without those that every schema may import.

    Raises:
        UnreadableSchemaError: It cannot be read; the line is named.
    """
    return tuple(path for path in read_file(text, "").dependency if not is_built_in(path))


@lru_cache(maxsize=64)
def _message(schema: SchemaText, name: str | None) -> Descriptor:
    return record_of(files_of(schema).added_to(DescriptorPool()), name)
