"""The files of a schema: its text, what it imports, and what every schema may import without a reference. Nothing is opened.

A schema is .proto text, or a serialised ``FileDescriptorProto`` in base64, as confluent-kafka registers it from Python.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from lakebound.formats.protobuf.source import read_file
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError

WELL_KNOWN = "google/protobuf/"
"""What Protobuf itself brings. A reference never replaces one of these."""
_ROOT = "schema that is registered.proto"
"""Name of the schema's own file: one that nobody imports."""
_MOST_CHARACTERS = 1_000_000
"""Of a schema with all that it imports; they are read in a second, and whatever they are, in a few."""
_OWN = (
    "any",
    "api",
    "descriptor",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)
_GOOGLE_TYPES = (
    *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng"),
    *("localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday"),
)
_MODULES = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _OWN} | {
    f"google/type/{name}.proto": f"google.type.{name}_pb2" for name in _GOOGLE_TYPES
}
"""Modules of Google's packages, by the path that is imported."""
_DECIMAL = """
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_TEXTS = {"confluent/type/decimal.proto": _DECIMAL}
"""Of Confluent's registry."""
_OF_OPTIONS = frozenset(
    {"confluent/meta.proto", *(f"google/protobuf/{name}_features.proto" for name in ("cpp", "java", "go", "csharp"))}
)
"""Define options alone, which are left out."""


@dataclass(frozen=True)
class Files:
    """A schema that was read.

    Attributes:
        names: Of the files, those that are imported first; the schema itself is the last one.
        serialised: Each file as a ``FileDescriptorProto``.
    """

    names: tuple[str, ...]
    serialised: tuple[bytes, ...]

    def added_to(self, pool: DescriptorPool) -> FileDescriptor:
        """Add the files to a pool; return the schema's own.

        Raises:
            UnreadableSchemaError: A name is not known, or a file contradicts itself.
        """
        for one in self.serialised:
            try:
                pool.AddSerializedFile(one)
            except TypeError as exc:
                told = str(exc).removeprefix("Couldn't build proto file into descriptor pool: ")
                raise UnreadableSchemaError("", f"Protobuf refuses it: {told}") from exc
        return pool.FindFileByName(_ROOT)


def is_built_in(path: str) -> bool:
    """Whether every schema may import a file without a reference."""
    return path in _MODULES or path in _TEXTS or path in _OF_OPTIONS


@lru_cache(maxsize=64)
def files_of(schema: SchemaText) -> Files:
    """Return the files of a schema.

    Raises:
        UnreadableSchemaError: It cannot be read, or imports what is not there.
    """
    given = dict(_referenced(schema))
    size = len(schema.text) + sum(len(one.text) for one in given.values())
    if size > _MOST_CHARACTERS:
        raise UnreadableSchemaError("", f"it has {size:,} characters with all that it imports, more than {_MOST_CHARACTERS:,}")
    files = {_ROOT: _read(schema.text, _ROOT, "")}
    waiting = [_ROOT]
    while waiting:
        file = files[waiting.pop()]
        kept = [path for path in file.dependency if path in given or path not in _OF_OPTIONS]
        file.dependency[:] = kept
        for path in kept:
            if path not in files:
                files[path] = _imported(path, given, file.name)
                waiting.append(path)
    try:
        order = [*TopologicalSorter({name: [*file.dependency] for name, file in files.items()}).static_order()]
    except CycleError as exc:
        raise UnreadableSchemaError("", f"files import each other in a circle: {', '.join(exc.args[1])}") from exc
    return Files(tuple(order), tuple(files[name].SerializeToString() for name in order))


def _referenced(schema: SchemaText) -> Iterator[tuple[str, SchemaText]]:
    """Yield what a schema imports by path, and what that imports, each once."""
    found: dict[str, SchemaText] = {}
    waiting = [*schema.references]
    while waiting:
        one = waiting.pop()
        if one.name not in found:
            found[one.name] = one.schema
            yield one.name, one.schema
            waiting += one.schema.references
        elif found[one.name].fingerprint != one.schema.fingerprint:
            raise UnreadableSchemaError("", f"two different schemas are imported as {one.name}: reference only one")


def _imported(path: str, given: Mapping[str, SchemaText], by: str) -> FileDescriptorProto:
    if path in given and not path.startswith(WELL_KNOWN):
        return _read(given[path].text, path, path)
    if path in _MODULES:
        own: FileDescriptor = importlib.import_module(_MODULES[path]).DESCRIPTOR
        return FileDescriptorProto.FromString(own.serialized_pb)
    if path in _TEXTS:
        return _read(_TEXTS[path], path, path)
    where = "" if by == _ROOT else f"{by} "
    raise UnreadableSchemaError("", f"{where}imports {path}, which is not among the references: add it to them")


def _read(text: str, name: str, shown: str) -> FileDescriptorProto:
    serialised = _serialised(text)
    if serialised is None:
        return read_file(text, name, shown=shown)
    serialised.name = name
    return serialised


def _serialised(text: str) -> FileDescriptorProto | None:
    """Return the descriptor that a text is in base64; None where it is .proto text, which has signs that base64 has not."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (ValueError, binascii.Error, DecodeError):
        return None
