"""Which of the newest schemas are passed over where tables cannot follow all of them: as few as possible. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakebound.formats.schemas import PartOfRecord, SchemaId

Ids = tuple[SchemaId, ...]
"""What records say of one schema."""
Counts = tuple[int, ...]
"""Of each subject, how many of its newest schemas are passed over."""


@dataclass(frozen=True)
class Newest:
    """Schemas of one subject that may be passed over.

    Attributes:
        part: Of the records: whose schemas they are.
        ids: What records say of each, newest first.
    """

    part: PartOfRecord
    ids: Sequence[Ids]


def choices(subjects: Sequence[Newest]) -> Iterator[Counts]:
    """Yield each choice of newest schemas, few before many; one of a subject before one of the subjects behind it."""
    limits = tuple(len(one.ids) for one in subjects)
    for total in range(sum(limits) + 1):
        yield from _adding_up(limits, total)


def passed_over(
    subjects: Sequence[Newest], counts: Counts, refusals: Mapping[Counts, str]
) -> dict[PartOfRecord, dict[SchemaId, str]]:
    """Return which schemas a choice passes over, and why.

    Args:
        subjects: All of them.
        counts: The choice.
        refusals: What was said where fewer were passed over.
    """
    found: dict[PartOfRecord, dict[SchemaId, str]] = {one.part: {} for one in subjects}
    for at, (one, count) in enumerate(zip(subjects, counts, strict=True)):
        for older, ids in enumerate(one.ids[:count]):
            alone = tuple(older if other == at else 0 for other in range(len(subjects)))
            found[one.part] |= dict.fromkeys(ids, refusals[alone])
    return found


def oldest_first(subjects: Sequence[Newest], counts: Counts) -> list[tuple[PartOfRecord, Ids]]:
    """Return the schemas that a choice passes over, of each subject the oldest first."""
    return [(one.part, ids) for one, count in zip(subjects, counts, strict=True) for ids in reversed(one.ids[:count])]


def _adding_up(limits: Counts, total: int) -> Iterator[Counts]:
    if not limits:
        yield ()
        return
    first, behind = limits[0], sum(limits[1:])
    for count in range(min(total, first), max(0, total - behind) - 1, -1):
        yield from ((count, *rest) for rest in _adding_up(limits[1:], total - count))
