"""What a Protobuf message is in columns, and what has none. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from lakebound.formats.protobuf.files import WELL_KNOWN
from lakebound.formats.protobuf.records import is_entry
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import UnreadableSchemaError

MOST_COLUMNS = 5_000
"""Of a record with all that lies inside of it: a short schema can have billions."""
_DEEPEST = 100
"""As Spark's DDL has it, and Protobuf's own reader."""
_F = FieldDescriptor
TIMESTAMP = pa.timestamp("us", tz="UTC")
ELEMENT = "element"
DURATION = pa.decimal128(21, 9)
"""Seconds: Protobuf's 10,000 years in nanoseconds are more than 64 bits."""
SCALARS = MappingProxyType(
    {
        _F.TYPE_BOOL: pa.bool_(),
        _F.TYPE_BYTES: pa.binary(),
        _F.TYPE_DOUBLE: pa.float64(),
        _F.TYPE_ENUM: pa.string(),
        _F.TYPE_FIXED32: pa.int64(),
        _F.TYPE_FIXED64: pa.decimal128(20, 0),
        _F.TYPE_FLOAT: pa.float32(),
        _F.TYPE_INT32: pa.int32(),
        _F.TYPE_INT64: pa.int64(),
        _F.TYPE_SFIXED32: pa.int32(),
        _F.TYPE_SFIXED64: pa.int64(),
        _F.TYPE_SINT32: pa.int32(),
        _F.TYPE_SINT64: pa.int64(),
        _F.TYPE_STRING: pa.string(),
        _F.TYPE_UINT32: pa.int64(),
        _F.TYPE_UINT64: pa.decimal128(20, 0),
    }
)
"""Columns of values that have none inside, by their type."""
TYPE_NAMES = MappingProxyType({kind: FieldDescriptorProto.Type.Name(kind)[5:].lower() for kind in SCALARS})
"""As a .proto text has them."""
MESSAGES = MappingProxyType(
    {
        "google.protobuf.Any": pa.string(),
        "google.protobuf.Duration": DURATION,
        "google.protobuf.Empty": pa.bool_(),
        "google.protobuf.ListValue": pa.string(),
        "google.protobuf.Struct": pa.string(),
        "google.protobuf.Timestamp": TIMESTAMP,
        "google.protobuf.Value": pa.string(),
    }
)
"""Columns of Protobuf's own messages that are no STRUCT, by name; of those that wrap a value it is the value's."""
_WRAPPED = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
WRAPPERS = frozenset(f"google.protobuf.{kind}Value" for kind in _WRAPPED)
"""Protobuf's own messages that wrap one value."""


def well_known(message: Descriptor) -> str:
    """Return the full name of a message of Protobuf's own; "" of any other one, whatever it is called."""
    return str(message.full_name) if message.file.name.startswith(WELL_KNOWN) else ""


def wrapped(message: Descriptor) -> FieldDescriptor | None:
    """Return the field of a message that wraps one value, such as ``StringValue``."""
    return message.fields_by_name["value"] if well_known(message) in WRAPPERS else None


def entry_of(one: FieldDescriptor) -> Descriptor | None:
    """Return the message of a map's entries; None of a field that is no map."""
    return one.message_type if one.message_type is not None and is_entry(one.message_type) else None


def columns_of_message(message: Descriptor) -> pa.Schema:
    """Return the columns of records that are a message; a ``required`` field is not nullable.

    Raises:
        UnreadableSchemaError: A part has no column.
    """
    return pa.schema(_Mapping().fields(message, (), (message.full_name,)))


@dataclass
class _Mapping:
    """Maps one record.

    Attributes:
        count: Of columns until now.
    """

    count: int = field(default=0)

    def fields(self, message: Descriptor, path: tuple[str, ...], around: tuple[str, ...]) -> list[pa.Field]:
        """Return the columns of a message.

        Args:
            message: The message.
            path: Names of the fields that lead to it.
            around: Full names of it and of the messages in which it lies.
        """
        self._check(message, path)
        found, folded = [], dict[str, str]()
        for one in message.fields:
            inside = (*path, one.name)
            other = folded.setdefault(as_compared(one.name), one.name)
            if other != one.name:
                raise _refused(inside, f"differs from {other} by upper and lower case only, which columns of a table cannot")
            found.append(pa.field(one.name, self._type(one, inside, around), nullable=bool(path) or not one.is_required))
        return found

    def _check(self, message: Descriptor, path: tuple[str, ...]) -> None:
        if not message.fields:
            raise _refused(path, f"the message {message.full_name} has no fields: a table has no column for it")
        extensions = sorted(one.full_name for one in message.file.pool.FindAllExtensions(message))
        if extensions:
            raise _refused(
                path, f"the message {message.full_name} has the extension {extensions[0]}: extensions have no columns"
            )

    def _type(self, one: FieldDescriptor, path: tuple[str, ...], around: tuple[str, ...]) -> pa.DataType:
        entry = entry_of(one)
        if entry is not None:
            key = self._single(entry.fields_by_name["key"], (*path, "key"), around)
            return pa.map_(key, self._single(entry.fields_by_name["value"], (*path, "value"), around))
        if one.is_repeated:
            return pa.list_(pa.field(ELEMENT, self._single(one, (*path, ELEMENT), around)))
        return self._single(one, path, around)

    def _single(self, one: FieldDescriptor, path: tuple[str, ...], around: tuple[str, ...]) -> pa.DataType:
        """Return the type of one value of a field."""
        self.count += 1
        if self.count > MOST_COLUMNS:
            raise _refused(path, f"a record has more than {MOST_COLUMNS:,} columns: name the ones that you need in `schema:`")
        if len(path) > _DEEPEST:
            raise _refused(path[:1], f"has more than {_DEEPEST} messages inside of each other")
        message = one.message_type
        if message is None:
            return SCALARS[one.type]
        known = MESSAGES.get(well_known(message))
        if known is not None:
            return known
        inside = wrapped(message)
        if inside is not None:
            return SCALARS[inside.type]
        if message.full_name in around:
            raise _refused(path, f"the message {message.full_name} contains itself: a table has no column for it")
        return pa.struct(self.fields(message, path, (*around, message.full_name)))


def _refused(path: tuple[str, ...], reason: str) -> UnreadableSchemaError:
    return UnreadableSchemaError(".".join(path), reason)
