"""What ``lakebound.formats.schemas.SchemaReader`` asks of Avro: the columns of a schema, and what decodes payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lakebound.formats.avro import units
from lakebound.formats.avro.bytes_read import MalformedError, number_at
from lakebound.formats.avro.decoder import AvroDecoder
from lakebound.formats.avro.defaults import written
from lakebound.formats.avro.making import ZEROS, Making
from lakebound.formats.avro.mapping import VALUE
from lakebound.formats.avro.mapping import columns as columns_of_type
from lakebound.formats.avro.parsing import parsed
from lakebound.formats.avro.resolution import resolved
from lakebound.formats.avro.shape import Part, RecordPart, shape_of
from lakebound.formats.avro.single import Found, SingleReader, write_down
from lakebound.formats.avro.tape import Tape
from lakebound.formats.avro.types import AvroType, Field, Primitive, Record, Union
from lakebound.formats.schemas import PayloadDecoder, RecordType, SchemaText, UnreadableSchemaError


def imports_of(text: str) -> tuple[str, ...]:
    """Return that a schema imports no files by itself."""
    return ()


def columns_of(schema: SchemaText, record: str | None) -> pa.Schema:
    """Return the columns of records of a schema; of one that is no record the column ``value``.

    Args:
        schema: The schema.
        record: Full name of the type of the records, where the schema is a union of several; None: it has one at most.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it has no column; the part is named. Or it has several records.
    """
    kind = parsed(schema)
    records = _read_records(kind, record)
    return columns_of_type(records[0] if records else kind)


def record_type(schema: SchemaText, payload: bytes) -> RecordType | None:
    """Return the record at the top of a schema; of a union the one that the payload begins with.

    Args:
        schema: The schema.
        payload: A value.

    Raises:
        UnreadableSchemaError: The schema cannot be read.
    """
    kind = parsed(schema)
    records = _records(kind, None)
    if isinstance(kind, Union):
        try:
            branch, _ = number_at(payload, 0, len(payload), "")
        except MalformedError:
            return None
        kind = kind.branches[branch] if 0 <= branch < len(kind.branches) else kind
    return RecordType(kind.name, is_default=len(records) == 1) if isinstance(kind, Record) else None


def records_of(schema: SchemaText) -> tuple[str, ...]:
    """Return the names of the records at the top of a schema.

    Raises:
        UnreadableSchemaError: It cannot be read.
    """
    return tuple(one.name for one in _records(parsed(schema), None))


def names_of_one(schema: SchemaText) -> frozenset[str]:
    """Return the names, without namespaces, that the record at the top of a schema has and had: Avro resolves no others.

    Raises:
        UnreadableSchemaError: The schema cannot be read.
    """
    records = _records(parsed(schema), None)
    names = [name for one in records for name in (one.name, *one.aliases)] if len(records) == 1 else []
    return frozenset(name.rpartition(".")[2] for name in names)


def reads_first() -> bool:
    """Return that one of several records has to be named."""
    return False


def same_record(schema: SchemaText, other: SchemaText, name: str) -> str | None:
    """Return the name of a record, where a schema has it at its top, too; None where it does not.

    Args:
        schema: The schema.
        other: Another version.
        name: Full name of the record there.

    Raises:
        UnreadableSchemaError: The schema cannot be read.
    """
    return name if name in records_of(schema) else None


def is_one_value(schema: SchemaText, record: str | None) -> bool:
    """Return whether a schema is no record, and no union with one.

    Raises:
        UnreadableSchemaError: It cannot be read.
    """
    return not _read_records(parsed(schema), record)


def units_of(schema: SchemaText, record: str | None, columns: pa.Schema) -> Mapping[str, str]:
    """Return what whole numbers that hold times count, by their paths.

    Args:
        schema: The schema.
        record: As for ``columns_of``.
        columns: That are made of it.

    Raises:
        UnreadableSchemaError: It cannot be read.
    """
    kind = parsed(schema)
    records = _read_records(kind, record)
    return dict(units.units_of(records[0] if records else _as_record(kind), pa.struct(list(columns))))


def payload_decoder(
    writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None, *, is_framed: bool
) -> PayloadDecoder:
    """Return what decodes payloads of one schema to the columns of another.

    Args:
        writer: With which the payloads were written.
        reader: With which they are read.
        columns: What is needed, by the names of fields.
        record: As for ``columns_of``.
        is_framed: Whether payloads had a frame around them; they begin with the value in any case.

    Raises:
        UnreadableSchemaError: What the writer writes cannot be read so; the part is named.
    """
    read_as, wrote = parsed(reader), parsed(writer)
    if is_framed and isinstance(wrote, Primitive) and wrote.kind == "bytes":
        told = "Confluent's serialiser for Java writes bytes without their length, the others with it: nothing tells them apart"
        raise UnreadableSchemaError(VALUE, told)
    records = _read_records(read_as, record)
    if not records:
        part: Part = _as_record_part(wrote)
        return AvroDecoder(part, resolved(part, _as_record(read_as), pa.struct(list(columns)), _default), columns)
    part, by_name = shape_of(wrote), record is not None or len(records) > 1
    return AvroDecoder(part, resolved(part, records[0], pa.struct(list(columns)), _default, by_name=by_name), columns)


def _records(kind: AvroType, record: str | None) -> list[Record]:
    """Return the records that a schema has at its top: first the one that is asked for."""
    kinds = kind.branches if isinstance(kind, Union) else (kind,)
    found = [one for one in kinds if isinstance(one, Record)]
    if record is None:
        return found
    if record not in [one.name for one in found]:
        names = ", ".join(one.name for one in found) or "none"
        raise UnreadableSchemaError("", f"the schema has no record {record} at its top; it has {names}")
    return sorted(found, key=lambda one: one.name != record)


def _read_records(kind: AvroType, record: str | None) -> list[Record]:
    """Return them where it is clear which one is read."""
    found = _records(kind, record)
    if record is None and len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UnreadableSchemaError(
            "", f"the schema has several records at its top: {names}; name the one to read by `record:`"
        )
    return found


def _as_record(kind: AvroType) -> Record:
    return Record("", (), (Field(VALUE, kind),))


def _as_record_part(kind: AvroType) -> RecordPart:
    whole = shape_of(_as_record(kind))
    if not isinstance(whole, RecordPart):
        raise TypeError(f"{whole} is no record")
    return whole


def _default(kind: AvroType, value: Any, column: pa.DataType, path: str) -> pa.Array:
    """Return a default as its column has it: written, and read as any value."""
    raw = written(kind, value, path)
    part: Part = shape_of(kind, path)
    found: Found = {}
    made = resolved(part, kind, column, _default)
    SingleReader(part, made.wanted).read(raw, 0, len(raw), found)
    tape = Tape(made.wanted)
    write_down(found, tape, made.lists)
    making = Making(raw + b"\0" * ZEROS, tape)
    values = made.maker.make(making, np.zeros(1, np.int64))
    if making.wrong:
        raise UnreadableSchemaError(path, f"the default does not fit: {making.wrong[0].detail}")
    return values
