"""Schemas of registries that a pipeline has used: kept with its state, so that records can be read when a registry is away.

A file per schema, by its fingerprint, and one that says which schema each id of a registry stands for. An id is never given
another schema here: it is for a person to decide what a registry means that has changed one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, StateFile, change_text, files_in, read_bytes, write_text
from lakebound.control.state_text import parsed_json
from lakebound.formats.schemas import Reference, SchemaId, SchemaKind, SchemaText
from lakebound.frozen import FrozenRecord

MOST_IDS = 5000
"""Of all registries together; of more, those that were used last."""
MOST_CHARACTERS = 64 * 1024 * 1024
"""Of all texts together."""
MOST_REFERENCES = 2000
MOST_SUBJECTS = 1000
"""Of one schema; further ones are left out."""
_INDEX = "ids.json"
_MOST_DEPTH = 30

_Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Short = Annotated[str, StringConstraints(max_length=100)]
_Name = Annotated[str, StringConstraints(max_length=1000)]
_Subject = Annotated[str, StringConstraints(max_length=5000)]


class KeptId(FrozenRecord):
    """Which schema an id of a registry stands for.

    Attributes:
        registry: Name of the registry in registries.yaml.
        id: A number, or a GUID.
        fingerprint: Of the schema.
        characters: Of its text and of all that it imports.
        used_at: When it was last looked for, in epoch seconds, to the day.
        subjects: That have it, as far as they are known.
        numbers: Of its version within each subject, as far as they are known: ids say nothing of which version is newer.
        reused: Fingerprint of the other schema that the registry had by the id when it was last asked; "" where it had none.
    """

    registry: _Short
    id: Annotated[int, Field(ge=0)] | _Short
    fingerprint: _Fingerprint
    characters: Count = 0
    used_at: Moment = 0.0
    subjects: Annotated[tuple[_Subject, ...], Field(max_length=MOST_SUBJECTS)] = ()
    numbers: dict[_Subject, Count] = Field(default_factory=dict, max_length=MOST_SUBJECTS)
    reused: _Fingerprint | Literal[""] = ""


class _Index(FrozenRecord):
    ids: Annotated[tuple[KeptId, ...], Field(max_length=2 * MOST_IDS)] = ()


class _Imported(FrozenRecord):
    name: _Name
    fingerprint: _Fingerprint


class _Kept(FrozenRecord):
    kind: SchemaKind
    text: str
    references: Annotated[tuple[_Imported, ...], Field(max_length=MOST_REFERENCES)] = ()


_Versions = dict[tuple[str, str], dict[str, int]]
"""Of a registry's subject, the numbers of all versions by the fingerprints of their schemas."""


@dataclass(frozen=True)
class KeptSchemas:
    """What is kept of one registry.

    Attributes:
        schemas: By what records say of them.
        subjects: Which subjects have each.
        numbers: Of the version within a subject, as far as they are known.
        reused: Ids by which the registry has another schema, and the fingerprint of that.
    """

    schemas: Mapping[SchemaId, SchemaText]
    subjects: Mapping[SchemaId, Collection[str]]
    numbers: Mapping[SchemaId, Mapping[str, int]] = field(default_factory=dict)
    reused: Mapping[SchemaId, str] = field(default_factory=dict)

    def of(self, subject: str) -> dict[SchemaId, SchemaText]:
        """Return the schemas of a subject, the oldest version first.

        Those whose version is not known are the oldest: the registry has them no more. Among them, ids count.
        """
        numbers = self.numbers_of(subject)
        found = [(one, schema) for one, schema in self.schemas.items() if subject in self.subjects[one]]
        return dict(sorted(found, key=lambda one: (numbers.get(one[0], -1), str(one[0]).zfill(20))))

    def numbers_of(self, subject: str) -> dict[SchemaId, int]:
        """Return which versions of a subject its schemas were, as far as they are known."""
        return {one: known[subject] for one, known in self.numbers.items() if subject in known}


