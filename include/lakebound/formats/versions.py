"""Which columns all versions of a schema have together, and which versions can be read with them. Pure.

Columns never disappear: a field that the newest version does not have any more keeps its column, and its values of older
records. None is NOT NULL, because a later version may let a field be null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakebound.formats.kinds import schema_reader
from lakebound.formats.merged_fields import merged
from lakebound.formats.schemas import KnownSchemas, ReadSchemas, SchemaId, SchemaText, UnreadableSchemaError


@dataclass(frozen=True)
class Version:
    """One version of a subject.

    Attributes:
        number: Of the version within its subject.
        ids: What records may say of it: its number in the registry, and its GUID where the registry has one.
        schema: The schema; None where it cannot be read.
        problem: Why nothing is read with it; None where something is.
    """

    number: int
    ids: tuple[SchemaId, ...]
    schema: SchemaText | None
    problem: str | None = None


@dataclass(frozen=True)
class _Subject:
    """The versions of one subject that have columns.

    Attributes:
        name: Its name.
        reader: The newest one that has columns.
        columns: Of all of them.
        readable: The versions that have columns: what records say of each, and its schema.
        refused: Why the others have none.
    """

    name: str
    reader: SchemaText
    columns: pa.Schema
    readable: tuple[tuple[tuple[SchemaId, ...], SchemaText], ...]
    refused: tuple[tuple[SchemaId, str], ...]


def schemas_of_file(schema: SchemaText, record: str | None) -> ReadSchemas:
    """Return how values are read that were all written with one schema, which no record names.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it has no column.
    """
    reader = schema_reader(schema.kind)
    return ReadSchemas(reader.columns_of(schema, record), schema, is_one_value=reader.is_one_value(schema, record))


def schemas_of_subjects(
    subjects: Mapping[str, Sequence[Version]],
    record: str | None,
    passed_over: Mapping[SchemaId, str],
    strange: Mapping[SchemaId, str],
    *,
    asks: bool = True,
    wanted: pa.Schema | None = None,
) -> ReadSchemas:
    """Return how values are read that name their schema.

    Args:
        subjects: Versions of each subject; at least one each.
        record: Full name of the type of the records, where a schema has several.
        passed_over: Schemas that the tables cannot follow, and why.
        strange: Schemas that records named and that are of no subject, and why nothing is read with them.
        asks: Whether the registry is asked for further ones that records name.
        wanted: Columns that the pipeline names; None: those that the versions have together.

    Raises:
        UnreadableSchemaError: No version of a subject has columns, or subjects differ in the type of one that is read.
    """
    found = [_subject(name, versions, record, passed_over) for name, versions in subjects.items()]
    columns = _all_columns((one.name, one.columns) for one in found) if wanted is None else wanted
    writers: dict[SchemaId, SchemaText] = {}
    readers: dict[SchemaId, SchemaText] = {}
    refused: dict[SchemaId, str] = {}
    newest = found[0].reader
    for one in found:
        refused |= dict(one.refused)
        for ids, writer in one.readable:
            problem = _problem(writer, one.reader, columns, record)
            for known in ids:
                if problem is not None:
                    refused.setdefault(known, problem)
                    continue
                writers.setdefault(known, writer)
                if one.reader != newest:
                    readers.setdefault(known, one.reader)
    refused = {known: reason for known, reason in {**strange, **refused}.items() if known not in writers}
    known_schemas = KnownSchemas(tuple(writers.items()), tuple(refused.items()), tuple(readers.items()), asks=asks)
    return ReadSchemas(columns, newest, known_schemas, schema_reader(newest.kind).is_one_value(newest, record))


def _subject(name: str, versions: Sequence[Version], record: str | None, passed_over: Mapping[SchemaId, str]) -> _Subject:
    refused: dict[SchemaId, str] = {}
    columns: list[tuple[tuple[SchemaId, ...], SchemaText, pa.Schema]] = []
    newest_problem: UnreadableSchemaError | None = None
    for version in sorted(versions, key=lambda one: one.number, reverse=True):
        reason = version.problem or next((passed_over[known] for known in version.ids if known in passed_over), None)
        if reason is None and version.schema is not None:
            try:
                columns.append(
                    (version.ids, version.schema, schema_reader(version.schema.kind).columns_of(version.schema, record))
                )
                continue
            except UnreadableSchemaError as exc:
                newest_problem = newest_problem or UnreadableSchemaError(exc.path, f"{exc.reason} (subject {name})")
                reason = str(exc)
        refused |= dict.fromkeys(version.ids, reason or "it cannot be read")
    if not columns:
        why = next(iter(refused.values()), "there is none")
        raise newest_problem or UnreadableSchemaError("", f"subject {name} has no version that can be read: {why}")
    together = pa.schema([field.with_nullable(True) for field in merged([list(one) for _, _, one in columns])])
    readable = tuple((ids, schema) for ids, schema, _ in columns)
    return _Subject(name, readable[0][1], together, readable, tuple(refused.items()))


def _all_columns(subjects: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    found: dict[str, tuple[str, pa.Field]] = {}
    for subject, columns in subjects:
        for field in columns:
            first, known = found.setdefault(field.name.lower(), (subject, field))
            if known.type != field.type or known.name != field.name:
                raise UnreadableSchemaError(
                    field.name,
                    f"is {known.name} {known.type} in subject {first} and {field.name} {field.type} in subject {subject}; use "
                    f"a pipeline for each topic",
                )
    return pa.schema([field for _, field in found.values()])


def _problem(writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None) -> str | None:
    """Return why records of a schema cannot be read; None where they can."""
    try:
        schema_reader(reader.kind).payload_decoder(writer, reader, columns, record, is_framed=True)
    except UnreadableSchemaError as exc:
        return str(exc)
    return None
