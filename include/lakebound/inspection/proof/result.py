"""What a proof says: per table what is landed, missing and doubled, with every range named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field, computed_field

from lakebound.frozen import Frozen
from lakebound.inspection.proof.facts import CoverageSource
from lakebound.ledger.intervals import Interval, Intervals, merge, total
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.table import TableRole

Ranges = dict[str, dict[int, tuple[Interval, ...]]]
"""Topic to partition to merged half-open intervals."""

_NAMED_RANGES = 5


class Found(Frozen):
    """Something that was counted, and where.

    Attributes:
        count: How many offsets or rows.
        ranges: The offsets, exactly.
        within: Where only an entry's count is known: the ranges in which the rest of ``count`` lies.
    """

    count: int = 0
    ranges: Ranges = Field(default_factory=dict)
    within: Ranges = Field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.count > 0

    def plus(self, other: Found) -> Found:
        """Return both together; offsets that both name are counted once for each."""
        return Found(
            count=self.count + other.count,
            ranges=_merged(self.ranges, other.ranges),
            within=_merged(self.within, other.within),
        )

    def __str__(self) -> str:
        places = [describe(self.ranges)] if self.ranges else []
        if self.within:
            places.append(f"somewhere in {describe(self.within)}")
        return f"{self.count}" + (f": {', '.join(places)}" if places else "")


class OldestEntry(Frozen):
    """The oldest commit whose entry is kept and counts.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        committed_at_ms: When it was committed.
    """

    version: str
    committed_at_ms: int


class MisreadColumn(Frozen):
    """A column of some of a table's files whose values readers do not show where they belong.

    Attributes:
        column: Its name in the files.
        belongs_to: The table's column for which it was written; None of one that the table no longer has.
        seen_in: The table's column in which readers show it; None where they show null.
        files: How many.
        rows: In these files; None where that is not known.
        such_as: The first of the files.
    """

    column: str
    belongs_to: str | None
    seen_in: str | None
    files: int
    rows: int | None
    such_as: tuple[str, ...]

    def __str__(self) -> str:
        belong = "belong to no column any more" if self.belongs_to is None else f"belong to the column {self.belongs_to}"
        seen = "do not find them" if self.seen_in is None else f"show them in the column {self.seen_in}"
        files = f"the file {self.such_as[0]}" if self.files == 1 else f"{self.files:,} files such as {self.such_as[0]}"
        rows = "" if self.rows is None else f" ({self.rows:,} rows)"
        return f"the values of {self.column} in {files}{rows} {belong}, but readers {seen}"


class TableProof(Frozen):
    """What is proved of one table.

    Attributes:
        table: Its id.
        role: What it is to the pipeline.
        source: What its coverage was read from.
        deep: Whether its rows were judged, not its entries alone.
        records: Kafka records landed: counted in the rows when deep, else the sum of the entries that are kept.
        rows: Rows landed, counted likewise.
        filtered: Records that the transform dropped, by the entries.
        quarantined: Records in quarantine, of this table's coverage.
        released: Of these, records that were landed or filtered after all, mostly by a release: they are counted in both.
        missing: Records that should be there and are not. Where a record has lost only some of its rows, those rows.
        duplicated: Surplus copies of rows, and offsets both landed and quarantined; by entries alone, what ``overlaps`` says.
        overlaps: Offsets in the ranges of more than one commit.
        gaps: Holes in the coverage.
        skipped: Offsets that Kafka had deleted before they were landed and a person gave up: lost by decision, not missing.
        erased: Rows that were erased by decision: not missing, and not counted in ``records`` and ``rows`` when deep.
        outside: Rows whose offsets the coverage does not hold, or which name another topic id, or no origin at all.
        surplus: Rows beyond those that the entry of their range counts.
        undecided: Offsets without a row whose entry is no longer kept: filtered or lost, nobody can tell.
        lag: Offsets that Kafka has beyond the high-water marks.
        high_water_marks: Next offset to read, per topic and partition.
        since: The oldest entry that is kept; None where the entries reach back to the table's birth, or there is none.
        assumed: Offsets landed before it, as it says: their own entries were removed, so these alone do not prove them.
        table_rows: Rows of the table by its metadata, a moment after its ledger was read; None where they were counted.
        misread: Columns of its files that readers do not see rightly; looked for when deep.
        windows_compared: Whether the rows of closed windows were judged; None where nobody asked.
        problems: Every reason why the proof does not hold.
        notes: What limits it.
    """

    table: str
    role: TableRole = "target"
    source: CoverageSource = "none"
    deep: bool = False
    records: int = 0
    rows: int = 0
    filtered: int = 0
    quarantined: int = 0
    released: int = 0
    missing: Found = Found()
    duplicated: Found = Found()
    overlaps: Found = Found()
    gaps: Found = Found()
    skipped: Found = Found()
    erased: int = 0
    outside: Found = Found()
    surplus: Found = Found()
    undecided: Found = Found()
    lag: int = 0
    since: OldestEntry | None = None
    assumed: int = 0
    table_rows: int | None = None
    high_water_marks: NextOffsets = Field(default_factory=dict)
    misread: tuple[MisreadColumn, ...] = ()
    windows_compared: bool | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether the proof holds."""
        return not self.problems

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_partial(self) -> bool:
        """Whether offsets are taken as landed that nothing was compared for: ``records`` and ``rows`` are without them."""
        return not self.deep and self.assumed > 0

    @property
    def scope(self) -> str:
        """Of what the counts are, where that is not the whole table; empty where it is."""
        if not self.is_partial:
            return ""
        return f"since {self.since.version if self.since else 'no entry that is kept'}"

    @property
    def only_quarantined(self) -> int:
        """Records that are in quarantine and nowhere else: ``records + filtered + only_quarantined`` is what was read."""
        return max(0, self.quarantined - self.released)

    def adding(self, *, problems: Iterable[str] = (), notes: Iterable[str] = (), **changes: Any) -> TableProof:
        """Return the same with more problems and notes, and other fields changed."""
        texts = {"problems": (*self.problems, *problems), "notes": (*self.notes, *notes)}
        return self.model_copy(update={**changes, **texts})


