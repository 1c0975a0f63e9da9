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
        refused: Why values of a schema cannot be read, by what records say of it: the registry does not have it, it means two
            schemas, or Lakebound cannot use it. Records of these go to quarantine.
        away: Why the registry has not told the others: it is an outage, and they are asked for again. None where no id is left.
    """

    schemas: Mapping[SchemaId, SchemaText]
    refused: Mapping[SchemaId, str]
    away: RegistryUnavailableError | None = None


@dataclass(frozen=True)
class Known:
    """What is known of ids before the registry is asked.

    Attributes:
        schemas: Those that were used before, of this process and of the state.
        checked: Which of them the registry has told this process.
        refused: Why an id was refused a short time ago.
    """

    schemas: Mapping[SchemaId, SchemaText]
    checked: Collection[SchemaId] = ()
    refused: Mapping[SchemaId, str] = field(default_factory=dict)


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


def ids_to_ask(ids: Iterable[SchemaId], known: Known) -> list[SchemaId]:
    """Return which ids the registry is asked for, in this order: unknown ones, low numbers first, then those of the state."""
    asked = [one for one in dict.fromkeys(ids) if one not in known.checked and one not in known.refused]
    return sorted(asked, key=lambda one: (one in known.schemas, isinstance(one, str), one if isinstance(one, int) else 0))


def found_of(ids: Iterable[SchemaId], known: Known, answers: Answers, late: Late) -> Found:
    """Return what becomes of ids.

    Args:
        ids: What was asked for.
        known: Before the registry was asked.
        answers: Of the registry.
        late: Says of an id without an answer what it means.
    """
    schemas: dict[SchemaId, SchemaText] = {}
    refused: dict[SchemaId, str] = {}
    left: list[SchemaId] = []
    for one in dict.fromkeys(ids):
        if one in known.refused or (one in answers.refused and one not in known.schemas):
            refused[one] = known.refused.get(one) or answers.refused[one]
        elif one in known.schemas or one in answers.schemas:
            schemas[one] = known.schemas.get(one) or answers.schemas[one]
        else:
            left.append(one)
    has_answered = bool(answers.schemas or answers.refused)
    if answers.away is None and has_answered and len(left) > MANY_IDS:
        return Found(schemas, {**refused, **dict.fromkeys(left, late.reason)})
    return Found(schemas, refused, (answers.away or late.error) if left else None)


@dataclass(frozen=True)
class Late:
    """What it means that a registry has not answered for an id until the deadline.

    Attributes:
        reason: Of ids, where there are many of them: why their records go to quarantine.
        error: Where there are few: the registry is slow, which is an outage.
    """

    reason: str
    error: RegistryUnavailableError


def reused_ids(known: Mapping[SchemaId, SchemaText], answers: Mapping[SchemaId, SchemaText]) -> dict[SchemaId, SchemaText]:
    """Return the ids by which a registry has another schema than the one that was used, with what it has now."""
    return {one: schema for one, schema in answers.items() if one in known and known[one].fingerprint != schema.fingerprint}
