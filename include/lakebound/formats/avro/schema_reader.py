"""What the project asks of Avro: the columns of a schema, and what decodes payloads (``lakebound.formats.schemas.SchemaReader``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.decoder import AvroDecoder
from lakebound.formats.avro.defaults import written
from lakebound.formats.avro.making import Making
from lakebound.formats.avro.many import ZEROS
from lakebound.formats.avro.mapping import VALUE
from lakebound.formats.avro.mapping import columns as columns_of_type
from lakebound.formats.avro.parsing import parsed
from lakebound.formats.avro.resolution import resolved
from lakebound.formats.avro.shape import Part, RecordPart, shape_of
from lakebound.formats.avro.single import Found, SingleReader, write_down
from lakebound.formats.avro.tape import Tape
from lakebound.formats.avro.types import AvroType, Field, Record, Union
from lakebound.formats.schemas import PayloadDecoder, SchemaText, UnreadableSchemaError


def columns_of(schema: SchemaText, record: str | None) -> pa.Schema:
    """Return the columns of records of a schema; of one that is no record the column ``value``.

    Args:
        schema: The schema.
        record: Full name of the type of the records, where the schema is a union of several; None: the first one.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it has no column; the part is named.
    """
    return columns_of_type(_chosen(parsed(schema), record))


def payload_decoder(writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None) -> PayloadDecoder:
    """Return what decodes payloads of one schema to the columns of another.

    Args:
        writer: With which the payloads were written.
        reader: With which they are read.
        columns: What is needed, by the names of fields.
        record: As for ``columns_of``.

    Raises:
        UnreadableSchemaError: What the writer writes cannot be read so; the part is named.
    """
    read_as, wrote = _chosen(parsed(reader), record), parsed(writer)
    part = shape_of(wrote)
    if not isinstance(read_as, Record):
        read_as, part = _as_record(read_as), _as_record_part(wrote)
    kind = pa.struct(list(columns))
    return AvroDecoder(part, resolved(part, read_as, kind, _default, by_name=record is not None), columns)


def _chosen(kind: AvroType, record: str | None) -> AvroType:
    """Return the type of the records."""
    kinds = kind.branches if isinstance(kind, Union) else (kind,)
    records = [one for one in kinds if isinstance(one, Record)]
    if record is None:
        return records[0] if records else kind
    found = next((one for one in records if one.name == record), None)
    if found is None:
        names = ", ".join(one.name for one in records) or "none"
        raise UnreadableSchemaError("", f"the schema has no record {record} at its top; it has {names}")
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
    making = Making(np.frombuffer(raw + b"\0" * ZEROS, np.uint8), tape)
    values = made.maker.make(making, np.zeros(1, np.int64))
    if making.wrong:
        raise UnreadableSchemaError(path, f"the default does not fit: {making.wrong[0].detail}")
    return values