class Proof(Frozen):
    """The answer for a pipeline, or for the one table of it that was asked for."""

    pipeline: str
    level: Literal["entries", "rows"]
    tables: tuple[TableProof, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether the proof of every table holds."""
        return all(table.ok for table in self.tables)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def missing(self) -> int:
        """Sum over the tables."""
        return sum(table.missing.count for table in self.tables)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def duplicated(self) -> int:
        """Sum over the tables."""
        return sum(table.duplicated.count for table in self.tables)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def skipped(self) -> int:
        """Sum over the tables."""
        return sum(table.skipped.count for table in self.tables)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def erased(self) -> int:
        """Rows, summed over the tables."""
        return sum(table.erased for table in self.tables)

    @property
    def is_empty(self) -> bool:
        """Whether no table has landed anything, so that there is nothing to prove."""
        return self.ok and not self.skipped and not any(map(_has_landed, self.tables))

    @property
    def sentence(self) -> str:
        """One line that says it all."""
        if self.is_empty:
            return f"pipeline {self.pipeline}: nothing has landed yet, so there is nothing to prove"
        landed = ", ".join(_landed(table) for table in self.tables if table.role == "target")
        counts = f"landed {landed or 'nothing'}; missing {self.missing}, duplicated {self.duplicated}"
        counts += f", lost by decision {self.skipped}" if self.skipped else ""
        counts += f", erased by decision {self.erased}" if self.erased else ""
        misread = sum(len(table.misread) for table in self.tables)
        counts += f", columns that readers do not see rightly {misread}" if misread else ""
        if self.ok:
            return f"pipeline {self.pipeline}: proved by its {self.level}: {counts}"
        number = sum(len(table.problems) for table in self.tables)
        problems = "1 problem" if number == 1 else f"{number} problems"
        return f"pipeline {self.pipeline}: the proof does not hold, {problems}: {counts}; see the runbook proof-failed"


def _has_landed(table: TableProof) -> bool:
    return table.source != "none" or any((table.records, table.rows, table.filtered, table.quarantined, table.assumed))


def _landed(table: TableProof) -> str:
    if not table.is_partial:
        return f"{table.table} {table.records}"
    return f"{table.table} {table.records} ({table.scope}; {table.assumed} offsets before it were not compared)"


def found(ranges: Ranges) -> Found:
    """Return offsets that are exactly known, each counted once."""
    merged = _merged(ranges, {})
    count = sum(total(intervals) for partitions in merged.values() for intervals in partitions.values())
    return Found(count=count, ranges=merged)


def describe(ranges: Ranges) -> str:
    """Return the ranges as text, the first few of them."""
    texts = [
        f"{topic}/{partition} [{start}, {end})"
        for topic, partitions in sorted(ranges.items())
        for partition, intervals in sorted(partitions.items())
        for start, end in intervals
    ]
    more = len(texts) - _NAMED_RANGES
    return ", ".join(texts[:_NAMED_RANGES]) + (f" and {more} more ranges" if more > 0 else "")


def _merged(left: Ranges, right: Ranges) -> Ranges:
    result: dict[str, dict[int, Intervals]] = {}
    for ranges in (left, right):
        for topic, partitions in ranges.items():
            for partition, intervals in partitions.items():
                known = result.setdefault(topic, {}).get(partition, ())
                both = tuple(interval for interval in merge((*known, *intervals)) if interval[0] < interval[1])
                if both:
                    result[topic][partition] = both
    return {topic: dict(sorted(partitions.items())) for topic, partitions in sorted(result.items()) if partitions}
