"""How payloads of one schema become the columns of another: each column takes the field of its name, at every level.

A field that the writer does not have is what the reader's schema says: its default, or null where it has presence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from lakebound.formats.protobuf.columns import Column, always, constant, mapped, maybe, message, repeated, struct, unwrapped
from lakebound.formats.protobuf.files import Files
from lakebound.formats.protobuf.layout import Layout, Payloads
from lakebound.formats.protobuf.leaves import Make, default_of, leaf
from lakebound.formats.protobuf.mapping import ELEMENT, MESSAGES, TYPE_NAMES, entry_of, well_known, wrapped
from lakebound.formats.protobuf.well_known import durations, json_texts, presences, timestamps
from lakebound.formats.schemas import UnreadableSchemaError

_KEY, _VALUE = "key", "value"


@dataclass(frozen=True)
class Plan:
    """How payloads become columns.

    Attributes:
        writer: The message that they are.
        payloads: Decodes them.
        columns: Of the decoded messages, by name.
        required: Names of columns that cannot be null.
    """

    writer: Descriptor
    payloads: Payloads
    columns: tuple[tuple[str, Column], ...]
    required: tuple[str, ...]


def plan_of(writer: Descriptor, files: Files, reader: Descriptor, columns: pa.Schema) -> Plan:
    """Return how payloads become columns.

    Args:
        writer: The message that was written.
        files: Of the writer's schema.
        reader: The message that says what becomes of fields which the writer does not have.
        columns: What is needed.

    Raises:
        UnreadableSchemaError: A column cannot hold what the writer writes.
    """
    planner = _Planner(Layout(files), writer.file.pool)
    makes = planner.fields([*columns], planner.layout.message(), _Sides(writer, reader, ()))
    required = tuple(one.name for one in columns if not one.nullable)
    for name in required:
        if name not in writer.fields_by_name and (
            name not in reader.fields_by_name or reader.fields_by_name[name].has_presence
        ):
            raise UnreadableSchemaError(
                name, "it is required, and the schema that the records were written with does not have it"
            )
    return Plan(writer, planner.layout.payloads(), tuple(zip(columns.names, makes, strict=True)), required)


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


@dataclass(frozen=True)
class _Planner:
    """Makes columns, and notes which fields they need.

    Attributes:
        layout: Gets the fields.
        pool: Knows the messages of the writer's schema.
    """

    layout: Layout
    pool: DescriptorPool

    def fields(self, columns: Sequence[pa.Field], to: DescriptorProto, sides: _Sides) -> list[Column]:
        """Return the columns of a message; their fields are added to ``to``."""
        return [self._column(one, to, sides) for one in columns]

    def _column(self, column: pa.Field, to: DescriptorProto, sides: _Sides) -> Column:
        field, kind = sides.writer.fields_by_name.get(column.name), column.type
        if field is None:
            return _unwritten(sides.read(column.name), kind, (*sides.path, column.name))
        if entry_of(field) is not None:
            return self._map(field, kind, to, sides)
        if field.is_repeated:
            if not pa.types.is_list(kind):
                raise _unfit(field, kind, sides)
            inside, make = self._values(field, kind.value_type, sides)
            return repeated(self.layout.add(to, field, inside), kind, make)
        inside, make = self._values(field, kind, sides)
        name = self.layout.add(to, field, inside)
        return (message if field.message_type is not None else maybe if field.has_presence else always)(name, make)

    def _map(self, field: FieldDescriptor, kind: pa.DataType, to: DescriptorProto, sides: _Sides) -> Column:
        if not pa.types.is_map(kind):
            raise _unfit(field, kind, sides)
        entries, made = sides.inside(field.name), self.layout.message()
        columns = []
        for name, type_ in ((_KEY, kind.key_type), (_VALUE, kind.item_type)):
            part = field.message_type.fields_by_name[name]
            inside, make = self._values(part, type_, entries)
            columns.append(always(self.layout.add(made, part, inside), make))  # what is missing in an entry is its default
        return mapped(self.layout.add(to, field, made), kind, *columns)

    def _values(self, field: FieldDescriptor, kind: pa.DataType, sides: _Sides) -> tuple[DescriptorProto | None, Make]:
        """Return what makes values of a field, and their message; None where that is the writer's own, or they are none."""
        path = ".".join(sides.path_of(field))
        if field.message_type is None:
            make = leaf(field, kind, path)
            if make is None:
                raise _unfit(field, kind, sides)
            return None, make
        known = well_known(field.message_type)
        if known in _TIMES and kind == MESSAGES[known]:
            return self._parts(field.message_type, ("seconds", "nanos")), _TIMES[known](path)
        if known == "google.protobuf.Empty" and kind == pa.bool_():
            return None, presences
        value = wrapped(field.message_type)
        make = None if value is None else leaf(value, kind, path)
        if make is not None:
            return self._parts(field.message_type, (_VALUE,)), unwrapped(make)
        if kind == pa.string():
            return None, json_texts(path, self.pool)
        if not pa.types.is_struct(kind) or known in MESSAGES:
            raise _unfit(field, kind, sides)
        made = self.layout.message()
        return made, struct(self.fields(kind.fields, made, sides.inside(field.name)), kind)

    def _parts(self, message_type: Descriptor, names: Sequence[str]) -> DescriptorProto:
        made = self.layout.message()
        for name in names:
            self.layout.add(made, message_type.fields_by_name[name])
        return made


_TIMES: Mapping[str, Callable[[str], Make]] = {"google.protobuf.Timestamp": timestamps, "google.protobuf.Duration": durations}


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
