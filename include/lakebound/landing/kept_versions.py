"""The versions of a subject: those that its registry has, and those that a pipeline has read records with before. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version


def reused_ids(known: Mapping[SchemaId, SchemaText], now: Mapping[SchemaId, SchemaText]) -> dict[SchemaId, str]:
    """Return the ids by which a registry has another schema now, and the fingerprint of that.

    Args:
        known: By what records say of them, schemas that were read with before.
        now: What the registry has by ids.
    """
    both = ((one, known[one], schema) for one, schema in now.items() if one in known)
    return {one: schema.fingerprint for one, before, schema in both if schema.fingerprint != before.fingerprint}


def with_kept(
    versions: Sequence[Version], kept: Mapping[SchemaId, SchemaText], problems: Mapping[SchemaId, str]
) -> list[Version]:
    """Return the versions of a subject, and the schemas that were used of it and that the registry has no more.

    The latter are older than all others, in their order. They stay readable, and give columns. Of a schema that the registry
    has by another id or version now, what was said of it before is a further name.

    Args:
        versions: That the registry has.
        kept: Schemas that were used, by what records say of them, the oldest first.
        problems: Why nothing is read with the ids that meant another schema before, of all subjects together.
    """
    judged = [_judged(one, problems, kept) for one in versions]
    taken = {one for version in judged for one in version.ids}
    at_of = {one.schema.fingerprint: at for at, one in enumerate(judged) if one.schema is not None and one.problem is None}
    # Newer than those that were deleted before they could be used.
    first = 1 + max((one.number for one in judged if one.is_older), default=0)
    older: list[Version] = []
    for one, schema in kept.items():
        ids = () if one in problems else (one,)
        at = at_of.get(schema.fingerprint)
        if at is not None:
            judged[at] = replace(judged[at], ids=tuple(dict.fromkeys((*judged[at].ids, *ids))), is_used=True)
        elif one in problems or one not in taken:
            older.append(Version(first + len(older), ids, schema, is_older=True, is_used=True))
    left = {one: told for one, told in problems.items() if one in kept and one not in taken}
    refused = [Version(0, (one,), None, told, is_older=True) for one, told in left.items()]
    return [*refused, *older, *judged]


def _judged(version: Version, problems: Mapping[SchemaId, str], kept: Mapping[SchemaId, SchemaText]) -> Version:
    told = next((problems[one] for one in version.ids if one in problems), version.problem)
    return replace(version, problem=told, is_used=any(one in kept for one in version.ids))
