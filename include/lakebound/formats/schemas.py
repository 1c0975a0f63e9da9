"""Schemas that values are written and read with, such as Avro's, as texts: by themselves, or as a registry gives them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

# Whatever reads a pipeline's YAML imports this module, and Arrow takes a third of a second.
if TYPE_CHECKING:
    import pyarrow as pa

    from lakebound.formats.contract import Decoded

SchemaKind = Literal["avro", "protobuf", "json_schema"]
"""Formats whose values have a schema of their own; each has a folder of its name beside this module."""
SchemaId = int | str
"""What a record says of its schema: a registry's number, or its GUID."""
_PROTO_WORDS = re.compile(
    r"""(?:\s|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?)++|("(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|[\w.]++|.)""", re.DOTALL
)
"""Blanks and comments of a .proto text, or a word of it, which is kept: a text in quotes is one. What does not end is read
once, too: a text that is meant to harm takes no time by the square of its length.
"""
PartOfRecord = Literal["key", "value"]
"""What of a record has a schema of its own."""


@dataclass(frozen=True)
class Reference:
    """A schema that another one imports.

    Attributes:
        name: As the other one imports it: a full name in Avro, a path in Protobuf, an address in JSON Schema.
        schema: The schema.
    """

    name: str
    schema: SchemaText


@dataclass(frozen=True)
class SchemaText:
    """A schema as it was written.

    Attributes:
        kind: Its format.
        text: The text.
        references: What it imports, each with its own references.
    """

    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the text and of all that it imports, as 64 hexadecimal digits; how it is laid out does not count."""
        digest = hashlib.sha256(f"{self.kind}\n{canonical_text(self.kind, self.text)}".encode(errors="surrogatepass"))
        for one in self.references:
            digest.update(f"\n{one.name}\n{one.schema.fingerprint}".encode(errors="surrogatepass"))
        return digest.hexdigest()

    def __hash__(self) -> int:
        """Kept, as the fingerprint is: schemas that share what they import would be gone through again for each way to it."""
        return hash(self.fingerprint)


def canonical_text(kind: SchemaKind, text: str) -> str:
    """Return a text that is the same for each way in which a registry may lay a schema out.

    The order of keys stays as it is in JSON Schema, where it is that of columns; in Avro it means nothing. Comments of Protobuf
    mean nothing, either.
    """
    if kind == "protobuf":
        return " ".join(filter(None, _PROTO_WORDS.findall(text)))
    try:
        # Numbers stay as they are written: 1.0 is not 1, and no digit is lost.
        found = json.loads(text, parse_int=_as_written, parse_float=_as_written)
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"), sort_keys=kind == "avro")
    except (ValueError, RecursionError):
        return text


def _as_written(number: str) -> str:
    return f"number {number}"


class UnreadableSchemaError(ValueError):
    """A schema cannot be read, or a part of it has no column.

    Attributes:
        path: Dotted path of the part; empty where it is all of the schema.
        reason: What is wrong with it, and what to do where something can be done.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}" if path else reason)


@dataclass(frozen=True)
class RecordType:
    """Which type of a schema a value has.

    Attributes:
        name: Its full name, as a pipeline names it.
        is_default: Whether it is the one that is read where a pipeline names none.
        is_binding: Whether records with another name are of another type.
    """

    name: str
    is_default: bool
    is_binding: bool = True


