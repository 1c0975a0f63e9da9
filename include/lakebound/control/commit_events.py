"""When a table's commits are worth an event: after a number of commits, some seconds after the first, or after a redo. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakebound.control.progress import Progress, TableProgress
from lakebound.control.redone import Redone
from lakebound.ledger.marks import NextOffsets


@dataclass(frozen=True)
class Announced:
    """What of a table's commits was announced, and since when something waits to be.

    Attributes:
        app_id: Of the application whose counts these are; counters restart with each application.
        version: The table's version that was announced last.
        commits: The application's count of commits by then.
        rows: The application's count of rows by then.
        waiting_since: Epoch seconds of the first look that found something new.
    """

    app_id: str = ""
    version: str = ""
    commits: int = 0
    rows: int = 0
    waiting_since: float | None = None


@dataclass(frozen=True)
class CommitEvent:
    """What is announced: the newest version, and what came since the announcement before.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        commits: How many came.
        rows: Rows that they added.
        committed_at: Epoch seconds of the newest.
        offsets: Next offsets per topic and partition that all tables of the pipeline have reached.
        complete_until: Everything that Kafka had at this time has landed, in epoch seconds; None while that is not known.
    """

    version: str
    commits: int
    rows: int
    committed_at: float
    offsets: NextOffsets
    complete_until: float | None


def announce(
    before: Announced, progress: Progress, table: TableProgress, now: float, *, every_commits: int, every_seconds: float
) -> tuple[Announced, CommitEvent | None]:
    """Return what is announced after this look, and the event if one is due.

    Args:
        before: After the look before.
        progress: The application's latest.
        table: Its part on the table.
        now: Epoch seconds.
        every_commits: Number of commits after which there is an event.
        every_seconds: Fewer wait no longer than so.
    """
    if table.version == before.version:
        return before, None
    known = (
        before if before.app_id == progress.app_id else Announced(progress.app_id, before.version, 0, 0, before.waiting_since)
    )
    commits, rows = max(0, table.commits - known.commits), max(0, table.rows - known.rows)
    since = known.waiting_since if known.waiting_since is not None else now
    if commits < every_commits and now - since < every_seconds:
        return Announced(known.app_id, known.version, known.commits, known.rows, since), None
    event = CommitEvent(table.version, commits, rows, table.committed_at, progress.high_water_marks, progress.complete_until)
    return Announced(progress.app_id, table.version, table.commits, table.rows), event


@dataclass(frozen=True)
class RedoneEvent(CommitEvent):
    """What is announced after a redo: no records came, and rows of others are different.

    Attributes:
        redone: ``plan``, ``undoes``, ``source_before``, ``source_after`` and the ``ranges`` of the table, as in ``Redone``.
    """

    redone: dict[str, Any]


def redone_event(done: Redone, table: str, progress: Progress | None) -> RedoneEvent:
    """Return the event of one table.

    Args:
        done: What was redone.
        table: The table's id; the redo has touched it.
        progress: The application's latest; None where there is none.
    """
    here = done.tables[table]
    redone = done.model_dump(mode="json", include={"plan", "undoes", "source_before", "source_after"})
    return RedoneEvent(
        version=here.version,
        commits=0,
        rows=0,
        committed_at=done.at,
        offsets=progress.high_water_marks if progress else {},
        complete_until=progress.complete_until if progress else None,
        redone=redone | {"ranges": [one.model_dump(mode="json") for one in here.ranges]},
    )
