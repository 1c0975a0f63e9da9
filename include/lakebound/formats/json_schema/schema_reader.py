"""JSON Schema as a format with schemas (``lakebound.formats.schemas.SchemaReader``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from lakebound.formats.contract import Decoded, Records
from lakebound.formats.json.decoder import JsonDecoder
from lakebound.formats.json_schema.documents import Documents, documents_of
from lakebound.formats.json_schema.fitting import check_fit, check_names
from lakebound.formats.json_schema.mapping import columns_of_record, record_of
from lakebound.formats.schemas import PayloadDecoder, RecordType, SchemaText, UnreadableSchemaError


def imports_of(text: str) -> tuple[str, ...]:
    """Return that a schema imports no files by itself."""
    return ()


def columns_of(schema: SchemaText, record: str | None) -> pa.Schema:
    """Return the columns of records of a schema; a required property that may not be null is not nullable.

    Args:
        schema: The schema.
        record: The title that it must have, where it has one; None: any.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it has no column; the part is named.
    """
    columns = columns_of_record(_documents(schema, record))
    check_names(columns)
    return columns


def record_type(schema: SchemaText, payload: bytes) -> RecordType | None:
    """Return the title of a schema, by which producers name its subject; None where it has none.

    Args:
        schema: The schema.
        payload: Of no influence.

    Raises:
        UnreadableSchemaError: The schema cannot be read.
    """
    title = _title(documents_of(schema))
    return None if title is None else RecordType(title, is_default=True, is_binding=False)


def records_of(schema: SchemaText) -> tuple[str, ...]:
    """Return that a schema has one type of records, whatever its title."""
    return ()


def names_of_one(schema: SchemaText) -> frozenset[str]:
    """Return that the title of a schema says nothing."""
    return frozenset()


def reads_first() -> bool:
    """Return that the first of several types is read, as all others may be parts of it."""
    return True


def same_record(schema: SchemaText, other: SchemaText, name: str) -> str | None:
    """Return the title that the other version has: a schema without one has the same records."""
    return name


def is_one_value(schema: SchemaText, record: str | None) -> bool:
    """Return that no schema is of one value without fields: all are of objects."""
    return False


def units_of(schema: SchemaText, record: str | None, columns: pa.Schema) -> Mapping[str, str]:
    """Return that no number is said to be a time: times are texts."""
    return {}


def payload_decoder(
    writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None, *, is_framed: bool
) -> PayloadDecoder:
    """Return what decodes payloads of one schema to the columns of another.

    Args:
        writer: With which the payloads were written.
        reader: Of no influence: what the writer does not have is null.
        columns: What is needed: names of fields of either, and their types.
        record: As for ``columns_of``.
        is_framed: Of no influence: JSON has nothing behind the schema's id.

    Raises:
        UnreadableSchemaError: A column would be misread; it is named.
    """
    check_fit(columns_of_record(_documents(writer, record), columns.names), columns)
    return _Payloads(columns)


class _Payloads:
    """Decodes JSON without keys and headers."""

    def __init__(self, columns: pa.Schema) -> None:
        self._decoder = JsonDecoder(columns)

    def decode(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of payloads."""
        return self._decoder.decode(Records([None] * len(payloads), payloads))


@lru_cache(maxsize=64)
def _documents(schema: SchemaText, record: str | None) -> Documents:
    documents = documents_of(schema)
    title = _title(documents)
    if record is not None and title is not None and title != record:
        raise UnreadableSchemaError("", f"the title of the schema is {title}, and the pipeline names the record {record}")
    return documents


def _title(documents: Documents) -> str | None:
    title = documents.root.get("title", record_of(documents).get("title"))
    return title if isinstance(title, str) and title else None
