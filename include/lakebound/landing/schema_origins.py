"""What the columns of a pipeline come from, by the versions of its subjects. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakebound.control.schemas_in_use import (
    MOST_COLUMNS,
    MOST_SUBJECTS,
    MOST_VERSIONS,
    ColumnOrigin,
    SchemasInUse,
    SubjectInUse,
    VersionInUse,
)
from lakebound.formats.kinds import schema_reader
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import SchemaId, UnreadableSchemaError
from lakebound.formats.versions import RecordName, Version, record_of
from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.schema_source import SchemaSourceSpec
from lakebound.tables.type_names import type_name

_MOST_REASON_CHARACTERS = 500


def schemas_in_use(
    source: SchemaSourceSpec,
    subjects: Mapping[str, Sequence[Version]],
    refused: Mapping[str, Mapping[SchemaId, str]],
    compatibility: Mapping[str, str],
) -> SchemasInUse:
    """Return what a pipeline's values or keys are read with, and what each column comes from.

    Args:
        source: How the pipeline says that they are read.
        subjects: All versions of each subject.
        refused: Of each subject, why nothing is read with a schema, by what records say of it.
        compatibility: Which changes of its schemas each subject allows.
    """
    found: list[SubjectInUse] = []
    columns: dict[str, ColumnOrigin] = {}
    for name, versions in [*subjects.items()][:MOST_SUBJECTS]:
        described, own = _subject(name, versions, source, refused.get(name, {}))
        found.append(SubjectInUse(subject=name, compatibility=compatibility.get(name, ""), versions=described))
        for key, origin in own.items():
            columns.setdefault(key, origin)
    wanted = _wanted(source)
    left_out = [] if wanted is None else [one.name for key, one in columns.items() if one.until is None and key not in wanted]
    return SchemasInUse(
        part=source.part,
        format=source.format,
        registry=source.registry or "",
        subjects=tuple(found),
        columns=tuple(one for key, one in columns.items() if wanted is None or key in wanted)[:MOST_COLUMNS],
        left_out=tuple(left_out[:MOST_COLUMNS]),
    )


def _subject(
    name: str, versions: Sequence[Version], source: SchemaSourceSpec, refused: Mapping[SchemaId, str]
) -> tuple[tuple[VersionInUse, ...], dict[str, ColumnOrigin]]:
    record, are_named = record_of(versions, source.record), source.value_schema is not None
    origins: dict[str, ColumnOrigin] = {}
    described: list[VersionInUse] = []
    newest: set[str] = set()
    for version in sorted(versions, key=lambda one: one.rank):
        reason, columns = _columns(version, record)
        # Columns that the pipeline names are read also of a schema that has others which no table can have.
        reason = reason if not are_named or version.schema is None else ""
        reason = reason or next((refused[one] for one in version.ids if one in refused), "")
        adds: list[str] = []
        for column in columns if not reason else ():
            key = as_compared(column.name)
            if key not in origins:
                adds.append(column.name)
                first = version.number
            else:
                first = origins[key].since
            origins[key] = ColumnOrigin(
                name=column.name, type=type_name(column.type), subject=name, since=first, until=version.number
            )
        if not reason:
            newest = {as_compared(column.name) for column in columns}
        described.append(
            VersionInUse(
                number=version.number,
                ids=version.ids,
                problem=reason[:_MOST_REASON_CHARACTERS],
                adds=tuple(adds[:MOST_COLUMNS]),
            )
        )
    current = {key: one.model_copy(update={"until": None}) if key in newest else one for key, one in origins.items()}
    fields_of_today_first = sorted(current.items(), key=lambda one: one[1].until is not None)
    return tuple(reversed(described[-MOST_VERSIONS:])), dict(fields_of_today_first)


def _columns(version: Version, record: RecordName) -> tuple[str, pa.Schema | tuple[()]]:
    if version.problem is not None or version.schema is None:
        return version.problem or "it cannot be read", ()
    try:
        return "", schema_reader(version.schema.kind).columns_of(version.schema, record.of(version.schema))
    except UnreadableSchemaError as exc:
        return str(exc), ()


def _wanted(source: SchemaSourceSpec) -> set[str] | None:
    """Return the columns that the YAML names; None where it names none, or Spark alone can say which."""
    if source.value_schema is None:
        return None
    try:
        return {as_compared(column.name) for column in read_columns(source.value_schema)}
    except UnclearDdlError:
        return None