def read_kept_schemas(control: ControlFolder, registry: str) -> KeptSchemas:
    """Return what is kept of a registry. What is damaged or missing is left out: the registry has it, too.

    Raises:
        OSError: The state cannot be read.
    """
    known: dict[str, SchemaText | None] = {}
    schemas: dict[SchemaId, SchemaText] = {}
    subjects: dict[SchemaId, Collection[str]] = {}
    numbers: dict[SchemaId, Mapping[str, int]] = {}
    reused: dict[SchemaId, str] = {}
    for kept in _read_index(control).ids:
        schema = _read(control, kept.fingerprint, known, 0) if kept.registry == registry else None
        if schema is not None:
            schemas[kept.id], subjects[kept.id], numbers[kept.id] = schema, kept.subjects, kept.numbers
            if kept.reused:
                reused[kept.id] = kept.reused
    return KeptSchemas(schemas, subjects, numbers, reused)


def keep_schemas(
    control: ControlFolder,
    registry: str,
    schemas: Mapping[SchemaId, SchemaText],
    now: float,
    subjects: Mapping[SchemaId, Collection[str]] | None = None,
    numbers: Mapping[SchemaId, Mapping[str, int]] | None = None,
) -> None:
    """Keep schemas that were used; they are there after a power cut.

    An id that is kept already keeps its schema, whatever is given for it. What was not used for the longest time goes where
    there is too much.

    Args:
        control: State folder of the pipeline.
        registry: Name of the registry in registries.yaml.
        schemas: By what records say of them.
        now: Epoch seconds.
        subjects: Which subjects have each of them.
        numbers: Of the versions of these subjects, all or none of a subject.

    Raises:
        OSError: The state cannot be written.
        LockHeldError: Another process holds the index.
    """
    for schema in schemas.values():
        _write(control, schema, set())
    used = []
    for one, schema in schemas.items():
        of = tuple(sorted((subjects or {}).get(one, ())))[:MOST_SUBJECTS]
        known = (numbers or {}).get(one, {})
        used.append(
            KeptId(
                registry=registry,
                id=one,
                fingerprint=schema.fingerprint,
                characters=_characters(schema, set()),
                used_at=now,
                subjects=of,
                numbers={subject: known[subject] for subject in of if subject in known},
            )
        )
    left: list[str] = []

    def decide(text: str | None) -> str:
        before = _parsed(text).ids
        after = kept_ids(before, used)
        left.extend({one.fingerprint for one in before} - {one.fingerprint for one in after})
        return _Index(ids=after).model_dump_json(exclude_defaults=True)

    change_text(_index(control), decide, durable=True)
    if left:
        _remove_unused(control)


def note_reused_ids(control: ControlFolder, registry: str, reused: Mapping[SchemaId, str]) -> None:
    """Note by which ids a registry has another schema than the one that is kept; of all others that it has none.

    Args:
        control: State folder of the pipeline.
        registry: Name of the registry in registries.yaml.
        reused: The ids, and the fingerprint of that other schema.

    Raises:
        OSError: The state cannot be written.
        LockHeldError: Another process holds the index.
    """

    def decide(text: str | None) -> str:
        ids = (
            one.model_copy(update={"reused": reused.get(one.id, "")}) if one.registry == registry else one
            for one in _parsed(text).ids
        )
        return _Index(ids=tuple(ids)).model_dump_json(exclude_defaults=True)

    change_text(_index(control), decide, durable=True)


def kept_ids(before: Iterable[KeptId], used: Iterable[KeptId]) -> tuple[KeptId, ...]:
    """Return which ids are kept, those that were used last first. Pure.

    Args:
        before: What is kept.
        used: What was used now; of an id that is kept, only the time and further subjects count. Where the number of a version
            within a subject is known, all of the subject are: a schema that is none of them is older than they are, whatever
            its number was, as a registry that was emptied counts from 1 again.
    """
    used, known = [*used], {(one.registry, one.id): one for one in before}
    for one in used:
        there = known.get((one.registry, one.id))
        known[one.registry, one.id] = one if there is None else _used_again(there, one)
    versions: _Versions = {}
    for one in used:
        for subject, number in one.numbers.items():
            versions.setdefault((one.registry, subject), {})[one.fingerprint] = number
    left, kept = MOST_CHARACTERS, []
    every = (_numbered(one, versions) for one in known.values())
    for one in sorted(every, key=lambda one: (-one.used_at, -max(one.numbers.values(), default=0)))[:MOST_IDS]:
        left -= one.characters
        if left < 0:
            break
        kept.append(one)
    return tuple(kept)


