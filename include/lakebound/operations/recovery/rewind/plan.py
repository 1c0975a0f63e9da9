"""The plan of a rewind: from the facts of tables and Kafka, the steps and what they cost. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from lakebound.inspection.proof.entries import named
from lakebound.inspection.proof.result import describe
from lakebound.ledger.entry import Offsets, TopicOffsets, common, count, high_water_marks, intervals_of, missing, redo_in
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.intervals import Interval, merge
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import loss
from lakebound.ledger.source_ranges import landed_by
from lakebound.ledger.sources import UNKNOWN, Source, SourceVersion
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.landing_rate import catch_up_seconds
from lakebound.operations.recovery.plan import PlanRefusedError, RepairPlan, RepairStep
from lakebound.spec.table import TableRole
from lakebound.spec.times import in_utc
from lakebound.tables.table import PastVersion, TableVersion

RewindAction = Literal["rewind", "undo_rewind"]
READERS = (
    "Lakebound does not know who has read the rows that are removed: streaming readers of these tables that are past the "
    "target version stop with an error, or skip what is landed again; they must start again from the target version"
)


@dataclass(frozen=True)
class RewoundTable:
    """One table that goes back.

    Attributes:
        table: Its id.
        role: Whether it is a target or the quarantine.
        coverage: Its offsets now.
        rows: Its number of rows now.
        schema: Its columns now.
        target: The version to which it goes back.
        past: The contents of that version.
        kept_until_ms: Until when its present version is kept, by the pipeline's maintenance, or by the table's own settings if
            maintenance is off.
        released: How many records were released from quarantine until now.
        erased: How its entry names the rows that were erased by decision until now; None without any.
        sources: The versions of the code that made its rows.
        newest_redo: Id of the commit of the newest redo on which its rows stand; empty without one.
        changes_seen: How many commits by others ever changed its rows.
    """

    table: str
    role: TableRole
    coverage: Offsets
    rows: int
    schema: pa.Schema
    target: TableVersion
    past: PastVersion
    kept_until_ms: int
    released: int = 0
    erased: ErasedFile | None = None
    sources: tuple[SourceVersion, ...] = ()
    newest_redo: str = ""
    changes_seen: int = 0

    @property
    def redo_after(self) -> str:
        """Id of the commit of the newest redo that stands at the version to which it goes back; empty without one."""
        return (self.past.entry.newest_redo if self.past.entry else None) or ""

    @property
    def reset_coverage(self) -> Offsets:
        """The coverage of the reset entry: that of the version, and a mark in every partition that it had not read yet.

        Without the mark the stream would start such a partition at Kafka's earliest offset, or even at its latest, and ignore
        what was landed of it since. The quarantine needs no marks: it does not decide where reading begins.
        """
        held = self.past.entry.coverage if self.past.entry else {}
        if self.role == "quarantine":
            return held
        result: Offsets = dict(held)
        for topic, offsets in self.coverage.items():
            seen = held[topic].partitions if topic in held else {}
            unseen = {p: ((i[0][0], i[0][0]),) for p, i in offsets.partitions.items() if p not in seen and i}
            if unseen and (topic not in held or held[topic].topic_id == offsets.topic_id):
                result[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions={**seen, **unseen})
        return result

    @property
    def goes(self) -> Offsets:
        """The offsets that it has now and will not have afterwards."""
        return missing(self.coverage, self.reset_coverage)


@dataclass(frozen=True)
class RewindFacts:
    """Everything that a rewind is planned from.

    Attributes:
        targets: Those of the pipeline's targets that go back.
        quarantine: The quarantine, if it goes back with them.
        kept: Coverage of the targets that stay as they are.
        topics: Kafka's facts of the pipeline's topics.
        records_per_second: How fast the stream lands a backlog; None if its entries do not show it.
        source: The code on disk, which will land the rows again.
    """

    targets: tuple[RewoundTable, ...]
    quarantine: RewoundTable | None
    kept: Mapping[str, Offsets] = field(default_factory=dict)
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    records_per_second: float | None = None
    source: Source = UNKNOWN

    @property
    def tables(self) -> tuple[RewoundTable, ...]:
        """All tables that go back, the quarantine last."""
        return (*self.targets, *((self.quarantine,) if self.quarantine else ()))


def plan_rewind(pipeline: str, action: RewindAction, facts: RewindFacts, *, undoes: str | None = None) -> RepairPlan:
    """Return the plan.

    Its hash covers the versions to which the tables go back, their coverage, and the topic ids. It does not change while the
    stream runs.

    Args:
        pipeline: Its name.
        action: A rewind, or the undoing of one.
        facts: What it is planned from.
        undoes: For an undo, the hash of the rewind's plan.

    Raises:
        PlanRefusedError: A version cannot be restored, or Kafka lacks records that would have to be read again.
    """
    reason = next(_refusals(facts), None)
    if reason is not None:
        raise PlanRefusedError(pipeline, action, reason)
    replayed = _replayed(facts)
    records = sum(end - start for _, _, start, end in replayed)
    return RepairPlan(
        pipeline=pipeline,
        action=action,
        summary=f"{len(facts.tables)} tables go back to an earlier version, and the stream starts again from there",
        steps=tuple(_steps(facts)),
        facts={
            "topic_ids": {topic: known.topic_id for topic, known in sorted(facts.topics.items())},
            **({"undoes": undoes} if undoes else {}),
        },
        replays_records=records,
        removes_rows={table.table: max(table.rows - table.past.rows, 0) for table in facts.tables},
        estimate_seconds=catch_up_seconds(records, facts.records_per_second),
        notes=(*_same_code(pipeline, facts), *_released(pipeline, facts), *_redone(pipeline, facts), *_notes(facts, replayed)),
    )


def moved_forward(table: RewoundTable) -> bool:
    """Whether going to the target removes nothing: the target is then ahead, as in the undoing of a rewind."""
    return not count(table.goes)


def _steps(facts: RewindFacts) -> Iterator[RepairStep]:
    yield RepairStep(what="hold the pipeline, end its application after the batch in flight, take the lease")
    for table in facts.tables:
        detail: dict[str, Any] = {
            "version": table.target.version,
            "coverage": {topic: offsets.model_dump(mode="json") for topic, offsets in sorted(table.reset_coverage.items())},
        }
        if table.past.entry and table.past.entry.former:
            detail["former"] = table.past.entry.model_dump(mode="json", include={"former"})["former"]
        if table.past.entry and table.past.entry.released:
            detail["released"] = table.past.entry.released
        if table.past.entry and table.past.entry.foreign_changes:
            # What others changed before that version is in it still; what they changed since is undone.
            said = table.past.entry.model_dump(mode="json", include={"foreign_changes"})
            detail["foreign_changes"] = said["foreign_changes"]
        if table.past.entry and table.past.entry.sources:
            detail["sources"] = table.past.entry.model_dump(mode="json", include={"sources"})["sources"]
        if table.newest_redo or table.redo_after:
            detail["newest_redo"] = table.redo_after
            progress = redo_in(table.past.entry)
            detail["redo_progress"] = progress.model_dump(mode="json")
        changes = (table.past.entry.changes_seen if table.past.entry else None) or 0
        if table.changes_seen or changes:
            detail["changes_seen"] = changes
        if table.erased is not None:
            detail["erased"] = table.erased.model_dump(mode="json")
        when = in_utc(table.target.committed_at_ms)
        what = (
            f"restore {table.table} to version {table.target.version} of {when}, with a reset entry: {table.past.rows:,} rows"
        )
        yield RepairStep(what=what, table=table.table, detail=detail)
    yield RepairStep(
        what="release the lease and restore the desired state: the stream then starts at the next offsets of the tables"
    )


def _refusals(facts: RewindFacts) -> Iterator[str]:
    """Yield the reasons why there is no plan; the first one is shown."""
    for table in facts.tables:
        yield from _refusals_of_version(table)
    for table in facts.targets:
        yield from _refusals_of_topics(table, facts.topics)
    lost = _lost(facts)
    if lost:
        ranges = ", ".join(named(f"{one.topic} partition {one.partition} [{one.start}, {one.end})" for one in lost))
        total = loss(lost)
        yield f"Kafka no longer has {total:,} of the offsets that would have to be read again: {ranges}"


def _refusals_of_version(table: RewoundTable) -> Iterator[str]:
    past, version = table.past, f"version {table.target.version} of {table.table}"
    if past.missing_files:
        gone = f"{len(past.missing_files)} of its data files are gone (such as {past.missing_files[0]})"
        yield f"{version} cannot be restored: {gone}, removed by vacuum or expiry; only later versions can be restored"
    if past.entry is None:
        yield f"{version} has no ledger entry, so its offsets are not known"
    elif past.entry.erased != table.erased:
        yield (
            f"rows were erased from {table.table} by decision after {version}, which still has them: a rewind would bring them "
            f"back; only versions after the erasure can be restored"
        )


def _refusals_of_topics(table: RewoundTable, topics: Mapping[str, TopicFacts]) -> Iterator[str]:
    for topic in sorted({*table.coverage, *table.reset_coverage}):
        known = topics.get(topic)
        if known is None and topic in table.goes:
            yield f"offsets of {topic} would be removed from {table.table}, but the pipeline no longer reads that topic"
        for coverage in (table.reset_coverage, table.coverage):
            landed = coverage.get(topic)
            if known is not None and landed is not None and landed.topic_id != known.topic_id:
                yield (
                    f"topic {topic} was recreated: {table.table} has offsets of topic id {landed.topic_id}, and the broker has "
                    f"{known.topic_id}, so they cannot be read again"
                )


def _lost(facts: RewindFacts) -> list[LostRange]:
    """Return what a table would lose and Kafka no longer has."""
    gone: dict[tuple[str, int], list[Interval]] = {}
    for table in facts.targets:
        for topic, partition, intervals in intervals_of(table.goes):
            earliest = facts.topics[topic].earliest.get(partition, 0)
            deleted = [(start, min(end, earliest)) for start, end in intervals if start < earliest]
            gone.setdefault((topic, partition), []).extend(deleted)
    return [
        LostRange(topic=topic, partition=partition, start=start, end=end)
        for (topic, partition), intervals in sorted(gone.items())
        for start, end in merge(intervals)
    ]


def _replayed(facts: RewindFacts) -> list[tuple[str, int, int, int]]:
    """Return (topic, partition, start, end) of what is read again: from the lowest mark afterwards to the highest now."""
    now = [table.coverage for table in facts.targets] + list(facts.kept.values())
    then = [table.reset_coverage for table in facts.targets] + list(facts.kept.values())
    ends, starts = _extreme(now, max), _extreme(then, min)
    return [(*place, starts[place], end) for place, end in sorted(ends.items()) if starts.get(place, end) < end]


def _extreme(coverages: Sequence[Offsets], choose: Callable[[int, int], int]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for coverage in coverages:
        for topic, marks in high_water_marks(coverage).items():
            for partition, mark in marks.items():
                found[topic, partition] = choose(found.get((topic, partition), mark), mark)
    return found


def _notes(facts: RewindFacts, replayed: Sequence[tuple[str, int, int, int]]) -> Iterator[str]:
    for topic, partition, start, end in replayed:
        yield f"{topic} partition {partition}: [{start}, {end}) is read again; Kafka has it"
    for table in facts.tables:
        if table.past.rows > table.rows:
            yield f"{table.table} will have {table.past.rows - table.rows:,} rows more than now"
    yield from _below_marks(facts)
    if facts.quarantine is None:
        yield "the quarantine does not change: it already has the bad records of the offsets that are read again"
    if facts.kept:
        yield f"not changed: {', '.join(sorted(facts.kept))}; what they already have is not landed in them again"
    for table in facts.tables:
        if table.past.schema != table.schema:
            yield f"{table.table} gets back the columns of that version: the pipeline must fit them, or it will not start"
    for table in facts.tables:
        yield (
            f"`--undo` can restore the present version of {table.table} until maintenance removes it: the pipeline's own "
            f"maintenance keeps it until {in_utc(table.kept_until_ms)}, other tools may remove it earlier"
        )
    yield READERS


def _same_code(pipeline: str, facts: RewindFacts) -> Iterator[str]:
    """Yield a warning where the code on disk landed some of what is removed: it would make the same rows again."""
    if facts.source.hash and facts.source.hash in _made_what_goes(facts):
        yield (
            f"the transform and YAML on disk made rows that are removed (source {facts.source.hash}), and would make the "
            "same rows again. If they are the reason for this rewind, first run `lakebound control "
            f"{pipeline} hold`, and start the pipeline when they are mended"
        )


def _made_what_goes(facts: RewindFacts) -> set[str]:
    """Return the hashes of the code that landed offsets which a table will not have afterwards."""
    landed = ((table, by, offsets) for table in facts.targets for by, offsets in landed_by(table.sources, table.coverage))
    return {by.hash for table, by, offsets in landed if by is not None and count(common(table.goes, offsets))}


def _released(pipeline: str, facts: RewindFacts) -> Iterator[str]:
    """Yield what was landed from quarantine since: the stream does not read those records again below its start."""
    for table in facts.targets:
        gone = table.released - (table.past.entry.released if table.past.entry else 0)
        if gone > 0:
            yield (
                f"{gone:,} records that were released from quarantine are removed from {table.table}, too: when the stream has "
                f"caught up, `lakebound quarantine {pipeline} --replay` lands those that the stream has not landed again"
            )


def _redone(pipeline: str, facts: RewindFacts) -> Iterator[str]:
    """Yield which tables get rows back that a redo had replaced: below the start of the stream nobody makes them again."""
    for table in facts.targets:
        if table.newest_redo and table.newest_redo != table.redo_after:
            yield (
                f"{table.table} gets the rows back that a redo has replaced since. The stream makes those at or above its next "
                f"offsets again, and `lakebound redo {pipeline}` the others"
            )


def _below_marks(facts: RewindFacts) -> Iterator[str]:
    """Yield what a replay had landed below a table's mark: the stream continues at the mark, so it is not read again."""
    starts = {(topic, partition): start for topic, partition, start, _ in _replayed(facts)}
    for table in facts.targets:
        below: dict[str, dict[int, tuple[tuple[int, int], ...]]] = {}
        for topic, partition, intervals in intervals_of(table.goes):
            bound = starts.get((topic, partition), high_water_marks(table.reset_coverage)[topic][partition])
            cut = tuple((start, min(end, bound)) for start, end in intervals if start < bound)
            if cut:
                below.setdefault(topic, {})[partition] = cut
        if below:
            yield (
                f"{table.table} will lack {describe(below)}, which a replay had landed and which is below the start of the "
                "stream: land it again with `lakebound replay`"
            )
