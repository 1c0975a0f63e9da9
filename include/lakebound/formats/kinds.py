"""The value formats that there are: what a pipeline says of its values, and the decoder that it gives.

A format is a frozen value that can be pickled, so that each of Spark's executors makes its own decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Protocol, cast

import pyarrow as pa

from lakebound.formats.contract import ValueDecoder
from lakebound.formats.json.connect import ConnectDecoder
from lakebound.formats.json.decoder import JsonDecoder
from lakebound.formats.registered import PlainDecoder, RegisteredDecoder
from lakebound.formats.schemas import KnownSchemas, PartOfRecord, PayloadDecoder, SchemaKind, SchemaReader, SchemaText


class ValueFormat(Protocol):
    """What tells how records are decoded."""

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives; a field that is not nullable is required."""

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers."""

    @property
    def reads_topics(self) -> bool:
        """Whether the decoder needs the records' topics."""

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""

    def __hash__(self) -> int:
        """Equal formats have one decoder in a process."""


@dataclass(frozen=True)
class JsonFormat:
    """Values are JSON objects.

    Attributes:
        columns: Fields of the objects.
        unhoused: Those of them for which a table has no column.
        unknown_refused: Whether a field that is not among them is a problem.
        is_connects: Whether each value is Kafka Connect's, with its schema and, as ``payload``, the object.
    """

    columns: pa.Schema
    unhoused: tuple[str, ...] = ()
    unknown_refused: bool = False
    is_connects: bool = False

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers."""
        return False

    @property
    def reads_topics(self) -> bool:
        """Whether the decoder needs the records' topics."""
        return False

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        decoder = JsonDecoder(self.columns, self.unhoused, unknown_refused=self.unknown_refused)
        return ConnectDecoder(self.columns, decoder) if self.is_connects else decoder


def schema_reader(kind: SchemaKind) -> SchemaReader:
    """Return what knows the schemas of a format: ``schema_reader`` in its folder, imported when first used."""
    return cast(SchemaReader, import_module(f"lakebound.formats.{kind}.schema_reader"))


@dataclass(frozen=True)
class SchemaFormat:
    """Values have a schema of their own, such as Avro's.

    Attributes:
        columns: What is made of each value.
        reader: The schema that values are read with.
        record: Full name of the type of the records, where the schema has several.
        known: The schemas that values are written with; None: values have no frame, and were written with the reader.
        part: Whose the schema is; of another part than the value, another header may name it.
    """

    columns: pa.Schema
    reader: SchemaText
    record: str | None = None
    known: KnownSchemas | None = None
    part: PartOfRecord = "value"

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers: one may name the schema."""
        return self.known is not None

    @property
    def reads_topics(self) -> bool:
        """Whether the decoder needs the records' topics: subjects of several topics have a schema together."""
        return self.known is not None and bool(self.known.of_topics)

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        if self.known is None:
            return PlainDecoder(self._payload_decoder(self.reader))
        return RegisteredDecoder(self.columns, self.known, self._payload_decoder, self.part)

    def _payload_decoder(
        self, writer: SchemaText, reader: SchemaText | None = None, record: str | None = None
    ) -> PayloadDecoder:
        kind = schema_reader(self.reader.kind)
        is_framed = self.known is not None
        return kind.payload_decoder(writer, reader or self.reader, self.columns, record or self.record, is_framed=is_framed)


@lru_cache(maxsize=16)
def decoder_of(form: ValueFormat) -> ValueDecoder:
    """Return the decoder of a format; one per process."""
    return form.decoder()
