"""A .proto text, read to what Protobuf calls the descriptor of a file. Pure: nothing is opened or run.

It reads what the bytes of messages depend on: messages, enums, extensions, and the features of editions. Services and other
options are passed over. Names are resolved by Protobuf's own library, which also refuses what contradicts itself.
The language: https://protobuf.com/docs/language-spec.
"""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto

from lakebound.formats.protobuf.definitions import Definitions
from lakebound.formats.protobuf.options import read_option
from lakebound.formats.protobuf.tokens import Tokens

_SYNTAXES = ("proto2", "proto3")
_EDITIONS = ("2023", "2024")
"""A later one may mean other bytes by the same text."""
_VISIBILITIES = ("export", "local")


def read_file(text: str, name: str, *, shown: str = "") -> FileDescriptorProto:
    """Return the descriptor of a file; names of types are as they are written.

    Args:
        text: Of the file.
        name: Of the file.
        shown: The name for messages; "" where it is the schema itself.

    Raises:
        UnreadableSchemaError: It is no .proto text; the line is named.
    """
    tokens, file = Tokens(text, shown), FileDescriptorProto(name=name)
    _read_syntax(tokens, file)
    definitions = Definitions(tokens, is_proto3=file.syntax == "proto3")
    while not tokens.is_end:
        if not tokens.take(";"):
            _read_statement(tokens, file, definitions)
    return file


def _read_syntax(tokens: Tokens, file: FileDescriptorProto) -> None:
    while tokens.take(";"):
        pass
    word = tokens.take_one_of(("syntax", "edition"))
    if not word:
        return
    tokens.expect("=")
    value = tokens.string()
    if word == "edition" and value in _EDITIONS:
        file.syntax, file.edition = "editions", Edition.Value(f"EDITION_{value}")
    elif word == "syntax" and value in _SYNTAXES:
        file.syntax = value
    else:
        raise tokens.error(f"the {word} {value!r} is not known: use {', '.join(_EDITIONS + _SYNTAXES)}")
    tokens.expect(";")


def _read_statement(tokens: Tokens, file: FileDescriptorProto, definitions: Definitions) -> None:
    if tokens.now.text in _VISIBILITIES and tokens.after.text in ("message", "enum"):
        tokens.next()
    word = tokens.take_one_of(("import", "package", "option", "message", "enum", "extend", "service"))
    if word == "import":
        _read_import(tokens, file)
    elif word == "package":
        file.package = tokens.path()
        tokens.expect(";")
    elif word == "option":
        read_option(tokens, file.options)
        tokens.expect(";")
    elif word == "message":
        definitions.message(file.message_type.add())
    elif word == "enum":
        definitions.enum(file.enum_type.add())
    elif word == "extend":
        definitions.extend(file.extension.add, file.message_type.add)
    elif word == "service":
        tokens.name()
        tokens.expect("{")
        tokens.skip_until("}")
    else:
        raise tokens.error("a message or another statement of a .proto text is missing")


def _read_import(tokens: Tokens, file: FileDescriptorProto) -> None:
    kind = tokens.take_one_of(("public", "weak", "option"))
    path = tokens.string()
    tokens.expect(";")
    if kind != "option" and path not in file.dependency:  # an option's import defines no type of a field
        file.dependency.append(path)
