"""Which columns all versions of a schema have together, and which versions can be read with them. Pure.

Columns never disappear: a field that the newest version does not have any more keeps its column, and its values of older
records. None is NOT NULL, because a later version may let a field be null.

Where the pipeline names its columns, nothing else of a schema counts: it may have what no column can hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakebound.formats.kinds import schema_reader
from lakebound.formats.merged_fields import merged
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import (
    KnownSchemas,
    PartOfRecord,
    ReadSchemas,
    SchemaId,
    SchemaText,
    TopicSchema,
    UnreadableSchemaError,
)


@dataclass(frozen=True)
class Version:
    """One version of a subject.

    Attributes:
        number: Of the version within its subject.
        ids: What records may say of it: its number in the registry, and its GUID where the registry has one.
        schema: The schema; None where it cannot be read.
        problem: Why nothing is read with it; None where something is.
        is_older: Whether all others are newer, whatever their numbers: the registry had deleted it before the pipeline could
            use it, or has it no more.
        is_used: Whether records were read with it before; it makes no other version.
    """

    number: int
    ids: tuple[SchemaId, ...]
    schema: SchemaText | None
    problem: str | None = None
    is_older: bool = False
    is_used: bool = field(default=False, compare=False)

    @property
    def rank(self) -> tuple[bool, int]:
        """What orders the versions of a subject, the newest last."""
        return not self.is_older, self.number


@dataclass(frozen=True)
class _Written:
    """A version that records may have been written with.

    Attributes:
        ids: What records say of it.
        schema: The schema.
        is_mistake: Whether the registry had deleted it before it was used: it decides nothing about the others.
    """

    ids: tuple[SchemaId, ...]
    schema: SchemaText
    is_mistake: bool


@dataclass(frozen=True)
class _Subject:
    """The versions of one subject that may be read.

    Attributes:
        name: Its name.
        reader: The newest one that has columns.
        record: Full name of the type of its records; None: the reader's only or first one.
        columns: Of all that have some.
        writers: The versions that records may have been written with: what records say of each, and its schema.
        refused: Why nothing is read with the others.
    """

    name: str
    reader: SchemaText
    record: str | None
    columns: pa.Schema
    writers: tuple[_Written, ...]
    refused: tuple[tuple[SchemaId, str], ...]


def schemas_of_file(schema: SchemaText, record: str | None, wanted: pa.Schema | None = None) -> ReadSchemas:
    """Return how values are read that were all written with one schema, which no record names.

    Args:
        schema: The schema.
        record: Full name of the type of the records, where the schema has several.
        wanted: Columns that the pipeline names; None: all that the schema has.

    Raises:
        UnreadableSchemaError: It cannot be read, or a part of it that is read has no column.
    """
    columns = _columns(schema, record, wanted, is_framed=False)
    return ReadSchemas(columns, schema, is_one_value=schema_reader(schema.kind).is_one_value(schema, record))


def schemas_of_subjects(
    subjects: Mapping[str, Sequence[Version]],
    record: str | None,
    passed_over: Mapping[SchemaId, str],
    strange: Mapping[SchemaId, str],
    *,
    asks: bool = True,
    wanted: pa.Schema | None = None,
    topics: Mapping[str, Collection[str]] | None = None,
    part: PartOfRecord = "value",
) -> ReadSchemas:
    """Return how values are read that name their schema.

    Args:
        subjects: Versions of each subject; at least one each.
        record: Full name of the type of the records, where a schema has several.
        passed_over: Schemas that the tables cannot follow, and why.
        strange: Schemas that records named and that are of no subject, and why nothing is read with them.
        asks: Whether the registry is asked for further ones that records name.
        wanted: Columns that the pipeline names; None: those that the versions have together.
        topics: Those whose records are of each subject; None where it does not matter.
        part: Of the records: a key that has no fields is a column by itself, so keys of all topics have fields, or none has.

    Raises:
        UnreadableSchemaError: No version of a subject has columns, or subjects differ in the type of one that is read.
    """
    units: dict[str, str] = {}
    found = [_subject(name, versions, record, passed_over, wanted, units) for name, versions in subjects.items()]
    columns = _all_columns((one.name, one.columns) for one in found) if wanted is None else wanted
    writers: dict[SchemaId, SchemaText] = {}
    readers: dict[SchemaId, SchemaText] = {}
    records: dict[SchemaId, str] = {}
    refused: dict[SchemaId, str] = {}
    newest = found[0].reader
    is_one_value = _is_one_value(found, part)
    by_subject: dict[SchemaId, dict[str, TopicSchema]] = {}
    for one in found:
        refused |= dict(one.refused)
        for known, reason in one.refused:
            by_subject.setdefault(known, {})[one.name] = TopicSchema("", known, one.reader, problem=reason)
        for writer in one.writers:
            problem = _problem(writer.schema, one.reader, columns, one.record)
            for known in writer.ids:
                named = one.record if record is None else None
                by_subject.setdefault(known, {})[one.name] = TopicSchema("", known, one.reader, named, problem)
                if problem is not None:
                    refused.setdefault(known, problem)
                    continue
                if known in writers:  # of an earlier subject: that one's newest reads it where no topic is known
                    continue
                writers[known] = writer.schema
                if one.reader != newest:
                    readers[known] = one.reader
                if named is not None:
                    records[known] = named
    refused = {known: reason for known, reason in {**strange, **refused}.items() if known not in writers}
    known_schemas = KnownSchemas(
        tuple(writers.items()),
        tuple(refused.items()),
        tuple(readers.items()),
        tuple(records.items()),
        asks=asks,
        of_topics=tuple(_of_topics(by_subject, topics or {})),
    )
    return ReadSchemas(columns, newest, known_schemas, is_one_value)


def _is_one_value(subjects: Sequence[_Subject], part: PartOfRecord) -> bool:
    """Return whether the records of the first subject are values without fields.

    Raises:
        UnreadableSchemaError: Keys of one subject are, and those of another are not.
    """
    found = {one.name: schema_reader(one.reader.kind).is_one_value(one.reader, one.record) for one in subjects}
    if part == "key" and len(set(found.values())) > 1:
        value, record = (next(name for name, is_value in found.items() if is_value is wanted) for wanted in (True, False))
        raise UnreadableSchemaError(
            "", f"subject {value} has one value without fields, and subject {record} has fields; use a pipeline for each topic"
        )
    return next(iter(found.values()))


def _of_topics(
    by_subject: Mapping[SchemaId, Mapping[str, TopicSchema]], topics: Mapping[str, Collection[str]]
) -> Iterator[TopicSchema]:
    """Yield how the records of each topic are read, of schemas that subjects have together and do not read alike.

    A registry gives one id to a text that is in two subjects, and each may have newer versions of its own.
    """
    for each in by_subject.values():
        if len(set(each.values())) > 1:
            for subject, how in each.items():
                yield from (replace(how, topic=topic) for topic in topics.get(subject, ()))


@dataclass(frozen=True)
class RecordName:
    """Which type of a subject's records is read.

    Attributes:
        name: Its full name; None: the only or first one of each version, whatever its name.
        owner: The version that calls it so; None: what it is called is the same in all.
    """

    name: str | None = None
    owner: SchemaText | None = None

    def of(self, schema: SchemaText) -> str | None:
        """Return what a version calls it; where it has no such type, the name that others have.

        Raises:
            UnreadableSchemaError: The version cannot be read.
        """
        if self.name is None or self.owner is None or self.owner == schema:
            return self.name
        return schema_reader(schema.kind).same_record(schema, self.owner, self.name) or self.name


def record_of(versions: Sequence[Version], record: str | None) -> RecordName:
    """Return the type of a subject's records: that of its oldest version, while the newest one still has it.

    A type that a newer version puts before it is mostly one that a field of it has. Were records read as that one, none of
    those that are there would be one.

    Args:
        versions: Of the subject.
        record: Full name of the type that the pipeline names.
    """
    readable = [one for one in versions if one.problem is None]
    there = [one for one in readable if not one.is_older] or readable
    found: list[tuple[SchemaText, tuple[str, ...]]] = []
    for version in sorted(there, key=lambda one: one.rank):
        if version.schema is not None:
            try:
                found.append((version.schema, schema_reader(version.schema.kind).records_of(version.schema)))
            except UnreadableSchemaError:
                continue
    if record is not None:
        return RecordName(record, _owner([schema for schema, _ in found], record))
    named = [one for one in found if one[1]]
    if all(len(names) == 1 for _, names in named):  # A type that is alone may have another name in each version.
        return RecordName()
    (oldest, names), (newest, _) = named[0], named[-1]
    if len(names) > 1 and not schema_reader(oldest.kind).reads_first():
        return RecordName()
    has_it = schema_reader(newest.kind).same_record(newest, oldest, names[0]) is not None
    return RecordName(names[0], oldest) if has_it else RecordName()


def _owner(schemas: Sequence[SchemaText], record: str) -> SchemaText | None:
    """Return the newest schema that has a type of a name."""
    for schema in reversed(schemas):
        try:
            if schema_reader(schema.kind).same_record(schema, schema, record) is not None:
                return schema
        except UnreadableSchemaError:
            continue
    return None


def _subject(
    name: str,
    versions: Sequence[Version],
    record: str | None,
    passed_over: Mapping[SchemaId, str],
    wanted: pa.Schema | None,
    units: dict[str, str],
) -> _Subject:
    usable, refused = _usable(versions, passed_over)
    named = record_of(versions, record)
    if record is None:
        usable, others = _of_one_type(usable)
        refused |= others
    if wanted is not None:
        usable, other_units = _of_one_unit(usable, named, wanted, units)
        refused |= other_units
    found: list[tuple[SchemaText, pa.Schema]] = []
    writers: list[_Written] = []
    newest_problem: UnreadableSchemaError | None = None
    for one in usable:
        try:
            found.append((one.schema, _columns(one.schema, named.of(one.schema), wanted, is_framed=True)))
        except UnreadableSchemaError as exc:
            if wanted is not None and found:  # What it does not have, the newer one that reads it may have a default for.
                writers.append(one)
                continue
            newest_problem = newest_problem or UnreadableSchemaError(exc.path, f"{exc.reason} (subject {name})")
            refused |= dict.fromkeys(one.ids, str(exc))
            continue
        writers.append(one)
    if not found:
        why = next(iter(refused.values()), None) or next((one.problem for one in versions if one.problem), "there is none")
        raise newest_problem or UnreadableSchemaError("", f"subject {name} has no version that can be read: {why}")
    columns = wanted
    if columns is None:
        columns = pa.schema([column.with_nullable(True) for column in merged([list(own) for _, own in found])])
    return _Subject(name, found[0][0], named.of(found[0][0]), columns, tuple(writers), tuple(refused.items()))


def _usable(versions: Sequence[Version], passed_over: Mapping[SchemaId, str]) -> tuple[list[_Written], dict[SchemaId, str]]:
    """Return the versions that nothing speaks against until now, the newest first, and what speaks against the others."""
    usable: list[_Written] = []
    refused: dict[SchemaId, str] = {}
    for version in sorted(versions, key=lambda one: one.rank, reverse=True):
        reason = version.problem or next((passed_over[known] for known in version.ids if known in passed_over), None)
        if reason is None and version.schema is not None:
            usable.append(_Written(version.ids, version.schema, version.is_older and not version.is_used))
        else:
            refused |= dict.fromkeys(version.ids, reason or "it cannot be read")
    return usable, refused


def _of_one_type(usable: Sequence[_Written]) -> tuple[list[_Written], dict[SchemaId, str]]:
    """Return the versions whose records are of the type that the oldest one has, and why nothing is read with the others.

    Args:
        usable: The versions, the newest first.
    """
    refused: dict[SchemaId, str] = {}
    known: frozenset[str] = frozenset()
    first = ""
    for one in _deciding_first(usable):
        reader = schema_reader(one.schema.kind)
        try:
            names, own = reader.names_of_one(one.schema), next(iter(reader.records_of(one.schema)), "")
        except UnreadableSchemaError:
            continue  # told where its columns are read
        if known and names and not known & names:
            told = f"its record is {own}, and that of older versions is {first}; name the one to read by `record:`"
            refused |= dict.fromkeys(one.ids, told)
        else:
            known, first = known | names, own or first
    return [one for one in usable if not refused.keys() & one.ids], refused


def _deciding_first(usable: Sequence[_Written]) -> list[_Written]:
    """Return versions, given the newest first, in the order in which they decide what they have together: the oldest first."""
    oldest_first = usable[::-1]
    return [one for is_last in (False, True) for one in oldest_first if one.is_mistake is is_last]


def _of_one_unit(
    usable: Sequence[_Written], record: RecordName, wanted: pa.Schema, first: dict[str, str]
) -> tuple[list[_Written], dict[SchemaId, str]]:
    """Return the versions whose numbers count what those of the oldest one count, and why nothing is read with the others.

    A column of whole numbers that stand for times says nothing of their unit: rows of two versions would look alike.

    Args:
        usable: The versions, the newest first.
        record: The type of the records.
        wanted: The columns.
        first: By their paths, what the numbers of the oldest version count; subjects share it.
    """
    refused: dict[SchemaId, str] = {}
    for one in _deciding_first(usable):
        known = {**first} if one.is_mistake else first
        try:
            units = schema_reader(one.schema.kind).units_of(one.schema, record.of(one.schema), wanted)
        except UnreadableSchemaError:
            continue  # told where its columns are read
        other = next((path for path, unit in units.items() if known.setdefault(path, unit) != unit), None)
        if other is not None:
            told = f"is in {units[other]}, but the column has values in {known[other]} from an older version"
            refused |= dict.fromkeys(one.ids, f"{other}: {told}; give the field another name")
    return [one for one in usable if not refused.keys() & one.ids], refused


def _columns(schema: SchemaText, record: str | None, wanted: pa.Schema | None, *, is_framed: bool) -> pa.Schema:
    """Return the columns of a schema; where some are wanted these, if records of it can be read so.

    Raises:
        UnreadableSchemaError: A part has no column, or does not go into the one that is wanted.
    """
    reader = schema_reader(schema.kind)
    if wanted is None:
        return reader.columns_of(schema, record)
    reader.payload_decoder(schema, schema, wanted, record, is_framed=is_framed)
    return wanted


def _all_columns(subjects: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    found: dict[str, tuple[str, pa.Field]] = {}
    for subject, columns in subjects:
        for column in columns:
            first, known = found.setdefault(as_compared(column.name), (subject, column))
            if known.type != column.type or known.name != column.name:
                raise UnreadableSchemaError(
                    column.name,
                    f"is {known.name} {known.type} in subject {first} and {column.name} {column.type} in subject {subject}; "
                    f"use a pipeline for each topic",
                )
    return pa.schema([column for _, column in found.values()])


def _problem(writer: SchemaText, reader: SchemaText, columns: pa.Schema, record: str | None) -> str | None:
    """Return why records of a schema cannot be read; None where they can."""
    try:
        schema_reader(reader.kind).payload_decoder(writer, reader, columns, record, is_framed=True)
    except UnreadableSchemaError as exc:
        return str(exc)
    return None
