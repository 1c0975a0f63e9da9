"""Values that say which schema they were written with: each is decoded with its own, all to the same columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from lakebound.formats import room
from lakebound.formats.contract import NO_VALUE, Decoded, Problem, Records
from lakebound.formats.framing import SCHEMA_HEADERS, Header, foreign_frame, naming_header, number_at_start, schema_of
from lakebound.formats.parts import Part, together
from lakebound.formats.schemas import (
    KnownSchemas,
    PartOfRecord,
    PayloadDecoder,
    SchemaId,
    SchemaText,
    TopicSchema,
    UnreadableSchemaError,
)

NO_SCHEMA_ID = "no_schema_id"
"""Reason of a record that does not say which schema it was written with."""
UNKNOWN_SCHEMA = "unknown_schema"
"""Reason of a record whose schema the decoder does not have, and for which nobody is asked."""
DOES_NOT_FIT = "schema_does_not_fit"
"""Reason of a record whose schema cannot be read with the pipeline's columns."""
_SHOWN_BYTES = 8
_BEGINNING: Callable[[Any], bytes] = itemgetter(slice(5))
_BEHIND_NUMBER: Callable[[Any], bytes] = itemgetter(slice(5, None))
_IDS, _MOST_NAMED = "records name schemas that are not known yet: ", 1_000
DecoderOf = Callable[[SchemaText, SchemaText | None, str | None], PayloadDecoder]
"""Makes the decoder of payloads of one schema, to be read with another one (None: with the newest) as a type of its records
(None: as the pipeline says).
"""


class NewSchemasError(Exception):
    """Records name schemas of which the decoder does not know what becomes of them; nothing is wrong with them.

    Attributes:
        part: Whose schemas they are.
        ids: What the records say of them.
    """

    def __init__(self, part: PartOfRecord, ids: Collection[SchemaId]) -> None:
        self.part, self.ids = part, frozenset(ids)
        super().__init__(f"{_IDS}{json.dumps([part, *sorted(ids, key=str)[:_MOST_NAMED]])}")

    def __reduce__(self) -> tuple[type[NewSchemasError], tuple[PartOfRecord, frozenset[SchemaId]]]:
        return type(self), (self.part, self.ids)


def new_schemas_in(text: str) -> NewSchemasError | None:
    """Return the error that another process raised, from the text that tells it; None where it tells of something else."""
    found = re.search(re.escape(_IDS) + r"(\[[^\]]*\])", text)
    if found is None:
        return None
    part, *ids = json.loads(found[1])
    return NewSchemasError(part, ids)


