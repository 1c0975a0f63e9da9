"""Messages, enums and extensions in a .proto text, read to their descriptors. Pure."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from lakebound.formats.protobuf.options import read_option, read_options
from lakebound.formats.protobuf.tokens import Tokens

_SCALARS = {
    name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes"),
        *("uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
_LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_VISIBILITIES = ("export", "local")
_LAST_NUMBER = (1 << 29) - 1
_DEEPEST = 32
"""Messages inside of each other: protoc's bound, too."""

AddField = Callable[[], FieldDescriptorProto]
AddMessage = Callable[[], DescriptorProto]


class Definitions:
    """Reads the definitions of one file."""

    def __init__(self, tokens: Tokens, *, is_proto3: bool) -> None:
        """Read nothing yet."""
        self._tokens = tokens
        self._is_proto3 = is_proto3
        self._level = 0

    def message(self, message: DescriptorProto) -> None:
        """Read a message from its name on.

        Raises:
            UnreadableSchemaError: It is none.
        """
        message.name = self._tokens.name()
        self._body(message)

    def enum(self, enum: EnumDescriptorProto) -> None:
        """Read an enum from its name on.

        Raises:
            UnreadableSchemaError: It is none.
        """
        tokens = self._tokens
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.take("}"):
            if tokens.take(";"):
                continue
            word = tokens.take_one_of(("option", "reserved"))
            if word == "reserved":
                tokens.skip_until(";")
                continue
            if word:
                read_option(tokens, enum.options, kept=("allow_alias",))
            else:
                value = enum.value.add(name=tokens.name())
                tokens.expect("=")
                value.number = tokens.integer()
                read_options(tokens, value.options)
            tokens.expect(";")

    def extend(self, add_field: AddField, add_message: AddMessage) -> None:
        """Read extensions of a message from its name on.

        Args:
            add_field: Gives a new extension.
            add_message: Gives a new message, for what a group defines.

        Raises:
            UnreadableSchemaError: They are none.
        """
        extended = self._tokens.path()
        self._tokens.expect("{")
        while not self._tokens.take("}"):
            if not self._tokens.take(";"):
                field = add_field()
                field.extendee = extended
                self._field(field, add_message)

    def _body(self, message: DescriptorProto) -> None:
        tokens = self._tokens
        self._level += 1
        if self._level > _DEEPEST:
            raise tokens.error(f"messages lie more than {_DEEPEST} levels deep within each other")
        tokens.expect("{")
        while not tokens.take("}"):
            if not tokens.take(";"):
                self._part(message)
        self._level -= 1
        if self._is_proto3:
            _add_synthetic_oneofs(message)

    def _part(self, message: DescriptorProto) -> None:
        """Read one statement in a message."""
        tokens = self._tokens
        if tokens.now.text in _VISIBILITIES and tokens.after.text in ("message", "enum"):
            tokens.next()
        word = tokens.take_one_of(("message", "enum", "extend", "extensions", "reserved", "option", "oneof"))
        if word == "message":
            self.message(message.nested_type.add())
        elif word == "enum":
            self.enum(message.enum_type.add())
        elif word == "extend":
            self.extend(message.extension.add, message.nested_type.add)
        elif word == "extensions":
            self._extension_ranges(message)
        elif word == "reserved":
            tokens.skip_until(";")
        elif word == "option":
            read_option(tokens, message.options, kept=("message_set_wire_format",))
            tokens.expect(";")
        elif word == "oneof":
            self._oneof(message)
        elif tokens.now.text == "map" and tokens.after.text == "<":
            self._map(message)
        else:
            self._field(message.field.add(), message.nested_type.add)

    def _extension_ranges(self, message: DescriptorProto) -> None:
        tokens = self._tokens
        while True:
            first = last = tokens.integer()
            if tokens.take("to"):
                last = _LAST_NUMBER if tokens.take("max") else tokens.integer()
            if not 0 < first <= last <= _LAST_NUMBER:
                raise tokens.error("this is no range of field numbers")
            message.extension_range.add(start=first, end=last + 1)
            if not tokens.take(","):
                break
        if tokens.take("["):
            tokens.skip_until("]")
        tokens.expect(";")

    def _oneof(self, message: DescriptorProto) -> None:
        tokens, index = self._tokens, len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=tokens.name())
        tokens.expect("{")
        while not tokens.take("}"):
            if tokens.take(";"):
                continue
            if tokens.take("option"):
                read_option(tokens, oneof.options)
                tokens.expect(";")
                continue
            if tokens.now.text in _LABELS:
                raise tokens.error("a field of a oneof has no such word before it")
            field = message.field.add(oneof_index=index)
            self._field(field, message.nested_type.add)

    def _map(self, message: DescriptorProto) -> None:
        tokens, field = self._tokens, message.field.add(label=FieldDescriptorProto.LABEL_REPEATED)
        tokens.expect("map")
        tokens.expect("<")
        entry = message.nested_type.add()
        for number, name in ((1, "key"), (2, "value")):
            self._type(entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL))
            tokens.expect("," if number == 1 else ">")
        self._named(field)
        entry.name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        entry.options.map_entry = True
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, entry.name
        tokens.expect(";")

    def _field(self, field: FieldDescriptorProto, add_message: AddMessage) -> None:
        tokens = self._tokens
        word = tokens.take_one_of(_LABELS)
        field.label = _LABELS.get(word, FieldDescriptorProto.LABEL_OPTIONAL)
        if word == "optional" and self._is_proto3:
            field.proto3_optional = True
        if tokens.now.text == "group" and tokens.after.kind == "name":
            tokens.next()
            self._group(field, add_message())
            return
        self._type(field)
        self._named(field)
        tokens.expect(";")

    def _type(self, field: FieldDescriptorProto) -> None:
        name = self._tokens.path()
        if name in _SCALARS:
            field.type = _SCALARS[name]
        else:
            field.type_name = name  # a message or an enum: the library tells when it resolves the name

    def _group(self, field: FieldDescriptorProto, group: DescriptorProto) -> None:
        self._named(field)
        group.name, field.name = field.name, field.name.lower()
        field.type, field.type_name = FieldDescriptorProto.TYPE_GROUP, group.name
        self._body(group)

    def _named(self, field: FieldDescriptorProto) -> None:
        """Read the name of a field, its number and its options."""
        tokens = self._tokens
        field.name = tokens.name()
        tokens.expect("=")
        field.number = tokens.integer()
        options = read_options(tokens, field.options)
        if "json_name" in options:
            field.json_name = options["json_name"]


def _add_synthetic_oneofs(message: DescriptorProto) -> None:
    """Give each ``optional`` field of proto3 a oneof of its own, by which the library knows its presence, behind all others."""
    used = {oneof.name for oneof in message.oneof_decl} | {field.name for field in message.field}
    for field in message.field:
        if field.proto3_optional:
            name = field.name if field.name.startswith("_") else f"_{field.name}"
            while name in used:
                name = f"X{name}"
            used.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)
