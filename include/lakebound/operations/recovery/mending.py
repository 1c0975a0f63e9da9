"""The actions that repair a ledger: from rows, by accepting a loss, or for a recreated topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakebound.ledger.entry import FormerCoverage, Offsets, TopicOffsets, count, high_water_marks
from lakebound.ledger.intervals import Intervals, merge, subtract
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import debt, highest, lowest
from lakebound.ledger.start import marks_for_unseen
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.conditions import (
    HELD_MEANWHILE,
    afterwards,
    check_readable,
    dumped,
    refused,
    reset_step,
    topics_of,
)
from lakebound.operations.recovery.facts import HeldTable, RecoveryFacts
from lakebound.operations.recovery.plan import RepairPlan, RepairStep
from lakebound.operations.recovery.rebuild import Rebuilt

_ORIGIN = {"statistics": "the column statistics of its files", "scan": "a scan of its rows"}


def plan_rebase(facts: RecoveryFacts) -> RepairPlan:
    """Commit a ``reset`` entry to each table whose entries no longer say which offsets it has.

    Raises:
        PlanRefusedError: Every ledger can be used, a table's offsets cannot be determined, or Kafka does not know all topics.
    """
    broken = [table for table in facts.tables if table.refusal is not None]
    if not broken:
        raise refused(facts, "rebase", "the ledger of every table can be used; there is nothing to do")
    topics = topics_of(facts, "rebase")
    steps: list[RepairStep] = []
    notes: list[str] = []
    after: list[Offsets] = []
    for table in facts.tables:
        if table.refusal is None:
            after += [table.coverage] if table in facts.targets else []
            continue
        if table.rebuilt is None:
            raise refused(facts, "rebase", f"the offsets of {table.table} cannot be determined: {table.refusal}")
        coverage = _with_marks(table.rebuilt, topics) if table.role == "target" else table.rebuilt.coverage
        after += [coverage] if table.role == "target" else []
        what = f"{table.table}: commit a reset entry with {_ranges(coverage)}, from {_source(table.rebuilt)}"
        step = reset_step(table.table, what, coverage, table.rebuilt.former, table.rebuilt.released)
        by: dict[str, Any] = {"source": table.rebuilt.source, "version": table.rebuilt.version}
        if table.rebuilt.newest_redo is not None:
            by["newest_redo"] = table.rebuilt.newest_redo
            by["redo_progress"] = table.rebuilt.redo_progress.model_dump(mode="json")
        steps.append(step.model_copy(update={"detail": step.detail | by}))
        notes += [f"{table.table}: {table.refusal}", *_rebase_notes(facts.pipeline, table, table.rebuilt)]
    replays = _replays(facts, after)
    return RepairPlan(
        pipeline=facts.pipeline,
        action="rebase",
        summary=f"write a new ledger entry for {_names(broken)}, and continue from there",
        steps=(*steps, *afterwards(facts)),
        facts={"tables": {table.table: table.runbook for table in broken}, "runbook": broken[0].runbook},
        replays_records=replays,
        notes=(*notes, HELD_MEANWHILE),
    )


def plan_accept_loss(facts: RecoveryFacts) -> RepairPlan:
    """Record in each table the offsets that Kafka deleted before they were landed.

    Raises:
        PlanRefusedError: Nothing was lost, a ledger cannot be used, a topic was recreated, or Kafka does not know all topics.
    """
    check_readable(facts, "accept_loss")
    topics = topics_of(facts, "accept_loss")
    _check_incarnations(facts, topics)
    steps = []
    lost: dict[tuple[str, int], Intervals] = {}
    for table in facts.targets:
        skipped = _deleted_unlanded(table, topics)
        if not skipped:
            continue
        what = f"{table.table}: commit a skip entry: {_ranges(skipped)} are lost by decision, and landing continues after them"
        steps.append(RepairStep(what=what, table=table.table, detail={"commit": "skip", "range": dumped(skipped)}))
        for topic, held in skipped.items():
            for partition, intervals in held.partitions.items():
                lost[topic, partition] = merge((*lost.get((topic, partition), ()), *intervals))
    if not steps:
        raise refused(facts, "accept_loss", "Kafka has deleted no record that was not landed; there is nothing to do")
    ranges = [
        LostRange(topic=topic, partition=partition, start=start, end=end)
        for (topic, partition), intervals in sorted(lost.items())
        for start, end in intervals
    ]
    return RepairPlan(
        pipeline=facts.pipeline,
        action="accept_loss",
        summary="accept the loss of the records that Kafka has deleted, and continue at its earliest offsets",
        steps=(*steps, *afterwards(facts)),
        loses=tuple(ranges),
        replays_records=_replays(facts, [table.coverage for table in facts.targets]),
        notes=(
            "look for the records in a replica, an archive or at the producer first: after this, no application lands them",
            "Kafka continues to delete: raise the topic's retention before you approve, or the plan may have changed by then",
            HELD_MEANWHILE,
        ),
    )


def plan_new_incarnation(facts: RecoveryFacts) -> RepairPlan:
    """Land a recreated topic from its beginning; the rows of the old topic stay, with the old topic id.

    Raises:
        PlanRefusedError: No topic was recreated, a ledger cannot be used, or Kafka does not know all topics.
    """
    check_readable(facts, "new_incarnation")
    topics = topics_of(facts, "new_incarnation")
    steps: list[RepairStep] = []
    notes: list[str] = []
    recreated: dict[str, list[str]] = {}
    for table in facts.tables:
        changed = {
            topic: known
            for topic, known in topics.items()
            if table.coverage.get(topic, _like(known)).topic_id != known.topic_id
        }
        if not changed:
            continue
        coverage, former = _reborn(table, changed)
        starts = ", ".join(f"{topic} id {known.topic_id}" for topic, known in changed.items())
        what = f"{table.table}: commit a reset entry: {starts}, from its beginning; the rows of the old topic stay"
        steps.append(reset_step(table.table, what, coverage, former, table.released))
        if table.role == "target":
            notes += [_old_end(facts, table, topic) for topic in changed]
        recreated |= {topic: [table.coverage[topic].topic_id, known.topic_id] for topic, known in changed.items()}
    if not steps:
        raise refused(facts, "new_incarnation", "each topic has the id that is in the tables; there is nothing to do")
    return RepairPlan(
        pipeline=facts.pipeline,
        action="new_incarnation",
        summary=f"land the recreated {', '.join(sorted(recreated))} from its beginning, into the same tables",
        steps=(*steps, *afterwards(facts)),
        facts={"topic_ids": dict(sorted(recreated.items()))},
        replays_records=0,
        notes=(*notes, HELD_MEANWHILE),
    )


def _check_incarnations(facts: RecoveryFacts, topics: Mapping[str, TopicFacts]) -> None:
    for table in facts.targets:
        for topic, known in topics.items():
            if topic in table.coverage and table.coverage[topic].topic_id != known.topic_id:
                raise refused(facts, "accept_loss", f"topic {topic} was recreated: use the action new_incarnation")


def _with_marks(rebuilt: Rebuilt, topics: Mapping[str, TopicFacts]) -> Offsets:
    """Return the coverage, with a mark at the beginning of each partition without rows in the table."""
    known = {topic: facts for topic, facts in topics.items() if _is_same(rebuilt.coverage, topic, facts)}
    coverage = dict(rebuilt.coverage)
    for topic, marks in marks_for_unseen(coverage, known, "earliest").items():
        partitions = {**coverage[topic].partitions, **marks.partitions} if topic in coverage else marks.partitions
        coverage[topic] = TopicOffsets(topic_id=marks.topic_id, partitions=dict(sorted(partitions.items())))
    return coverage


def _is_same(coverage: Offsets, topic: str, facts: TopicFacts) -> bool:
    return topic not in coverage or coverage[topic].topic_id == facts.topic_id


def _rebase_notes(pipeline: str, table: HeldTable, rebuilt: Rebuilt) -> Iterable[str]:
    if rebuilt.source == "entry":
        if table.role == "quarantine":
            yield f"{table.table}: records that were quarantined after version {rebuilt.version} are not read again"
        return
    yield f"{table.table}: filtered or quarantined records after its last row are read again; they give no rows"
    if rebuilt.rowless:
        yield (
            f"{table.table}: {rebuilt.rowless} offsets between its rows have no row; they count as landed and are not read "
            f"again; `lakebound prove {pipeline} --deep` names those that Kafka has"
        )


def _source(rebuilt: Rebuilt) -> str:
    return f"the entry of version {rebuilt.version}" if rebuilt.source == "entry" else _ORIGIN[rebuilt.source]


def _deleted_unlanded(table: HeldTable, topics: Mapping[str, TopicFacts]) -> Offsets:
    """Return what Kafka has deleted and the table lacks: after its marks, in gaps, and in partitions that it never read."""
    lost: Offsets = {}
    for topic, held in table.coverage.items():
        known = topics.get(topic)
        # A table that has read no partition of a topic begins at Kafka's earliest offset: no earlier offset was ever promised.
        if known is None or not held.partitions:
            continue
        below = {p: _lost_below(held.partitions.get(p, ((0, 0),)), earliest) for p, earliest in sorted(known.earliest.items())}
        ranges = {p: intervals for p, intervals in below.items() if intervals}
        if ranges:
            lost[topic] = TopicOffsets(topic_id=known.topic_id, partitions=ranges)
    return lost


def _lost_below(intervals: Intervals, earliest: int) -> Intervals:
    """Return the offsets between the beginning of a coverage and Kafka's earliest offset that the coverage lacks."""
    first = min((start for start, _ in intervals), default=0)
    return subtract(((first, earliest),), intervals) if first < earliest else ()


