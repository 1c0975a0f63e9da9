"""Which offsets were redone last: what tells the readers of the tables. Written by who redoes, read by Airflow's watchers.

Pure, but for reading and changing the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import Field

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, change_text, read_json
from lakebound.frozen import FrozenRecord
from lakebound.ledger.entry import Offsets, intervals_of

MOST_KEPT = 20
MOST_RANGES = 500
"""Of a table. Where there are more, each partition has one that goes from its first to its last."""


class RedoneRange(FrozenRecord):
    """Offsets of one partition, from the first up to but without the next one."""

    topic: str
    partition: Count
    first_offset: Count
    next_offset: Count


class TableRedone(FrozenRecord):
    """What was redone in one table."""

    version: str = Field(description="Delta version or Iceberg snapshot id that has the new rows.")
    ranges: tuple[RedoneRange, ...]


class Redone(FrozenRecord):
    """What a redo, or the undoing of one, has done to the tables until it ended.

    Attributes:
        number: Grows from one to the next, also where the file was lost in between.
        at: When that was noted, in epoch seconds.
        plan: Hash of the plan that was approved.
        undoes: Hash of the plan of the redo that it undid; None for a redo.
        source_before: Hashes of the code that had made the rows that left; None is what is not known.
        source_after: Of that which made the rows that came.
        tables: By the table's id.
    """

    number: Count = 0
    at: Moment
    plan: str
    undoes: str | None = None
    source_before: tuple[str | None, ...] = ()
    source_after: tuple[str | None, ...] = ()
    tables: dict[str, TableRedone]

    def says_as(self, other: Redone) -> bool:
        """Return whether both name the same ranges of the same plan."""
        ranges = [{table: told.ranges for table, told in one.tables.items()} for one in (self, other)]
        return (self.plan, self.undoes, ranges[0]) == (other.plan, other.undoes, ranges[1])


class _File(FrozenRecord):
    newest: tuple[Redone, ...] = ()


def note_redone(control: ControlFolder, done: Redone) -> None:
    """Note what was redone, unless that is what was noted last: a redo that had nothing left to do tells nobody anew.

    Args:
        control: The pipeline's folder.
        done: What was done; its number is given here.

    Raises:
        LockHeldError: Others hold the file for too long.
        OSError: It cannot be written.
    """

    def decide(text: str | None) -> str | None:
        newest = _noted(text)
        if newest and newest[0].says_as(done):
            return None
        number = max(round(done.at * 1000), newest[0].number + 1 if newest else 0)
        kept = (done.model_copy(update={"number": number}), *newest[: MOST_KEPT - 1])
        return json.dumps(_File(newest=kept).model_dump(mode="json"))

    change_text(control.redone, decide, durable=True)


def read_redone(control: ControlFolder) -> tuple[Redone, ...]:
    """Return what was redone last, newest first.

    Raises:
        ValueError: The file cannot be read.
        OSError: Neither, for another reason.
    """
    body = read_json(control.redone)
    return () if body is None else _File.model_validate(body).newest


def ranges_of(offsets: Offsets) -> tuple[RedoneRange, ...]:
    """Return offsets as ranges; of very many, each partition as one range that holds all of its own."""
    held = intervals_of(offsets)
    if sum(len(intervals) for _, _, intervals in held) > MOST_RANGES:
        held = [(topic, p, ((intervals[0][0], intervals[-1][1]),)) for topic, p, intervals in held if intervals]
    return tuple(
        RedoneRange(topic=topic, partition=partition, first_offset=start, next_offset=end)
        for topic, partition, intervals in held
        for start, end in intervals
    )


def _noted(text: str | None) -> Sequence[Redone]:
    """Return what a file says; one that is torn says nothing, and is written anew."""
    try:
        return () if text is None else _File.model_validate_json(text).newest
    except ValueError:
        return ()
