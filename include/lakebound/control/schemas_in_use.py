"""Which schemas of a registry a stream reads with, and what each column comes from: the record, and what is said of it.

The application writes the record when it has asked the registry. So whoever shows it needs no registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.formats.schemas import SchemaId
from lakebound.frozen import FrozenRecord

MOST_VERSIONS = 50
"""Of a subject, the newest."""
MOST_COLUMNS = 500
MOST_SUBJECTS = 50
_MOST_NAMED = 8

_Short = Annotated[str, StringConstraints(max_length=1000)]


class VersionInUse(FrozenRecord):
    """A version of a subject.

    Attributes:
        number: Of the version.
        ids: What records may say of it.
        problem: Why its records go to quarantine; empty where they land.
        adds: Columns that no version before had.
    """

    number: Count
    ids: tuple[SchemaId, ...] = ()
    problem: _Short = ""
    adds: Annotated[tuple[_Short, ...], Field(max_length=MOST_COLUMNS)] = ()


class SubjectInUse(FrozenRecord):
    """A subject of a registry.

    Attributes:
        subject: Its name.
        compatibility: Which changes of its schemas it allows, such as BACKWARD; empty where it is not known.
        versions: The newest first.
    """

    subject: _Short
    compatibility: _Short = ""
    versions: Annotated[tuple[VersionInUse, ...], Field(max_length=MOST_VERSIONS)] = ()


class ColumnOrigin(FrozenRecord):
    """What a column comes from.

    Attributes:
        name: Of the column.
        type: As Spark's DDL.
        subject: In the registry.
        since: Number of the first version that has the field.
        until: Number of the last one; None: the newest that is in use has it.
    """

    name: _Short
    type: str
    subject: _Short
    since: Count
    until: Count | None = None


class SchemasInUse(FrozenRecord):
    """The schemas of a pipeline's values, or of its keys.

    Attributes:
        part: ``value`` or ``key``.
        format: Such as ``avro``.
        registry: Its name in registries.yaml.
        subjects: Of the pipeline's topics.
        columns: Of all versions in use.
        left_out: Fields of the newest versions that ``schema:`` in the YAML does not name.
    """

    part: _Short = "value"
    format: _Short
    registry: _Short
    subjects: Annotated[tuple[SubjectInUse, ...], Field(max_length=MOST_SUBJECTS)] = ()
    columns: Annotated[tuple[ColumnOrigin, ...], Field(max_length=MOST_COLUMNS)] = ()
    left_out: Annotated[tuple[_Short, ...], Field(max_length=MOST_COLUMNS)] = ()


class SchemasRecord(FrozenRecord):
    """What a stream reads with.

    Attributes:
        at: When the registry was asked, in epoch seconds.
        parts: Of the records.
    """

    at: Moment
    parts: tuple[SchemasInUse, ...] = ()


def told_schemas(parts: Sequence[SchemasInUse]) -> Iterator[str]:
    """Yield what people should know of the schemas, a line each. Pure."""
    for part in parts:
        for one in part.subjects:
            yield _told_subject(part, one)
        if part.left_out:
            yield f"the newest schema has fields that {part.part}.schema does not name: {_some(part.left_out)}"


def _told_subject(part: SchemasInUse, one: SubjectInUse) -> str:
    what = "" if part.part == "value" else f"{part.part}s: "
    told = f"{what}{part.format} of the subject {one.subject} in the registry {part.registry}"
    used = [version for version in one.versions if not version.problem]
    if used:
        ids = [known for version in used for known in version.ids]
        told += f", version {used[0].number}{_ids(used[0])}"
        told += f"; {len(used)} versions in use (ids {_some([*map(str, ids)])})" if len(used) > 1 else ""
    told += f"; compatibility {one.compatibility or 'not known'}"
    newest = one.versions[0] if one.versions else None
    if newest is not None and newest.problem:
        told += f". The newest, version {newest.number}{_ids(newest)}, is not followed: {newest.problem}"
    elif used and used[0].adds and len(used) > 1:
        told += f"; version {used[0].number} added {_some(used[0].adds)}"
    return told


def _ids(version: VersionInUse) -> str:
    return f" (id {', '.join(map(str, version.ids))})" if version.ids else ""


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def read_schemas_in_use(control: ControlFolder) -> SchemasRecord | None:
    """Return the record; None where no stream with a registry has run, or the file cannot be read."""
    try:
        body = read_json(control.schemas_in_use)
        return None if body is None else SchemasRecord.model_validate(body)
    except (OSError, ValueError):
        return None


def write_schemas_in_use(control: ControlFolder, record: SchemasRecord) -> None:
    """Replace the record.

    Raises:
        OSError: The folder cannot be written.
    """
    write_json(control.schemas_in_use, record.model_dump(mode="json"))
