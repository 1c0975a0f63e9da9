"""Which column a value with nothing inside goes into: by the type that wrote it, by the one that reads it, and by the column.

What a value stands for is what its writer says, or the reader where the writer says nothing. It lands as the same value in the
column, or not at all. Pure.
"""

from __future__ import annotations

import pyarrow as pa

from lakebound.formats.avro import numbers, texts
from lakebound.formats.avro.decimals import decimals, whole_as_decimals
from lakebound.formats.avro.logical import MOST_DIGITS
from lakebound.formats.avro.mapping import DURATION, TIMESTAMP, TIMESTAMP_NTZ
from lakebound.formats.avro.numbers import Convert
from lakebound.formats.avro.shape import FixedPart, Part
from lakebound.formats.avro.types import Enum, Fixed, Logical, Primitive
from lakebound.formats.avro.written_times import WRITTEN_TIMES, written_times
from lakebound.formats.json.leaves import name_of
from lakebound.formats.schemas import UnreadableSchemaError

READ_AS = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
"""Which types read what a type wrote; each other one reads itself alone."""
_PER_SECOND = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}
_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = {"float": (pa.float32(), pa.float64()), "double": (pa.float64(),)}
_TEXTS = {pa.string(): texts.texts, pa.binary(): texts.binaries()}
LeafType = Primitive | Fixed | Enum


def leaf_conversion(part: Part, reader: LeafType, kind: pa.DataType) -> Convert:
    """Return what makes a column of what was read of a part.

    Args:
        part: As it was written.
        reader: As what it is read.
        kind: Of the column.

    Raises:
        UnreadableSchemaError: It cannot be read so, or does not go into the column.
    """
    writer = part.type
    if isinstance(writer, Enum):
        found = _of_enum(writer, reader, kind)
    elif isinstance(writer, Fixed):
        if not isinstance(reader, Fixed) or reader.size != writer.size:
            raise _unread(part, reader)
        found = _of_bytes(_meaning(part, writer.logical, reader), kind, writer.size)
    elif isinstance(writer, Primitive):
        found = _of_primitive(part, writer, reader, kind)
    else:
        found = None
    if found is None:
        raise UnreadableSchemaError(part.path, f"{_a(writer)} does not go into {column_name(kind)}")
    return found


def column_name(kind: pa.DataType) -> str:
    """Return the type of a column in words."""
    if pa.types.is_nested(kind):
        return "STRUCT" if pa.types.is_struct(kind) else "MAP" if pa.types.is_map(kind) else "ARRAY"
    return name_of(kind) if kind != pa.string() else "STRING"


def _a(kind: object) -> str:
    return f"{'an' if str(kind)[0] in 'aeiou' else 'a'} {kind}"


def _unread(part: Part, reader: object) -> UnreadableSchemaError:
    return UnreadableSchemaError(part.path, f"{_a(part.type)} cannot be read as {_a(reader)}")


def _of_enum(writer: Enum, reader: LeafType, kind: pa.DataType) -> Convert | None:
    if kind != pa.string():
        return None
    if isinstance(reader, Enum):
        known = {*reader.symbols}
        names = [symbol if symbol in known else reader.default for symbol in writer.symbols]
        return texts.symbols(names, writer.symbols, str(reader))
    return texts.symbols(writer.symbols, writer.symbols, "") if reader == Primitive("string") else None


def _of_primitive(part: Part, writer: Primitive, reader: LeafType, kind: pa.DataType) -> Convert | None:
    if not isinstance(reader, Primitive) or reader.kind not in READ_AS.get(writer.kind, (writer.kind,)):
        raise _unread(part, reader)
    meaning = _meaning(part, writer.logical, reader)
    if writer.kind == "boolean":
        return numbers.booleans if kind == pa.bool_() else None
    if isinstance(part, FixedPart):
        return numbers.floats(part.size, kind) if kind in _FLOATS[writer.kind] else None
    if writer.kind == "string" and meaning is None and kind in WRITTEN_TIMES:
        return written_times(kind, name_of(kind))
    if writer.kind in ("string", "bytes"):
        return _of_bytes(meaning, kind, None)
    return _of_whole(writer, meaning, reader.logical, kind)


def _meaning(part: Part, written: Logical | None, reader: Primitive | Fixed) -> Logical | None:
    """Return what values stand for; it is refused to read them as something else."""
    if written is None or reader.logical is None:
        return written or reader.logical
    if _family(written) != _family(reader.logical):
        raise _unread(part, reader)
    return written


def _family(logical: Logical) -> str:
    return logical.name.rpartition("-")[0] or logical.name


def _of_whole(writer: Primitive, meaning: Logical | None, read_as: Logical | None, kind: pa.DataType) -> Convert | None:
    name = meaning.name if meaning is not None else ""
    if kind in _WHOLE:
        factor, divisor = _ratio(meaning, read_as)
        return numbers.whole_numbers(64 if writer.kind == "long" else 32, kind, name_of(kind), factor, divisor)
    if name == "date":
        return numbers.days if kind == pa.date32() else None
    per_second = _per_second(meaning)
    if name.startswith("time-"):
        return numbers.clock_texts(per_second, max(per_second, _per_second(read_as))) if kind == pa.string() else None
    if "timestamp-" in name:
        is_its = kind == (TIMESTAMP_NTZ if name.startswith("local-") else TIMESTAMP)
        return numbers.moments(kind, per_second) if is_its and not name.endswith("-nanos") else None
    if kind == pa.string() and not name:
        return numbers.whole_as_texts
    if pa.types.is_decimal128(kind):
        return whole_as_decimals(kind)
    return numbers.whole_as_floats(kind, name_of(kind)) if kind in _FLOATS["float"] else None


def _ratio(written: Logical | None, reader: Logical | None) -> tuple[int, int]:
    """Return how the reader's unit of time follows from the writer's: by multiplying and dividing."""
    first, second = _per_second(written), _per_second(reader)
    return (max(second // first, 1), max(first // second, 1)) if first and second else (1, 1)


def _per_second(logical: Logical | None) -> int:
    """Return what a unit of time has in a second; 0 where there is none."""
    return _PER_SECOND.get(logical.name.rpartition("-")[2], 0) if logical is not None else 0


def _of_bytes(meaning: Logical | None, kind: pa.DataType, size: int | None) -> Convert | None:
    if kind == pa.binary():
        return texts.binaries(size)
    name = meaning.name if meaning is not None else ""
    if meaning is not None and name == "decimal":
        return (
            decimals(meaning.scale, kind, size) if pa.types.is_decimal128(kind) and meaning.precision <= MOST_DIGITS else None
        )
    if name == "uuid" and size is not None:
        return texts.uuid_texts if kind == pa.string() else None
    if name == "duration":
        return texts.durations if kind == DURATION else None
    return _TEXTS.get(kind) if size is None and name != "big-decimal" else None
