"""Which schema registry of registries.yaml has the schemas that a topic's records name, for a pipeline that is about to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from lakebound.errors import LakeboundError
from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import RecordType, SchemaId, SchemaText, UnreadableSchemaError
from lakebound.registry.client import RegistryClient, UnusableSchemaError
from lakebound.spec.draft.registered import FoundSchema, Registered, proposed
from lakebound.spec.draft.wire_format import WireFormat
from lakebound.spec.registry import RegistrySpec
from lakebound.tables.type_names import type_name

_MOST_ASKED = 10
"""Schemas of a sample: those of most of its records."""
Part = Literal["key", "value"]


@dataclass(frozen=True)
class RegistrySearch:
    """What registries know of the records of a topic.

    Attributes:
        proposal: How they are read; None where no registry has their schemas.
        columns: Of the commonest schema: names, and types as Spark's DDL; none where it has no columns.
        problems: Why no registry told, or what is refused of the one that fits.
    """

    proposal: Registered | None = None
    columns: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Answered:
    """What one registry has.

    Attributes:
        registry: Its name.
        schemas: By their ids.
        found: The same, as a proposal needs it.
        problems: Why something is missing.
    """

    registry: str
    schemas: Mapping[SchemaId, SchemaText]
    found: Mapping[SchemaId, FoundSchema]
    problems: tuple[str, ...]


def search_registries(
    topic: str, wire: WireFormat, registries: Mapping[str, RegistrySpec], part: Part = "value"
) -> RegistrySearch:
    """Return how a topic's records are read, by the registry that fits best; nothing is raised for one that does not answer.

    Args:
        topic: That has the records.
        wire: What they say.
        registries: By their names.
        part: Of the records.
    """
    answers = [_ask(name, spec, topic, wire, part) for name, spec in registries.items()]
    # Ids are small numbers, so several registries may have them: the one that has a subject of the topic is meant.
    best = max(answers, key=lambda one: (_of_topic(one.found.values(), topic), len(one.found)), default=None)
    proposal = None if best is None else proposed(topic, best.registry, wire, best.found, part)
    if best is None or proposal is None:
        return RegistrySearch(problems=tuple(problem for one in answers for problem in one.problems))
    schema = next(best.schemas[one] for one in wire.ids if one in best.schemas)
    try:
        columns = schema_reader(schema.kind).columns_of(schema, proposal.fields.get("record"))
    except UnreadableSchemaError as exc:
        return RegistrySearch(proposal, (), (*best.problems, f"the schema cannot be landed as it is: {exc}"))
    return RegistrySearch(proposal, _told(columns), best.problems)


def _told(columns: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, type_name(one.type)) for one in columns)


def _of_topic(found: Iterable[FoundSchema], topic: str) -> int:
    return sum(any(topic in subject for subject in one.subjects) for one in found)


def _ask(name: str, spec: RegistrySpec, topic: str, wire: WireFormat, part: Part) -> _Answered:
    schemas: dict[SchemaId, SchemaText] = {}
    found: dict[SchemaId, FoundSchema] = {}
    problems: list[str] = []
    try:
        client = RegistryClient(name, spec)
        try:
            for one in wire.ids[:_MOST_ASKED]:
                try:
                    schema = client.schema(one)
                except UnusableSchemaError as exc:
                    problems.append(f"registry {name}: schema {one}: {exc}")
                    continue
                if schema is not None:
                    schemas[one] = schema
                    record = _record(schema, wire.payloads.get(one, b""))
                    found[one] = FoundSchema(schema.kind, _subjects(client, one, f"{topic}-{part}"), record)
        finally:
            client.close()
    except LakeboundError as exc:
        problems.append(f"registry {name}: {exc}")
    return _Answered(name, schemas, found, tuple(problems))


def _subjects(client: RegistryClient, schema_id: SchemaId, default: str) -> tuple[str, ...]:
    """Return the subjects of a schema; where a registry is not asked by an id, the usual one if it is there."""
    found = client.subjects(schema_id) if isinstance(schema_id, int) else []
    return tuple(found) or ((default,) if client.versions(default) else ())


def _record(schema: SchemaText, payload: bytes) -> RecordType | None:
    try:
        return schema_reader(schema.kind).record_type(schema, payload)
    except UnreadableSchemaError:
        return None
