"""What can be calculated from the facts of a foreign checkpoint; the rules judge it. Pure.

O is the newest batch planned (``offsets/``), C the newest finished (``commits/``), V the newest epoch that a table says the
query committed to it; -1 where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from lakebound.inspection.doctor.foreign.checkpoint_facts import CheckpointFacts
from lakebound.inspection.doctor.foreign.facts import ForeignFacts
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory, StreamCommit
from lakebound.landing.checkpoint.log_files import OffsetsFile

# The clocks of the driver and of table commits differ by less than this; usually it is the same clock.
CLOCK_SLACK_MS = 60_000


class Standing:
    """How far the checkpoint and the tables are, compared with each other.

    Attributes:
        facts: As they were read.
        tables: Of the facts.
        kafka_topics: Of the facts.
        checkpoint: Without files that look like batches but are not.
        strays: Those files.
        own_id: The query's id in ``metadata``, None when it is missing or damaged.
        candidates: Ids of queries that the tables know and whose newest epoch fits this checkpoint.
        query_id: ``own_id`` if a table knows it, else the only candidate if there is one.
    """

    def __init__(self, facts: ForeignFacts) -> None:
        self.facts = facts
        self.tables = facts.tables
        self.kafka_topics = facts.kafka
        self.own_id = facts.checkpoint.query_id
        self.checkpoint, self.strays = _without_strays(facts.checkpoint, _newest_epoch(facts.tables, self.own_id))
        self.planned = self.checkpoint.newest_planned
        self.finished = self.checkpoint.newest_finished
        self.candidates = self._candidates()
        is_known = any(self.own_id in table.epochs for table in self.tables)
        self.query_id = self.own_id if is_known or len(self.candidates) != 1 else self.candidates[0]
        self.landed = tuple(table.epochs.get(self.query_id or "", -1) for table in self.tables)

    @property
    def lowest(self) -> int:
        """V of the table that is furthest behind."""
        return min(self.landed, default=-1)

    @property
    def highest(self) -> int:
        """V of the table that is furthest ahead."""
        return max(self.landed, default=-1)

    @property
    def floor(self) -> int:
        """The oldest V from which a restart skips nothing; it runs at most the newest batch again."""
        return max(self.finished, self.planned - 1) if self.finished <= self.planned else self.finished

    @cached_property
    def ranges(self) -> BatchSizes:
        """Sizes of batches, by offsets files and by tables."""
        return BatchSizes(self.checkpoint, self.tables, self.query_id)

    def evidence(self, **more: object) -> dict[str, object]:
        """Return O, C and V, as findings show them."""
        landed = {table.table: epoch for table, epoch in zip(self.tables, self.landed, strict=True)}
        return {"offsets_newest": self.planned, "commits_newest": self.finished, "table_epochs": landed, **more}

    def _candidates(self) -> tuple[str, ...]:
        known = {query for table in self.tables for query in table.epochs}
        fitting = {self.planned, self.finished} - {-1}
        tables = [table for table in self.tables if table.exists]
        return tuple(sorted(query for query in known if all(table.epochs.get(query, -1) in fitting for table in tables)))


@dataclass(frozen=True)
class BatchSizes:
    """Sizes of batches, counted twice: by the checkpoint's offsets, and by the rows of the table's commits."""

    checkpoint: CheckpointFacts
    tables: tuple[ForeignHistory, ...]
    query_id: str | None

    def records(self, batch: int) -> int | None:
        """Return how many offsets a batch spans; None where the files do not say."""
        after, before = self.checkpoint.sound_offsets(batch), self.checkpoint.sound_offsets(batch - 1)
        if after is None or before is None or not after.records_are_countable:
            return None
        return sum(offset - before.marks.get(mark, 0) for mark, offset in after.marks.items())

    def rows_agree(self, batch: int) -> bool:
        """Whether a table got exactly as many rows in this batch as the batch spans offsets."""
        return any(found[0] == found[1] for found in self._counts(batch))

    def rows_contradict(self, batch: int) -> bool:
        """Whether every other batch has as many rows as offsets, and this one does not."""
        return any(
            found[0] != found[1] and self._is_one_to_one(table, batch)
            for table in self.tables
            for found in self._counts(batch, (table,))
        )

    def are_few(self, batch: int) -> bool:
        """Whether only this batch and its neighbours are kept, so that rows confirm nothing yet."""
        return not any(self._counts(other) for other in self._others(batch))

    def vouched(self, batch: int) -> bool:
        """Whether a batch's offsets file is what Spark wrote for this batch: the table's rows say so, or else its checksum.

        A checksum also fits a file copied from another query, so it counts only if other batches show that rows need not agree.
        """
        found = self.checkpoint.sound_offsets(batch)
        if found is None or self.rows_agree(batch):
            return found is not None
        return found.checksum == "matches" and not (self._counts(batch) and self.are_few(batch))

    def commits_of(self, batch: int) -> list[StreamCommit]:
        """Return the commits of a batch, over all tables."""
        return [commit for table in self.tables for commit in table.of(self.query_id) if commit.epoch == batch]

    def _counts(self, batch: int, tables: Iterable[ForeignHistory] | None = None) -> list[tuple[int, int]]:
        """Return offsets and rows of a batch, per table that knows both. A batch that spans no offsets says nothing."""
        records = self.records(batch)
        if not records:
            return []
        return [
            (records, commit.rows)
            for table in (self.tables if tables is None else tables)
            for commit in table.of(self.query_id)
            if commit.epoch == batch and commit.rows is not None
        ]

    def _others(self, batch: int) -> list[int]:
        # A wrong file makes the batch after it wrong, too: the neighbours confirm nothing.
        return [other for other in self.checkpoint.offsets if abs(other - batch) > 1]

    def _is_one_to_one(self, table: ForeignHistory, batch: int) -> bool:
        counts = [found for other in self._others(batch) for found in self._counts(other, (table,))]
        return bool(counts) and all(records == rows for records, rows in counts)


def follows(before: OffsetsFile, after: OffsetsFile) -> str | None:
    """Return why ``after`` cannot be what Spark planned next after ``before``; None when it can."""
    if len(before.sources) != len(after.sources):
        return f"they name {len(before.sources)} and {len(after.sources)} sources"
    gone = sorted(set(before.marks) - set(after.marks))
    if gone:
        return f"partition {gone[0][2]} of topic {gone[0][1]!r} is no longer there"
    back = sorted(mark for mark, offset in before.marks.items() if after.marks[mark] < offset)
    if back:
        mark = back[0]
        return f"topic {mark[1]!r} partition {mark[2]} goes back from {before.marks[mark]} to {after.marks[mark]}"
    if before.planned_at_ms is not None and before.planned_at_ms == after.planned_at_ms:
        return "both were planned in the same millisecond: one is a copy of the other"
    return None


def _newest_epoch(tables: Iterable[ForeignHistory], own_id: str | None) -> int:
    """Return the newest epoch of the query, or of any query in a table that does not know this one."""
    query_id = own_id or ""
    known = [[table.epochs[query_id]] if query_id in table.epochs else list(table.epochs.values()) for table in tables]
    return max((epoch for epochs in known for epoch in epochs), default=-1)


def _without_strays(checkpoint: CheckpointFacts, landed: int) -> tuple[CheckpointFacts, tuple[str, ...]]:
    """Remove files above a gap whose batch is in no other file and in no table."""
    strays = list(checkpoint.strays)
    offsets, commits = dict(checkpoint.offsets), dict(checkpoint.commits)
    while (newest := max(commits, default=-1)) > max(landed, *offsets, -1) and newest > 0 and newest - 1 not in commits:
        strays.append(f"commits/{newest}")
        del commits[newest]
    while (newest := max(offsets, default=-1)) > 0 and newest - 1 not in offsets:
        below = max((batch for batch in offsets if batch < newest), default=-1)
        if below < 0 or max(landed, *commits, -1) > below:
            break
        strays.append(f"offsets/{newest}")
        del offsets[newest]
    return replace(checkpoint, offsets=offsets, commits=commits), tuple(sorted(strays))
