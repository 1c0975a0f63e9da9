"""How payloads of one schema become the columns of another: each column takes the field of its name, at every level.

A field that the writer does not have is what the reader's schema says: its default, or null where it has presence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from lakebound.formats.merged_fields import names_in_other_case
from lakebound.formats.protobuf.columns import Column, Messages, constant, mapped, repeated, single, struct
from lakebound.formats.protobuf.leaves import default_of, leaf, wire_kind
from lakebound.formats.protobuf.mapping import ELEMENT, MESSAGES, TYPE_NAMES, entry_of, well_known, wrapped
from lakebound.formats.protobuf.shape import Shape
from lakebound.formats.protobuf.walk import GROUP, LENGTH
from lakebound.formats.protobuf.well_known import NANOS_TAG, SECONDS_TAG, durations, json_texts, presences, timestamps
from lakebound.formats.schemas import UnreadableSchemaError

_KEY, _VALUE = "key", "value"
_TIMES: Mapping[str, Callable[[str], Column]] = {
    "google.protobuf.Duration": durations,
    "google.protobuf.Timestamp": timestamps,
}


@dataclass(frozen=True)
class Plan:
    """How payloads become columns.

    Attributes:
        record: Full name of the message that they are.
        shape: What is read of them.
        columns: Made of them, by name.
        required: Names of columns that cannot be null.
    """

    record: str
    shape: Shape
    columns: tuple[tuple[str, Column], ...]
    required: tuple[str, ...]


def plan_of(writer: Descriptor, reader: Descriptor, columns: pa.Schema) -> Plan:
    """Return how payloads become columns.

    Args:
        writer: The message that was written.
        reader: The message that says what becomes of fields which the writer does not have.
        columns: What is needed.

    Raises:
        UnreadableSchemaError: A column cannot hold what the writer writes.
    """
    sides = _Sides(writer, reader, ())
    shape = _shape(writer, ())
    makes = _columns([*columns], shape, sides)
    required = tuple(one.name for one in columns if not one.nullable)
    for name in required:
        default = reader.fields_by_name.get(name)
        if name not in writer.fields_by_name and (default is None or default.has_presence):
            raise UnreadableSchemaError(name, "it is required, and the schema of the records does not have it")
    return Plan(writer.full_name, shape, tuple(zip(columns.names, makes, strict=True)), required)


@dataclass(frozen=True)
class _Sides:
    """Where a column lies.

    Attributes:
        writer: The message that was written.
        reader: The one in its place in the reader's schema; None: that has none there.
        path: Names that lead to it.
    """

    writer: Descriptor
    reader: Descriptor | None
    path: tuple[str, ...]

    def read(self, name: str) -> FieldDescriptor | None:
        """Return the reader's field of a name."""
        return None if self.reader is None else self.reader.fields_by_name.get(name)

    def inside(self, name: str) -> _Sides:
        """Return the same within the messages of a field that the writer has."""
        written, read = self.writer.fields_by_name[name], self.read(name)
        return _Sides(written.message_type, None if read is None else read.message_type, self.path_of(written))

    def path_of(self, field: FieldDescriptor) -> tuple[str, ...]:
        """Return the names that lead to the values of one of the writer's fields."""
        is_list = field.is_repeated and entry_of(field) is None
        return (*self.path, field.name, ELEMENT) if is_list else (*self.path, field.name)


def _columns(columns: Sequence[pa.Field], shape: Shape, sides: _Sides) -> list[Column]:
    """Return the columns of a message; what they need is added to the shape."""
    read = () if sides.reader is None else sides.reader.fields_by_name
    for name, other in names_in_other_case([one.name for one in columns], sides.writer.fields_by_name, read).items():
        told = f"the schema calls it {other}, and names of fields differ by upper and lower case: keep a name as it is"
        raise UnreadableSchemaError(".".join((*sides.path, name)), f"{told}, in the schema and in `schema:`")
    return [_column(one, shape, sides) for one in columns]


def _column(column: pa.Field, shape: Shape, sides: _Sides) -> Column:
    """Return a column of a message; what it needs is added to the shape."""
    field, kind = sides.writer.fields_by_name.get(column.name), column.type
    if field is None:
        return _unwritten(sides.read(column.name), kind, (*sides.path, column.name))
    if entry_of(field) is not None:
        return _map(field, kind, shape, sides)
    if field.is_repeated:
        return _list(field, kind, shape, sides)
    return _single(field, kind, shape, sides, is_always_there=not field.has_presence)


