"""What a new pipeline says of values whose schema a registry has: the fields of its YAML, and why these. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lakebound.formats.schemas import RecordType, SchemaId, SchemaKind
from lakebound.spec.draft.wire_format import WireFormat

_MOST_SUBJECTS = 5


@dataclass(frozen=True)
class FoundSchema:
    """What a registry has by an id that records name.

    Attributes:
        kind: Format of the schema.
        subjects: That have it; none where the registry does not tell.
        record: Type of the records; None where nothing names it.
    """

    kind: SchemaKind
    subjects: tuple[str, ...]
    record: RecordType | None


@dataclass(frozen=True)
class Registered:
    """How values, or keys, are proposed to be read.

    Attributes:
        fields: Of ``value:`` in the YAML, in their order.
        subject: In the registry.
        told: What was found, in sentences.
        others: What the pipeline does not land: other subjects and types among the records, in words.
    """

    fields: Mapping[str, str]
    subject: str
    told: str
    others: tuple[str, ...] = ()


def proposed(
    topic: str, registry: str, wire: WireFormat, found: Mapping[SchemaId, FoundSchema], part: Literal["key", "value"] = "value"
) -> Registered | None:
    """Return how records are read whose schemas a registry has; None where it has none of them.

    Args:
        topic: That has the records.
        registry: Its name in registries.yaml.
        wire: What the records say.
        found: What the registry has by their ids.
        part: Of the records.
    """
    known = [one for one in wire.ids if one in found]
    if not known:
        return None
    first = found[known[0]]
    fields = {
        "format": str(first.kind),
        "registry": registry,
        **_subject_fields(f"{topic}-{part}", topic, first, has_others=bool(_other_types(found.values(), first))),
    }
    subject = _subject(fields, topic, part)
    told = (
        f"{wire.records:,} of the sampled {part}s name a schema of a registry ({wire.named}): {first.kind} of the subject "
        f"{subject} in the registry {registry}"
    )
    if not first.subjects:
        told += "; the registry does not tell whose schema it is: compare the subject"
    return Registered(fields, subject, told, tuple(_others(found, wire.ids, first, subject)))


def _subject_fields(default: str, topic: str, one: FoundSchema, *, has_others: bool) -> dict[str, str]:
    """Return the fields that name the subject, as the registry has it, and the type where there are others."""
    named = {} if one.record is None else {"record": one.record.name}
    of_several = {} if one.record is None or (one.record.is_default and not has_others) else named
    if not one.subjects or default in one.subjects:
        return of_several
    if one.record is not None and one.record.name in one.subjects:
        return {"subject_strategy": "record_name", **named}
    if one.record is not None and f"{topic}-{one.record.name}" in one.subjects:
        return {"subject_strategy": "topic_record_name", **named}
    return {"subject": one.subjects[0], **of_several}


def _subject(fields: Mapping[str, str], topic: str, part: str) -> str:
    by_strategy = {"record_name": fields.get("record"), "topic_record_name": f"{topic}-{fields.get('record')}"}
    return fields.get("subject") or by_strategy.get(fields.get("subject_strategy", "")) or f"{topic}-{part}"


def _others(found: Mapping[SchemaId, FoundSchema], ids: Sequence[SchemaId], first: FoundSchema, subject: str) -> list[str]:
    """Return what of the sample goes to quarantine with this proposal."""
    missing, types = [one for one in ids if one not in found], _other_types(found.values(), first)
    told = [f"the registry does not have {', '.join(map(str, missing[:_MOST_SUBJECTS]))}: such records go to quarantine"]
    others = dict.fromkeys(
        f"{one.record.name if one.record is not None else one.kind} of {' and '.join(one.subjects) or 'an unknown subject'}"
        for one in found.values()
        if (one.subjects and subject not in one.subjects) or one in types
    )
    if others:
        told.append(
            f"the topic has other types of records, too: {', '.join([*others][:_MOST_SUBJECTS])}. A pipeline lands one type; "
            f"records of the others go to quarantine"
        )
    return told if missing else told[1:]


def _other_types(found: Iterable[FoundSchema], first: FoundSchema) -> list[FoundSchema]:
    """Return the schemas of the first one's subjects whose records are of another type, as far as names tell."""
    name, own = None if first.record is None else first.record.name, set(first.subjects)
    same = [one for one in found if own & {*one.subjects}]
    return [one for one in same if one.record is not None and one.record.is_binding and one.record.name != name]
