"""Which ids a registry is asked for, and what becomes of each after the answers. Pure.

Random bytes can name thousands of ids. So an id that a registry does not have is not asked for again for a while, all unknown
ids together have one deadline, and low numbers come first: registries count from 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lakebound.errors import RegistryUnavailableError
from lakebound.formats.schemas import SchemaId, SchemaText

MANY_IDS = 100
"""More unknown ids at once come from random bytes, not from producers that register schemas; fewer are waited for."""


@dataclass(frozen=True)
class Found:
    """What was found of schemas.

    Attributes:
        schemas: By what records say of them.
        refused: Why values of a schema cannot be read, by what records say of it: the registry does not have it, or Lakebound
            cannot use it. Records of these go to quarantine.
        away: Why the registry has not told the others: it is an outage, and they are asked for again. None where no id is left.
    """

    schemas: Mapping[SchemaId, SchemaText]
    refused: Mapping[SchemaId, str]
    away: RegistryUnavailableError | None = None


@dataclass(frozen=True)
class Answers:
    """What a registry answered until the deadline.

    Attributes:
        schemas: By id.
        refused: Why it gave none, by id.
        away: The first error of those that say that it is away.
        unanswered: Ids without an answer.
    """

    schemas: Mapping[SchemaId, SchemaText] = field(default_factory=dict)
    refused: Mapping[SchemaId, str] = field(default_factory=dict)
    away: RegistryUnavailableError | None = None
    unanswered: Collection[SchemaId] = ()


@dataclass(frozen=True)
class Late:
    """What it means that a registry has not answered for an id until the deadline.

    Attributes:
        reason: Of ids, where there are many of them: why their records go to quarantine.
        error: Where there are few: the registry is slow, which is an outage.
    """

    reason: str
    error: RegistryUnavailableError


def ids_to_ask(ids: Iterable[SchemaId], known: Collection[SchemaId]) -> list[SchemaId]:
    """Return which ids the registry is asked for, in this order: low numbers first, then GUIDs.

    Args:
        ids: What records say of their schemas.
        known: Those of which it is known what becomes of them.
    """
    asked = [one for one in dict.fromkeys(ids) if one not in known]
    return sorted(asked, key=lambda one: (isinstance(one, str), one if isinstance(one, int) else 0))


def found_of(
    ids: Iterable[SchemaId],
    schemas: Mapping[SchemaId, SchemaText],
    refused: Mapping[SchemaId, str],
    answers: Answers,
    late: Late,
) -> Found:
    """Return what becomes of ids.

    Args:
        ids: What was asked for.
        schemas: All that are known, those of the answers too.
        refused: Why there is none, of the answers too.
        answers: Of the registry, for those that were not known.
        late: Says of an id without an answer what it means.
    """
    ids = list(dict.fromkeys(ids))
    found = {one: schemas[one] for one in ids if one in schemas}
    gone = {one: refused[one] for one in ids if one in refused and one not in schemas}
    left = [one for one in ids if one not in found and one not in gone]
    has_answered = bool(answers.schemas or answers.refused)
    if answers.away is None and has_answered and len(left) > MANY_IDS:
        return Found(found, {**gone, **dict.fromkeys(left, late.reason)})
    return Found(found, gone, (answers.away or late.error) if left else None)