def _list(field: FieldDescriptor, kind: pa.DataType, shape: Shape, sides: _Sides) -> Column:
    if not pa.types.is_list(kind):
        raise _unfit(field, kind, sides)
    tag = _needed(field, shape)
    if field.message_type is not None:
        return repeated(tag, kind, _messages(field, kind.value_type, sides).values)
    path = ".".join(sides.path_of(field))
    values = leaf(field, kind.value_type, path)
    if values is None:
        raise _unfit(field, kind, sides)
    if tag & 7 == LENGTH:
        return repeated(tag, kind, values)
    packed = field.number << 3 | LENGTH
    shape.wanted.add(packed)
    return repeated(tag, kind, values, (packed, path))


def _map(field: FieldDescriptor, kind: pa.DataType, shape: Shape, sides: _Sides) -> Column:
    if not pa.types.is_map(kind):
        raise _unfit(field, kind, sides)
    entries = sides.inside(field.name)
    inside = _shape(field.message_type, entries.path)
    parts = (field.message_type.fields_by_name[name] for name in (_KEY, _VALUE))
    kinds = (kind.key_type, kind.item_type)
    # What is missing in an entry is its default.
    keys, items = (_single(part, one, inside, entries, is_always_there=True) for part, one in zip(parts, kinds, strict=True))
    return mapped(_needed(field, shape), kind, inside, keys, items)


def _single(field: FieldDescriptor, kind: pa.DataType, shape: Shape, sides: _Sides, *, is_always_there: bool) -> Column:
    tag = _needed(field, shape)
    if field.message_type is not None:
        messages = _messages(field, kind, sides)
        return messages.always(tag) if is_always_there else messages.single(tag)
    values = leaf(field, kind, ".".join(sides.path_of(field)))
    if values is None:
        raise _unfit(field, kind, sides)
    return single(tag, kind, values, pa.array([default_of(field, kind)], kind) if is_always_there else None)


def _messages(field: FieldDescriptor, kind: pa.DataType, sides: _Sides) -> Messages:
    """Return what makes values of the messages of a field."""
    message_type, path = field.message_type, sides.path_of(field)
    known, shape, told = well_known(message_type), _shape(message_type, path), ".".join(path)
    if known in _TIMES and kind == MESSAGES[known]:
        shape.wanted.update((SECONDS_TAG, NANOS_TAG))
        return Messages(kind, shape, _TIMES[known](told))
    if known == "google.protobuf.Empty" and kind == pa.bool_():
        return Messages(kind, shape, presences)
    value = wrapped(message_type)
    if value is not None and leaf(value, kind, told) is not None:
        return Messages(kind, shape, _single(value, kind, shape, _Sides(message_type, None, path), is_always_there=True))
    if kind == pa.string():
        return Messages(kind, None, json_texts(message_type, told))
    if not pa.types.is_struct(kind) or known in MESSAGES:
        raise _unfit(field, kind, sides)
    inside = sides.inside(field.name)
    return Messages(kind, shape, struct(_columns(kind.fields, shape, inside), kind))


def _shape(message_type: Descriptor, path: tuple[str, ...]) -> Shape:
    return Shape({field.number: field.name for field in message_type.fields}, path)


def _needed(field: FieldDescriptor, shape: Shape) -> int:
    """Return the tag of a field, which is added to what is read."""
    tag = _tag(field)
    shape.wanted.add(tag)
    if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1:
        tags = frozenset(map(_tag, field.containing_oneof.fields))
        shape.wanted.update(tags)  # A field that nobody needs takes the value of the others away all the same.
        shape.oneofs.add(tags)
    return tag


def _tag(field: FieldDescriptor) -> int:
    is_group = field.type == FieldDescriptor.TYPE_GROUP
    kind = (GROUP if is_group else LENGTH) if field.message_type is not None else wire_kind(field)
    return int(field.number << 3 | kind)


def _unwritten(read: FieldDescriptor | None, kind: pa.DataType, path: Sequence[str]) -> Column:
    """Return the column of a field that the writer does not have."""
    if read is None or read.has_presence:
        return constant(None, kind)
    default = default_of(read, kind)
    try:
        pa.array([default], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as exc:
        told = f"the schema has {_told(read)}, whose default {default!r} a column of the type {kind} cannot hold"
        raise UnreadableSchemaError(".".join(path), told) from exc
    return constant(default, kind)


def _unfit(field: FieldDescriptor, kind: pa.DataType, sides: _Sides) -> UnreadableSchemaError:
    path = ".".join((*sides.path, field.name))
    return UnreadableSchemaError(path, f"the schema has {_told(field)}, which a column of the type {kind} cannot hold")


def _told(field: FieldDescriptor) -> str:
    if entry_of(field) is not None:
        return "a map"
    named = field.message_type or field.enum_type
    kind = named.full_name if named is not None else TYPE_NAMES[field.type]
    return f"repeated {kind}" if field.is_repeated else kind
