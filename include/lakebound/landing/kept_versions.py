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


def others_by_themselves(
    known: Mapping[SchemaId, SchemaText], own: Mapping[SchemaId, SchemaText]
) -> dict[SchemaId, SchemaText]:
    """Return the schemas that are others than those that were used, whatever they import.

    Args:
        known: By what records say of them, schemas that were read with before.
        own: What a registry has now by ids, without what it imports.
    """
    both = ((one, replace(known[one], references=()), schema) for one, schema in own.items() if one in known)
    return {one: schema for one, before, schema in both if schema.fingerprint != before.fingerprint}


def with_kept(
    versions: Sequence[Version],
    kept: Mapping[SchemaId, SchemaText],
    problems: Mapping[SchemaId, str],
    numbers: Mapping[SchemaId, int] | None = None,
) -> list[Version]:
    """Return the versions of a subject, and the schemas that were used of it and that the registry has no more.

    The latter are older than all others, in their order. They stay readable, and give columns. Of a schema that the registry
    has by another id or version now, what was said of it before is a further name. One that the registry has and cannot give
    any more, as where its user may not read what it imports, stays where it is.

    Args:
        versions: That the registry has.
        kept: Schemas that were used, by what records say of them, the oldest first.
        problems: Why nothing is read with the ids that meant another schema before, of all subjects together.
        numbers: Which versions the schemas of ``kept`` were, as far as they are known.
    """
    listed = {one for version in versions for one in version.ids}
    by_number: dict[int, list[SchemaId]] = {}
    for one in kept:
        if one not in listed and one not in problems and one in (numbers or {}):
            by_number.setdefault((numbers or {})[one], []).append(one)
    in_place = (_as_used(one, kept, problems, by_number) for one in versions)
    judged = [_judged(one, problems, kept) for one in in_place]
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


def _as_used(
    version: Version,
    kept: Mapping[SchemaId, SchemaText],
    problems: Mapping[SchemaId, str],
    by_number: Mapping[int, Sequence[SchemaId]],
) -> Version:
    """Return a version that the registry cannot give any more as it was used; any other as it is.

    Args:
        version: What the registry says of it.
        kept: Schemas that were used.
        problems: Of ids that mean another schema now.
        by_number: Of a version whose id the registry does not tell, either, what it was by its number.
    """
    if version.schema is not None or version.problem is None:
        return version
    ids = tuple(one for one in version.ids or by_number.get(version.number, ()) if one in kept and one not in problems)
    if not ids:
        return version
    return replace(version, ids=ids, schema=kept[ids[0]], problem=None, is_older=False)


def _judged(version: Version, problems: Mapping[SchemaId, str], kept: Mapping[SchemaId, SchemaText]) -> Version:
    told = next((problems[one] for one in version.ids if one in problems), version.problem)
    return replace(version, problem=told, is_used=any(one in kept for one in version.ids))
