"""Which schemas an entry names, and which ids of a registry mean another schema now than an entry says. Pure.

The state keeps the schemas themselves. What an entry says is still there when the state is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version

FINGERPRINT_DIGITS = 16
MOST_NAMED = 20
"""Schemas of one part of the records that an entry names: some 500 bytes."""
Named = Mapping[str, str]
"""By what records say of a schema, the first digits of its fingerprint."""


def reused_ids(versions: Iterable[Version], named: Named) -> dict[SchemaId, SchemaText]:
    """Return the ids by which a registry has another schema than an entry names, with what it has now.

    Args:
        versions: What the registry has.
        named: What entries name.
    """
    return {
        one: version.schema
        for version in versions
        for one in version.ids
        if version.schema is not None and named.get(str(one), digits(version.schema)) != digits(version.schema)
    }


def to_name(writers: Iterable[tuple[SchemaId, SchemaText]], before: Named, reused: Iterable[SchemaId]) -> dict[str, str]:
    """Return what the next entries name.

    Args:
        writers: The schemas that records can have now, the newest first.
        before: What was named before: an id never gets another fingerprint.
        reused: Ids that mean another schema now; they are named as long as any.
    """
    found = {str(one): before[str(one)] for one in reused}
    found |= {str(one): before.get(str(one), digits(schema)) for one, schema in writers}
    found = {**found, **{one: fingerprint for one, fingerprint in before.items() if one not in found}}
    return dict([*found.items()][:MOST_NAMED])


def digits(schema: SchemaText) -> str:
    """Return the first digits of a fingerprint."""
    return schema.fingerprint[:FINGERPRINT_DIGITS]
