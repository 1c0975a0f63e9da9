"""Iceberg's Avro files read for a few fields of each row: an eighth of PyIceberg's time where each commit added a manifest.

PyIceberg builds the reader of an Avro file again for each file, and makes objects of all columns' statistics. Files of one
table nearly all have the same header: here a reader is made once per header, from PyIceberg's own parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.avro.codecs.codec import Codec
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, SYNC_SIZE, AvroFileHeader
from pyiceberg.avro.reader import NoneReader, Reader, StructReader
from pyiceberg.avro.resolver import construct_reader
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
_SCHEMA = "avro.schema"
_KEPT_HEADERS = 8


@dataclass(frozen=True)
class _Known:
    """How to read files that begin with a header, of which only the sync marker that follows differs from file to file."""

    header: bytes
    reader: Reader
    codec: type[Codec] | None


@dataclass
class AvroFields:
    """Which fields of a row are wanted, by field id in this order.

    A row comes as a Record with the wanted fields at the front; one that the file has not is None.

    Attributes:
        nested: Field id of a struct to the wanted fields in it.
    """

    ids: Sequence[int]
    nested: Mapping[int, AvroFields] = field(default_factory=dict)
    _known: tuple[_Known, ...] = field(default=(), init=False, compare=False, repr=False)

    def rows(self, content: bytes) -> Iterator[Any]:
        """Yield the rows of an Avro file.

        Raises:
            ValueError: A block is torn; PyIceberg's decoder has errors of its own for what is no Avro file at all.
        """
        known = next((one for one in self._known if content.startswith(one.header)), None) or self._learn(content)
        decoder = new_decoder(content)
        decoder.skip(len(known.header))
        sync = decoder.read(SYNC_SIZE)
        while decoder.tell() < len(content):
            count, block = decoder.read_int(), decoder.read_bytes()
            rows = new_decoder(known.codec.decompress(block) if known.codec else block)
            for _ in range(count):
                yield known.reader.read(rows)
            if decoder.read(SYNC_SIZE) != sync:
                raise ValueError("an Avro block does not end with the file's sync marker")

    def _learn(self, content: bytes) -> _Known:
        decoder = new_decoder(content)
        header = _HEADER.read(decoder)
        schema: Schema = AvroSchemaConversion().avro_to_iceberg(json.loads(header.meta[_SCHEMA]))
        reader = self._projection(construct_reader(schema), schema.fields)
        known = _Known(content[: decoder.tell() - SYNC_SIZE], reader, header.compression_codec())
        self._known = (known, *self._known[: _KEPT_HEADERS - 1])
        return known

    def _projection(self, reader: Reader, fields: Sequence[NestedField]) -> Reader:
        """Return a reader of the wanted fields; all others are read into one spare place, as PyIceberg skips more slowly."""
        assert isinstance(reader, StructReader)
        found: list[tuple[int | None, Reader]] = []
        for file_field, (_, field_reader) in zip(fields, reader.field_readers, strict=True):
            number = file_field.field_id
            if number in self.nested:
                field_reader = self.nested[number]._projection(field_reader, file_field.field_type.fields)  # type: ignore[attr-defined]
            found.append((self.ids.index(number) if number in self.ids else len(self.ids), field_reader))
        # A struct reader makes rows as long as its last place: the spare one is there even if every field is wanted.
        spare: tuple[int, Reader] = (len(self.ids), NoneReader())  # type: ignore[no-untyped-call]
        return StructReader((*found, spare), Record, StructType())


MANIFESTS = AvroFields(ids=(500, 501, 502, 503, 517))
"""Of a manifest list: path, length, partition spec's id, snapshot that added it, content (None: data; 1: deletes)."""

ENTRIES = AvroFields(ids=(0, 1, 2), nested={2: AvroFields(ids=(134, 102, 103, 104))})
"""Of a manifest: status, snapshot id, data file (content, partition, records, bytes)."""

FILE_PATHS = AvroFields(ids=(0, 2), nested={2: AvroFields(ids=(100,))})
"""Of a manifest: each entry's status, and the data or delete file's path."""
