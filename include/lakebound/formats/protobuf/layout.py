"""The messages that payloads are decoded to: of the writer's the fields that are needed, with the simplest types. Pure.

Texts are bytes here and enums numbers, so that all of a batch are looked at together; every field tells whether it is there;
fields that nobody needs are not read. The bytes are the same, so that a payload is decoded as the writer's message would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from lakebound.formats.protobuf.files import Files
from lakebound.formats.schemas import UnreadableSchemaError

_PACKAGE = "lakebound.payloads"
_SIMPLE = {FieldDescriptor.TYPE_STRING: FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_ENUM: FieldDescriptor.TYPE_INT32}


@dataclass(frozen=True)
class Payloads:
    """What decodes payloads.

    Attributes:
        one: The message of one payload.
        many: A message whose field ``records`` holds many of them.
        pool: Knows all messages of the writer's schema.
    """

    one: Any
    many: Any
    pool: DescriptorPool


class Layout:
    """Gathers what is needed of a writer's messages."""

    def __init__(self, files: Files) -> None:
        """Need nothing yet.

        Args:
            files: Of the writer.
        """
        self._files = files
        self._file = FileDescriptorProto(name="lakebound/payloads.proto", package=_PACKAGE)
        many = self._file.message_type.add(name="Many").field.add(name="records", number=1)
        many.label, many.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
        many.type_name = f".{_PACKAGE}.Message1"

    def message(self) -> DescriptorProto:
        """Return a new message; the first one is that of a payload."""
        made: DescriptorProto = self._file.message_type.add(name=f"Message{len(self._file.message_type)}")
        return made

    def add(self, to: DescriptorProto, field: FieldDescriptor, inside: DescriptorProto | None = None) -> str:
        """Add a field of the writer to a message; return the name that it has there.

        Args:
            to: The message.
            field: The field.
            inside: The message of its values; None: as it is in the writer's schema.
        """
        made = to.field.add(name=f"f{len(to.field)}", number=field.number)
        made.label = FieldDescriptorProto.LABEL_REPEATED if field.is_repeated else FieldDescriptorProto.LABEL_OPTIONAL
        made.type = _SIMPLE.get(field.type, field.type)
        if field.message_type is not None:
            made.type_name = f".{field.message_type.full_name}" if inside is None else f".{_PACKAGE}.{inside.name}"
        return str(made.name)

    def payloads(self) -> Payloads:
        """Return what decodes payloads.

        Raises:
            UnreadableSchemaError: The writer's schema has messages of the same names.
        """
        pool = DescriptorPool()
        self._files.added_to(pool)
        self._file.dependency[:] = self._files.names
        try:
            file = pool.AddSerializedFile(self._file.SerializeToString())
        except TypeError as exc:  # the schema has a message of this name
            raise UnreadableSchemaError("", f"the package {_PACKAGE} is Lakebound's own: name yours otherwise") from exc
        messages = file.message_types_by_name
        return Payloads(GetMessageClass(messages["Message1"]), GetMessageClass(messages["Many"]), pool)