class PayloadDecoder(Protocol):
    """Decodes values that were all written with one schema, and that no longer have the schema's id before them."""

    def decode(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of payloads; it raises on none of them.

        Raises:
            TooMuchAtOnceError: They take too much together (``lakebound.formats.room``).
        """


class SchemaReader(Protocol):
    """What a format with schemas knows to do with them (a module of ``lakebound.formats``)."""

    def imports_of(self, text: str) -> tuple[str, ...]:
        """Return what a schema imports that has to be among its references, as the text names it.

        Raises:
            UnreadableSchemaError: It cannot be read.
        """

    def columns_of(self, schema: SchemaText, record: str | None) -> pa.Schema:
        """Return the columns of records of a schema; a field that is not nullable is in each of them.

        Args:
            schema: The schema.
            record: Full name of the type of the records, where the schema has several; None: its only or first one.

        Raises:
            UnreadableSchemaError: It cannot be read, or a part of it has no column; the part is named.
        """

    def record_type(self, schema: SchemaText, payload: bytes) -> RecordType | None:
        """Return the type of a value; None where its schema names none, or the value does not say which it is.

        Args:
            schema: With which it was written.
            payload: What stands behind the schema's id.

        Raises:
            UnreadableSchemaError: The schema cannot be read.
        """

    def records_of(self, schema: SchemaText) -> tuple[str, ...]:
        """Return the full names of the types at the top of a schema, first the one that is read where none is named.

        It is empty where a schema has one type of records, whatever its name.

        Raises:
            UnreadableSchemaError: It cannot be read.
        """

    def names_of_one(self, schema: SchemaText) -> frozenset[str]:
        """Return the names of which a version shares one with another version whose only type of records it has, too.

        It is empty where a type may have another name in each version.

        Raises:
            UnreadableSchemaError: The schema cannot be read.
        """

    def reads_first(self) -> bool:
        """Return whether the first of several types at the top of a schema is read where the pipeline names none."""

    def same_record(self, schema: SchemaText, other: SchemaText, name: str) -> str | None:
        """Return what a schema calls a type of records of another version; None where it has none that stands for it.

        Args:
            schema: The schema.
            other: The other version.
            name: Full name of the type there.

        Raises:
            UnreadableSchemaError: One cannot be read, or the other version has no such type.
        """

    def is_one_value(self, schema: SchemaText, record: str | None) -> bool:
        """Return whether a schema is that of one value without fields, such as a number: its only column is that value.

        Raises:
            UnreadableSchemaError: It cannot be read.
        """

    def units_of(self, schema: SchemaText, record: str | None, columns: pa.Schema) -> Mapping[str, str]:
        """Return what whole numbers that hold times count, such as ``micros``, by their paths.

        Args:
            schema: The schema.
            record: As for ``columns_of``.
            columns: That are made of it.

        Raises:
            UnreadableSchemaError: It cannot be read.
        """

    def payload_decoder(
        self, writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None, *, is_framed: bool
    ) -> PayloadDecoder:
        """Return what decodes payloads of one schema to the columns of another.

        Args:
            writer: With which the payloads were written.
            reader: With which they are read: it says what becomes of fields that the writer does not have.
            columns: What is needed: names of fields of either, and their types. One of the writer alone keeps its value.
            record: Full name of the type of the records, where the reader has several; None: its only or first one.
            is_framed: Whether payloads begin with what a format has behind the schema's id, as Protobuf's message indexes.

        Raises:
            UnreadableSchemaError: What the writer writes cannot be read so; the part is named.
        """


@dataclass(frozen=True)
class TopicSchema:
    """How records of one topic are read that name a schema which subjects of several topics have, each with its own newest.

    Attributes:
        topic: The topic.
        schema: What the records say of the schema.
        reader: With which they are read.
        record: Full name of the type of the records, as in ``KnownSchemas.records``.
        problem: Why none of them can be read.
    """

    topic: str
    schema: SchemaId
    reader: SchemaText
    record: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class KnownSchemas:
    """Schemas by what records say of them.

    Attributes:
        writers: Those that can be read with the pipeline's columns.
        refused: Those that cannot, or that the registry does not have: why.
        readers: With what some are read instead of the newest of all: the newest of their own subject.
        records: Full names of the types that records of some have, where the pipeline names none and the reader has several.
        asks: Whether the registry is asked for one that is not here; else its records have a problem.
        of_topics: How records are read whose topic counts, too.
    """

    writers: tuple[tuple[SchemaId, SchemaText], ...] = ()
    refused: tuple[tuple[SchemaId, str], ...] = ()
    readers: tuple[tuple[SchemaId, SchemaText], ...] = ()
    records: tuple[tuple[SchemaId, str], ...] = ()
    asks: bool = True
    of_topics: tuple[TopicSchema, ...] = ()


@dataclass(frozen=True)
class ReadSchemas:
    """The schemas of a pipeline's values, or of its keys, as they were read.

    Attributes:
        columns: Of the records.
        reader: The newest schema.
        known: The schemas that records may name; None: values have no frame, and were written with the reader.
        is_one_value: Whether the newest schema is one value without fields, which is the only column.
    """

    columns: pa.Schema
    reader: SchemaText
    known: KnownSchemas | None = None
    is_one_value: bool = False