def _reborn(table: HeldTable, changed: Mapping[str, TopicFacts]) -> tuple[Offsets, FormerCoverage]:
    """Return coverage and former incarnations of a table after the reset for its recreated topics."""
    coverage, former = dict(table.coverage), dict(table.former)
    for topic, known in changed.items():
        old = coverage.pop(topic)
        if count({topic: old}):
            former[topic] = (*former.get(topic, ()), old)
        if table.role == "target":
            marks: dict[int, Intervals] = {p: ((earliest, earliest),) for p, earliest in sorted(known.earliest.items())}
            coverage[topic] = TopicOffsets(topic_id=known.topic_id, partitions=marks)
    return coverage, former


def _old_end(facts: RecoveryFacts, table: HeldTable, topic: str) -> str:
    """Return how much of the old incarnation was landed, as far as it is known; its end offsets are gone."""
    marks = table.marks.get(topic, {})
    seen = facts.control.last_seen_ends.get(topic, {})
    behind = {p: (mark, seen[p]) for p, mark in sorted(marks.items()) if seen.get(p, mark) > mark}
    text = f"{table.table}: landed offsets of the old topic {topic}: {_marks(marks)}; later records of that topic are lost"
    if behind:
        named = ", ".join(f"partition {p} [{start}, {end})" for p, (start, end) in behind.items())
        text += f"; the last application also saw {named}, before or after the topic was created again"
    return text


def _like(known: TopicFacts) -> TopicOffsets:
    return TopicOffsets(topic_id=known.topic_id, partitions={})


def _replays(facts: RecoveryFacts, after: Sequence[Offsets]) -> int:
    """Return how many offsets are read again that a table has, or had at its application's last progress."""
    starts = [high_water_marks(coverage) for coverage in after]
    return debt(lowest(starts), highest([*starts, *(table.marks for table in facts.targets)]))


def _names(tables: Iterable[HeldTable]) -> str:
    return " and ".join(table.table for table in tables)


def _ranges(offsets: Offsets) -> str:
    texts = [
        f"{topic}/{p} [{start}, {end})"
        for topic, held in sorted(offsets.items())
        for p, intervals in sorted(held.partitions.items())
        for start, end in intervals
    ]
    return ", ".join(texts) or "nothing"


def _marks(marks: Mapping[int, int]) -> str:
    return ", ".join(f"partition {p} up to {mark}" for p, mark in sorted(marks.items())) or "nothing"