class RegisteredDecoder:
    """Decodes values of the schemas that it knows."""

    def __init__(self, columns: pa.Schema, known: KnownSchemas, decoder_of: DecoderOf, part: PartOfRecord = "value") -> None:
        """Decode nothing yet.

        Args:
            columns: What is made of each value.
            known: The schemas.
            decoder_of: Makes the decoder of payloads of one of them; called once for each that comes.
            part: Whose the schemas are; a header of that part may name one.
        """
        self._columns = columns
        self._part: PartOfRecord = part
        self._header = SCHEMA_HEADERS[part]
        self._writers = dict(known.writers)
        self._readers, self._records = dict(known.readers), dict(known.records)
        self._of_topics: dict[tuple[SchemaId, str | None], TopicSchema] = {
            (one.schema, one.topic): one for one in known.of_topics
        }
        self._shared = frozenset(one.schema for one in known.of_topics)
        self._problems: dict[tuple[SchemaId, str | None], str] = {(schema, None): told for schema, told in known.refused}
        self._problems |= {at: one.problem for at, one in self._of_topics.items() if one.problem is not None}
        self._asks = known.asks
        self._decoder_of = decoder_of
        self._decoders: dict[tuple[SchemaId, str | None], PayloadDecoder] = {}

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records.

        Raises:
            NewSchemasError: Records name schemas that are to be asked for.
        """
        values = records.values
        problems: dict[int, Problem] = {}
        by_schema = self._by_schema(values, records, problems)
        unknown = {schema for schema in by_schema if schema not in self._writers and (schema, None) not in self._problems}
        if unknown and self._asks:
            raise NewSchemasError(self._part, unknown)
        parts: list[Part] = []
        taken_bytes = 0
        for schema, topic, places, payloads in self._by_topic(by_schema, records.topics):
            decoder = self._decoder(schema, topic)
            if isinstance(decoder, Problem):
                problems |= dict.fromkeys(places, decoder)
                continue
            decoded = decoder.decode(payloads)
            problems |= {places[at]: found for at, found in decoded.problems.items()}
            good = places if not decoded.problems else [places[at] for at in decoded.good]
            parts.append(Part(decoded.columns, good))
            taken_bytes += sum(column.nbytes for column in decoded.columns.values())
            if taken_bytes > room.MOST_AT_ONCE_BYTES and len(values) > 1:
                raise room.TooMuchAtOnceError
        if not parts:  # What takes as long as decoding a few records is done only where it is needed.
            parts.append(Part({field.name: pa.array([], field.type) for field in self._columns}, []))
        return Decoded(together(parts), problems, len(values))

    def _by_topic(
        self, by_schema: Mapping[SchemaId, tuple[list[int], list[bytes]]], topics: Sequence[str] | None
    ) -> Iterator[tuple[SchemaId, str | None, list[int], list[bytes]]]:
        """Yield positions and payloads by schema; by topic, too, where the topic decides how they are read."""
        for schema, (places, payloads) in by_schema.items():
            if topics is None or schema not in self._shared:
                yield schema, None, places, payloads
                continue
            for topic in dict.fromkeys(topics[at] for at in places):
                own = [number for number, at in enumerate(places) if topics[at] == topic]
                named = topic if (schema, topic) in self._of_topics else None
                yield schema, named, [places[number] for number in own], [payloads[number] for number in own]

    def _by_schema(
        self, values: Sequence[bytes | None], records: Records, problems: dict[int, Problem]
    ) -> Mapping[SchemaId, tuple[list[int], list[bytes]]]:
        """Return positions and payloads by schema, and note the problems of records without one."""
        found: dict[SchemaId, tuple[list[int], list[bytes]]] = {}
        if values and None not in values and len({*map(_BEGINNING, values)}) == 1 and not self._is_in_headers(records):
            number = number_at_start(values[0] or b"")
            if number is not None:  # All of one schema, as nearly always: without a Python call per record.
                return {number: ([*range(len(values))], [*map(_BEHIND_NUMBER, values)])}
        for at, value in enumerate(values):
            if value is None:
                problems[at] = NO_VALUE
                continue
            headers = records.headers[at] if records.headers is not None else None
            framed = schema_of(value, headers, self._header)
            if framed is None:
                problems[at] = _unframed(value, naming_header(headers, self._header), self._header)
                continue
            places, payloads = found.setdefault(framed[0], ([], []))
            places.append(at)
            payloads.append(framed[1])
        return found

    def _is_in_headers(self, records: Records) -> bool:
        """Whether a header of any record names its schema."""
        headers = records.headers
        return headers is not None and any(headers) and any(name == self._header for one in headers for name, _ in one)

    def _decoder(self, schema: SchemaId, topic: str | None) -> PayloadDecoder | Problem:
        """Return what decodes payloads of a schema, or why none of them can be read."""
        at = schema, topic
        if at in self._decoders:
            return self._decoders[at]
        if schema in self._writers and at not in self._problems:
            own = self._of_topics.get(at)
            how = (self._readers.get(schema), self._records.get(schema)) if own is None else (own.reader, own.record)
            try:
                self._decoders[at] = self._decoder_of(self._writers[schema], *how)
                return self._decoders[at]
            except UnreadableSchemaError as exc:
                # Whoever gave the schemas should have found it. An error would come again with each try, for all records.
                self._problems[at] = str(exc)
        if at in self._problems:
            return Problem(DOES_NOT_FIT, f"schema {schema} does not fit: {self._problems[at]}")
        return Problem(UNKNOWN_SCHEMA, f"schema {schema} is none that the pipeline's subjects have")


class PlainDecoder:
    """Decodes values that have no frame around them and were all written with one schema."""

    def __init__(self, decoder: PayloadDecoder) -> None:
        """Decode nothing yet."""
        self._decoder = decoder

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records."""
        values = records.values
        places = [at for at, value in enumerate(values) if value is not None]
        decoded = self._decoder.decode([value for value in values if value is not None])
        if len(places) == len(values):
            return decoded
        problems = {places[at]: found for at, found in decoded.problems.items()}
        missing = {at: NO_VALUE for at, value in enumerate(values) if value is None}
        return Decoded(decoded.columns, {**problems, **missing}, len(values))


def _unframed(value: bytes, in_header: bytes | None, header: Header) -> Problem:
    """Return why nothing says which schema a record was written with.

    Args:
        value: Of the record.
        in_header: What the header has that names the schema; None where there is none.
        header: Its name.
    """
    if in_header is not None:
        told = f"its header {header} {_told_bytes(in_header)}, and not with 00 and four bytes or 01 and sixteen"
        return Problem(NO_SCHEMA_ID, f"the record does not say which schema it was written with: {told}")
    foreign = foreign_frame(value)
    if foreign is not None:
        return Problem(
            NO_SCHEMA_ID,
            f"the record begins with {foreign}, which is not supported; only the frame of Confluent's serialisers is",
        )
    return Problem(
        NO_SCHEMA_ID,
        f"the record does not say which schema it was written with: it {_told_bytes(value)}, and not with 00 and four bytes",
    )


def _told_bytes(content: bytes) -> str:
    begins = content[:_SHOWN_BYTES].hex(" ")
    return (
        "is empty" if not content else f"begins with {begins}" if len(content) >= 5 else f"has {len(content)} bytes: {begins}"
    )