def _used_again(kept: KeptId, used: KeptId) -> KeptId:
    subjects = tuple(sorted({*kept.subjects, *used.subjects}))[:MOST_SUBJECTS]
    return kept.model_copy(update={"used_at": used.used_at, "subjects": subjects})


def _numbered(kept: KeptId, versions: _Versions) -> KeptId:
    numbers: dict[str, int] = {}
    for subject in kept.subjects:
        there = versions.get((kept.registry, subject))
        number = kept.numbers.get(subject) if there is None else there.get(kept.fingerprint)
        if number is not None:
            numbers[subject] = number
    return kept if numbers == kept.numbers else kept.model_copy(update={"numbers": numbers})


def _index(control: ControlFolder) -> StateFile:
    return control.schemas / _INDEX


def _file(control: ControlFolder, fingerprint: str) -> StateFile:
    return control.schemas / f"{fingerprint}.json"


def _read_index(control: ControlFolder) -> _Index:
    try:
        return _parsed(read_bytes(_index(control)).decode(errors="replace"))
    except FileNotFoundError:
        return _Index()


def _parsed(text: str | None) -> _Index:
    """Return an index; what cannot be read says nothing, and the registry is asked again."""
    try:
        return _Index() if text is None else _Index.model_validate(parsed_json(text))
    except ValueError:
        return _Index()


def _read(control: ControlFolder, fingerprint: str, known: dict[str, SchemaText | None], depth: int) -> SchemaText | None:
    """Return a schema with all that it imports; None where a part is not there or is not what its name says."""
    if fingerprint in known or depth > _MOST_DEPTH:
        return known.get(fingerprint)
    known[fingerprint] = None  # Also of one that imports itself.
    kept = _read_one(_file(control, fingerprint))
    if kept is None:
        return None
    references = []
    for imported in kept.references:
        schema = _read(control, imported.fingerprint, known, depth + 1)
        if schema is None:
            return None
        references.append(Reference(imported.name, schema))
    found = SchemaText(kept.kind, kept.text, tuple(references))
    known[fingerprint] = found if found.fingerprint == fingerprint else None
    return known[fingerprint]


def _read_one(file: StateFile) -> _Kept | None:
    try:
        return _Kept.model_validate_json(read_bytes(file))
    except (FileNotFoundError, ValidationError, ValueError):
        return None


def _write(control: ControlFolder, schema: SchemaText, written: set[str]) -> None:
    """Write a schema and all that it imports, unless they are there; what is there and damaged is written again."""
    if schema.fingerprint in written:
        return
    written.add(schema.fingerprint)
    for one in schema.references:
        _write(control, one.schema, written)
    references = tuple(_Imported(name=one.name, fingerprint=one.schema.fingerprint) for one in schema.references)
    kept, file = _Kept(kind=schema.kind, text=schema.text, references=references), _file(control, schema.fingerprint)
    if _read_one(file) != kept:
        write_text(file, kept.model_dump_json(exclude_defaults=True), durable=True)


def _characters(schema: SchemaText, counted: set[str]) -> int:
    if schema.fingerprint in counted:
        return 0
    counted.add(schema.fingerprint)
    return len(schema.text) + sum(_characters(one.schema, counted) for one in schema.references)


def _remove_unused(control: ControlFolder) -> None:
    """Remove the files that no id needs any more."""
    needed: set[str] = set()
    waiting = [one.fingerprint for one in _read_index(control).ids]
    while waiting:
        fingerprint = waiting.pop()
        if fingerprint not in needed:
            needed.add(fingerprint)
            kept = _read_one(_file(control, fingerprint))
            waiting += [one.fingerprint for one in kept.references] if kept is not None else []
    for file in files_in(control.schemas, "*.json"):
        if file.name != _INDEX and file.stem not in needed:
            file.unlink(missing_ok=True)
