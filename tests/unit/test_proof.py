"""The proof: ledgers that hold, and every fault that is planted in one named as what it is, where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebound.kafka import TopicFacts
from lakebound.ledger import Entry, Offsets, TopicOffsets, add
from lakebound.offsets import Interval, merge
from lakebound.proof import Proof, TableFacts, TableProof, judge
from lakebound.proof.history import difference
from lakebound.tables import KAFKA_TYPE, CommittedEntry

PIPELINE, TOPIC, TOPIC_ID = "orders", "orders", "id-1"
TARGET, OTHER, QUARANTINE = "delta:orders", "iceberg:orders", "delta:quarantine.orders"
SCHEMA = pa.schema(list(KAFKA_TYPE))
Fate = Literal["unreadable", "landed", "exploded", "filtered", "quarantined"]
Row = tuple[int, int, int]
"""Partition, offset, ordinal."""


def offsets(*places: tuple[int, int, int], topic_id: str = TOPIC_ID) -> Offsets:
    """Return (partition, start, end) as coverage."""
    held: dict[int, list[Interval]] = {}
    for partition, start, end in places:
        held.setdefault(partition, []).append((start, end))
    return {TOPIC: TopicOffsets(topic_id=topic_id, partitions={p: merge(found) for p, found in held.items()})} if held else {}


def kafka_rows(rows: Sequence[Row], topic_id: str = TOPIC_ID) -> pa.Table:
    """Return rows as ``scan_kafka`` does."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    columns = [[TOPIC] * len(rows), [topic_id] * len(rows), [r[0] for r in rows], [r[1] for r in rows]]
    return pa.table([*columns, [at] * len(rows), [r[2] for r in rows]], schema=SCHEMA)


def born(kind: str = "genesis", coverage: Offsets | None = None, epoch: int = 1, **counts: Any) -> CommittedEntry:
    """Return an entry that lands nothing."""
    body = {"kind": kind, "pipeline": PIPELINE, "epoch": epoch, "commit": f"{kind}-{epoch}", "coverage": coverage or {}}
    return CommittedEntry(kind, 0, Entry.model_validate(body | counts))


@dataclass
class World:
    """Batches of one partition as an application lands them, in a target and its quarantine."""

    partition: int = 0
    batches: list[list[Fate]] = field(default_factory=list)
    start: int = 0
    rows: list[Row] = field(default_factory=list)
    bad: list[Row] = field(default_factory=list)
    readable: list[int] = field(default_factory=list)
    entries: list[CommittedEntry] = field(default_factory=lambda: [born()])
    quarantine: list[CommittedEntry] = field(default_factory=lambda: [born()])
    earliest: int | None = None

    def __post_init__(self) -> None:
        first = self.start
        for fates in self.batches:
            self._land(first, fates)
            first += len(fates)
        self.end = first

    def _land(self, first: int, fates: Sequence[Fate]) -> None:
        rows: list[Row] = []
        bad: list[Row] = []
        for offset, fate in enumerate(fates, first):
            if fate != "unreadable":
                self.readable.append(offset)
            if fate in ("landed", "exploded"):
                rows += [(self.partition, offset, ordinal) for ordinal in range(3 if fate == "exploded" else 1)]
            if fate == "quarantined":
                bad.append((self.partition, offset, 0))
        span = offsets((self.partition, first, first + len(fates)))
        landed = len({row[1] for row in rows})
        counts = {"filtered": fates.count("filtered"), "landed": landed, "quarantined": len(bad), "rows": len(rows)}
        if bad:
            own = {"quarantined": len(bad), "rows": len(bad), "read": len(bad)}
            self.quarantine.append(self._entry(self.quarantine, span, **own))
        self.entries.append(self._entry(self.entries, span, read=len(fates) - fates.count("unreadable"), **counts))
        self.rows += rows
        self.bad += bad

    def _entry(self, entries: Sequence[CommittedEntry], span: Offsets, **counts: int) -> CommittedEntry:
        number = len(entries)
        coverage = add(entries[-1].entry.coverage, span)
        body = {"kind": "land", "pipeline": PIPELINE, "epoch": 1, "commit": f"c{number}", "range": span, "coverage": coverage}
        return CommittedEntry(str(number), number, Entry.model_validate(body | {"lane": "driver"} | counts))

    @property
    def topics(self) -> dict[str, TopicFacts | None]:
        earliest = self.start if self.earliest is None else self.earliest
        return {TOPIC: TopicFacts(TOPIC_ID, {self.partition: earliest}, {self.partition: self.end + 5})}

    def target(self, **changes: Any) -> TableFacts:
        return replace(self._facts(TARGET, self.entries, self.rows), **changes)

    def _facts(self, table: str, entries: list[CommittedEntry], rows: list[Row]) -> TableFacts:
        coverage = entries[-1].entry.coverage
        newest_first = tuple(reversed(entries))
        return TableFacts(table, "target", "entry", coverage, newest_first, kafka_rows(rows), later_coverage=coverage)

    def prove(self, *targets: TableFacts, deep: bool = True, **options: Any) -> Proof:
        """Return the proof of the targets (default: the one of this world) and the quarantine."""
        quarantine = replace(self._facts(QUARANTINE, self.quarantine, self.bad), role="quarantine")
        kept = [offset for offset in self.readable if offset >= (self.earliest or 0)]
        readable = {(TOPIC, self.partition): np.array(kept, dtype=np.int64)} if deep else None
        chosen = targets or (self.target(),)
        return judge(PIPELINE, [*chosen, quarantine], **{"topics": self.topics, "readable": readable} | options)


def proof_of(proof: Proof, table: str = TARGET) -> TableProof:
    """Return the part of one table."""
    return next(found for found in proof.tables if found.table == table)


def at(*intervals: Interval, partition: int = 0) -> dict[str, dict[int, tuple[Interval, ...]]]:
    """Return ranges of the topic."""
    return {TOPIC: {partition: intervals}}


SIMPLE: list[list[Fate]] = [["landed"] * 10, ["landed"] * 10, ["landed"] * 5 + ["unreadable"] * 3 + ["landed"] * 2]
MIXED: list[list[Fate]] = [["landed", "quarantined", "exploded"], ["filtered"] * 4, ["quarantined"] * 3, ["landed", "filtered"]]

FATES = st.sampled_from(["unreadable", "landed", "exploded", "filtered", "quarantined"])
WORLDS = st.builds(
    World,
    partition=st.integers(0, 3),
    start=st.integers(0, 5),
    batches=st.lists(st.lists(FATES, min_size=1, max_size=12), min_size=1, max_size=8),
)


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.booleans())
def test_whatever_was_landed_rightly_is_proved(world: World, deep: bool) -> None:
    proof = world.prove(deep=deep)
    assert proof.ok, [table.problems for table in proof.tables]
    assert (proof.missing, proof.duplicated) == (0, 0)
    assert proof_of(proof).rows == len(world.rows)
    assert proof_of(proof).lag == 5


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_records_that_were_compacted_or_deleted_after_they_landed_are_not_missing(world: World, data: st.DataObject) -> None:
    world.readable = [offset for offset in world.readable if data.draw(st.booleans())]
    world.earliest = data.draw(st.integers(world.start, world.end))
    assert world.prove().ok


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_a_lost_record_is_missing_and_named(world: World, data: st.DataObject) -> None:
    places = sorted({row[:2] for row in world.rows})
    if not places:
        return
    lost = data.draw(st.sets(st.sampled_from(places), min_size=1))
    world.rows = [row for row in world.rows if row[:2] not in lost]
    proof = world.prove()
    found = proof_of(proof)
    assert not proof.ok
    assert found.missing.count == proof.missing == len(lost)
    named = {
        offset for start, end in found.missing.ranges.get(TOPIC, {}).get(world.partition, ()) for offset in range(start, end)
    }
    inside = found.missing.within.get(TOPIC, {}).get(world.partition, ())
    assert named <= {offset for _, offset in lost}
    assert all(any(start <= offset < end for start, end in inside) for _, offset in lost if offset not in named)
    assert inside == () or any("filtered" in batch for batch in world.batches)


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_a_doubled_row_is_named(world: World, data: st.DataObject) -> None:
    if not world.rows:
        return
    doubled = data.draw(st.lists(st.sampled_from(world.rows), min_size=1, max_size=4))
    world.rows += doubled
    found = proof_of(world.prove())
    assert (found.duplicated.count, found.missing.count, found.outside.count, found.surplus.count) == (len(doubled), 0, 0, 0)
    named = found.duplicated.ranges[TOPIC][world.partition]
    assert {offset for start, end in named for offset in range(start, end)} == {row[1] for row in doubled}
    assert not found.ok


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_a_lost_quarantine_row_is_missing(world: World, data: st.DataObject) -> None:
    if not world.bad:
        return
    lost = data.draw(st.sampled_from(world.bad))
    world.bad.remove(lost)
    proof = world.prove()
    assert proof_of(proof).missing.count == 1
    assert proof_of(proof, QUARANTINE).missing.count == 1
    assert not proof.ok


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_an_entry_that_lands_what_another_one_landed_is_an_overlap(world: World, data: st.DataObject) -> None:
    start = data.draw(st.integers(world.start, world.end - 1))
    end = data.draw(st.integers(start + 1, world.end))
    world.entries.append(world._entry(world.entries, offsets((world.partition, start, end))))
    found = proof_of(world.prove(deep=False))
    assert found.overlaps.count == found.duplicated.count == end - start
    assert found.overlaps.ranges == at((start, end), partition=world.partition)
    assert not found.ok


@settings(deadline=None, max_examples=60)
@given(WORLDS, st.data())
def test_a_commit_that_got_lost_is_a_gap_or_landed_behind_nothing(world: World, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(world.entries) - 1))
    ((_, lost),) = world.entries[number].entry.range[TOPIC].partitions.items()
    del world.entries[number]
    found = proof_of(world.prove(deep=False))
    if number == len(world.entries):  # The newest: the table merely lags, and the coverage says so.
        assert found.missing.count == 0
        return
    assert found.missing.ranges == at(*lost, partition=world.partition)
    assert "no commit landed" in found.problems[0]


def test_a_row_outside_the_coverage_is_named_and_one_of_a_running_stream_is_not() -> None:
    world = World(batches=SIMPLE)
    end = world.end
    outside, meanwhile = (0, end + 50, 0), (0, end + 3, 0)
    world.rows += [outside, meanwhile]
    later = add(world.entries[-1].entry.coverage, offsets((0, end, end + 5)))
    found = proof_of(world.prove(world.target(rows=kafka_rows(world.rows), later_coverage=later)))
    assert found.outside.ranges == at((end + 50, end + 51))
    assert (found.outside.count, found.missing.count, found.duplicated.count) == (1, 0, 0)


def test_rows_of_another_topic_id_are_outside() -> None:
    world = World(batches=SIMPLE)
    rows = pa.concat_tables([kafka_rows(world.rows), kafka_rows([(0, 3, 0)], topic_id="old")])
    found = proof_of(world.prove(world.target(rows=rows)))
    assert found.outside.ranges == at((3, 4))
    assert "another topic id, old" in found.problems[0]


def test_rows_without_an_origin_are_outside() -> None:
    world = World(batches=SIMPLE)
    stray = pa.table([pa.nulls(1, field.type) for field in SCHEMA], schema=SCHEMA)
    found = proof_of(world.prove(world.target(rows=pa.concat_tables([kafka_rows(world.rows), stray]))))
    assert found.outside.count == 1 and not found.ok


def test_an_offset_both_landed_and_quarantined_is_duplicated() -> None:
    world = World(batches=MIXED)
    world.rows.append((0, 1, 0))
    found = proof_of(world.prove())
    assert found.duplicated.ranges == at((1, 2)) and found.duplicated.count == 1
    assert found.surplus.within == at((0, 3))


def test_a_row_of_a_filtered_record_is_surplus() -> None:
    world = World(batches=MIXED)
    world.rows.append((0, 4, 0))
    found = proof_of(world.prove())
    assert found.surplus.within == at((3, 7)) and not found.ok


def test_a_lost_row_of_an_exploded_record_is_missing_in_its_entry() -> None:
    world = World(batches=MIXED)
    world.rows.remove((0, 2, 1))
    found = proof_of(world.prove())
    assert found.missing.count == 1 and found.missing.within == at((0, 3)) and not found.missing.ranges


def test_what_kafka_deleted_is_judged_by_the_counts_of_the_entries() -> None:
    world = World(batches=SIMPLE, earliest=20)
    assert "no longer has orders/0 [0, 20)" in proof_of(world.prove()).notes[0]
    world.rows = [row for row in world.rows if row[1] not in (3, 4)]
    assert proof_of(world.prove()).missing.ranges == at((3, 5))


def test_a_skip_decides_its_offsets() -> None:
    world = World(batches=[["landed"] * 4])
    world.readable += range(4, 9)
    world.entries.append(world._entry(world.entries, offsets((0, 4, 9))))
    assert proof_of(world.prove()).missing.ranges == at((4, 9))
    skip = replace(world.entries[-1], entry=world.entries[-1].entry.model_copy(update={"kind": "skip"}))
    world.entries[-1] = skip
    assert world.prove().ok


def test_a_reset_starts_anew_with_its_coverage_as_base() -> None:
    world = World(batches=[["landed"] * 5, ["filtered", "landed"], ["landed"] * 4])
    undone = offsets((0, 0, 7))
    world.entries.append(born("reset", undone, epoch=2))
    world.rows = [row for row in world.rows if row[1] < 7]
    world.end = 7
    proof = proof_of(world.prove())
    assert proof.ok and proof.undecided.count == 0 and proof.filtered == 1
    again = offsets((0, 7, 11))
    body = {"kind": "replay", "pipeline": PIPELINE, "epoch": 2, "commit": "r", "range": again, "coverage": add(undone, again)}
    counts = {"read": 4, "landed": 4, "rows": 4}
    world.entries.append(CommittedEntry("9", 9, Entry.model_validate(body | counts)))
    world.rows += [(0, offset, 0) for offset in range(7, 11)]
    world.end = 11
    assert proof_of(world.prove()).ok and proof_of(world.prove()).records == 10


def test_a_replay_of_what_a_reset_left_standing_is_an_overlap() -> None:
    world = World(batches=[["landed"] * 5])
    world.entries.append(born("reset", offsets((0, 0, 5))))
    world.entries.append(world._entry(world.entries, offsets((0, 3, 5))))
    assert proof_of(world.prove(deep=False)).overlaps.ranges == at((3, 5))


def test_a_carry_adds_nothing_and_hides_nothing() -> None:
    world = World(batches=SIMPLE)
    stale = world.entries[1].entry.model_copy(update={"kind": "carry"})
    world.entries.insert(3, CommittedEntry("carry", 0, stale))
    assert world.prove().ok


def test_history_that_was_expired_is_taken_as_landed_and_said() -> None:
    world = World(batches=[["landed", "filtered"], ["landed"] * 3])
    world.entries = world.entries[-1:]
    found = proof_of(world.prove())
    assert found.ok and "older entries" in found.notes[0]
    assert found.undecided.ranges == at((1, 2))
    cannot_filter = proof_of(world.prove(may_filter=False))
    assert cannot_filter.missing.ranges == at((1, 2)) and not cannot_filter.ok


def test_a_gap_is_missing_only_as_far_as_it_was_readable() -> None:
    world = World(batches=SIMPLE)
    hole, coverage = offsets((0, 22, 30)), offsets((0, 0, 20), (0, 22, 30))
    entry = world.entries[-1].entry.model_copy(update={"range": hole, "coverage": coverage, "read": 5, "landed": 5, "rows": 5})
    world.entries[-1] = replace(world.entries[-1], entry=entry)
    assert proof_of(world.prove(deep=False)).missing.ranges == at((20, 22))
    world.rows = [row for row in world.rows if row[1] not in (20, 21)]
    assert proof_of(world.prove()).missing.ranges == at((20, 22))
    world.readable = [offset for offset in world.readable if offset not in (20, 21)]
    found = proof_of(world.prove())
    assert found.missing.count == 0 and found.gaps.ranges == at((20, 22)) and not found.ok


def test_landing_that_began_behind_its_mark_left_a_gap() -> None:
    opened = born("open", offsets((0, 5, 5)), range=offsets((0, 5, 5)))
    world = World(start=7, batches=[["landed"] * 3], entries=[born(), opened])
    found = proof_of(world.prove(deep=False))
    assert found.gaps.ranges == found.missing.ranges == at((5, 7))


def test_a_mark_alone_is_no_offset() -> None:
    world = World(start=5, entries=[born(), born("open", offsets((0, 5, 5)), range=offsets((0, 5, 5)))])
    found = proof_of(world.prove())
    assert found.ok and (found.records, found.lag, found.high_water_marks) == (0, 5, {TOPIC: {0: 5}})


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (TopicFacts("id-2", {0: 0}, {0: 99}), "was recreated"),
        (TopicFacts(TOPIC_ID, {0: 0}, {0: 20}), "landed up to 30, but Kafka ends at 20"),
        (TopicFacts(TOPIC_ID, {0: 34}, {0: 99}), "never landed: 4: orders/0 [30, 34)"),
        (None, "is not on the broker"),
    ],
)
def test_what_kafka_contradicts_is_said(facts: TopicFacts | None, text: str) -> None:
    world = World(batches=SIMPLE)
    for deep in (False, True):
        found = proof_of(world.prove(deep=deep, topics={TOPIC: facts}))
        assert len(found.problems) == (1 + (deep and "never" in text)) and text in found.problems[0]
        assert found.missing.count == (4 if "never" in text else 0)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"read": 9}, "read 9 records, but accounts for 10"),
        ({"read": 12, "landed": 12, "rows": 12}, "read 12 records of a range of 10 offsets"),
        ({"rows": 9}, "10 landed records gave 9 rows"),
        ({"pipeline": "other"}, "belongs to pipeline 'other'"),
        ({"epoch": 0}, "a superseded application wrote it"),
    ],
)
def test_an_entry_that_contradicts_itself_is_named(changes: Mapping[str, Any], text: str) -> None:
    world = World(batches=SIMPLE)
    entry = world.entries[2].entry.model_copy(update=dict(changes))
    world.entries[2] = replace(world.entries[2], entry=entry)
    found = proof_of(world.prove(deep=False))
    assert len(found.problems) == 1
    assert "commit 2" in found.problems[0] and text in found.problems[0]


def test_tables_that_count_the_same_offsets_differently_contradict_each_other() -> None:
    world, other = World(batches=SIMPLE), World(batches=SIMPLE)
    assert world.prove(world.target(), world.target(table=OTHER)).ok
    entry = other.entries[2].entry.model_copy(update={"filtered": 1, "landed": 9, "rows": 9})
    other.entries[2] = replace(other.entries[2], entry=entry)
    proof = world.prove(world.target(), other.target(table=OTHER), deep=False)
    assert all("for the same offsets" in problem for table in (TARGET, OTHER) for problem in proof_of(proof, table).problems)
    assert len(proof_of(proof).problems) == 3


def test_a_table_that_is_behind_does_not_contradict() -> None:
    world, behind = World(batches=SIMPLE), World(batches=SIMPLE[:2])
    proof = world.prove(world.target(), behind.target(table=OTHER))
    assert proof.ok
    assert f"its marks and those of {OTHER} are 10 offsets apart" in proof_of(proof).notes


def test_quarantined_records_that_the_quarantine_does_not_know_contradict() -> None:
    world = World(batches=MIXED)
    world.quarantine = world.quarantine[:-1]
    (problem,) = proof_of(world.prove(deep=False)).problems
    assert "count 4 quarantined records, of which delta:quarantine.orders can hold 1 at most" in problem


def test_a_quarantine_that_holds_more_than_the_entries_count_contradicts() -> None:
    world = World(batches=MIXED)
    entry = world.quarantine[1].entry.model_copy(update={"quarantined": 2, "rows": 2, "read": 2})
    world.quarantine[1] = replace(world.quarantine[1], entry=entry)
    assert "4 quarantined records at most" in proof_of(world.prove(deep=False)).problems[0]


def test_a_quarantine_that_is_ahead_does_not_contradict() -> None:
    world = World(batches=MIXED)
    behind = World(batches=MIXED[:2])
    proof = world.prove(behind.target())
    assert proof.ok, [table.problems for table in proof.tables]


def test_rows_without_a_ledger_are_judged_as_far_as_they_go_and_not_proved() -> None:
    world = World(batches=SIMPLE)
    world.rows = [row for row in world.rows if row[1] != 4] + [(0, 7, 0)]
    coverage = offsets((0, 0, 4), (0, 5, 25), (0, 28, 30))
    lost = world.target(source="scan", entries=(), coverage=coverage, later_coverage=coverage, rows=kafka_rows(world.rows))
    found = proof_of(world.prove(lost, may_filter=False))
    assert found.source == "scan" and "no ledger entry" in found.problems[0]
    assert found.missing.ranges == at((4, 5)) and found.duplicated.ranges == at((7, 8))
    assert proof_of(world.prove(lost)).undecided.ranges == at((4, 5))


def test_a_table_that_cannot_be_read_or_is_not_there() -> None:
    world = World(batches=SIMPLE)
    broken = TableFacts("iceberg:broken", error="the ledger entry cannot be read")
    proof = world.prove(broken, TableFacts(TARGET, exists=False))
    assert proof_of(proof, "iceberg:broken").problems == ("the ledger entry cannot be read",)
    assert proof_of(proof).ok and "not there" in proof_of(proof).notes[0]
    assert proof_of(proof).lag == world.end + 5


INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)), max_size=8)


@given(INTERVALS, INTERVALS)
def test_a_difference_of_intervals_is_that_of_their_offsets(left: list[Interval], right: list[Interval]) -> None:
    key = (TOPIC, TOPIC_ID, 0)
    both = [merge((start, start + length) for start, length in pieces) for pieces in (left, right)]
    rest = difference(*({key: intervals} if intervals else {} for intervals in both)).get(key, ())
    held = [{offset for start, end in intervals for offset in range(start, end)} for intervals in (*both, rest)]
    assert held[0] - held[1] == held[2] and merge(rest) == rest


def test_one_table_alone() -> None:
    world, other = World(batches=SIMPLE), World(batches=SIMPLE)
    other.rows.pop()
    proof = world.prove(world.target(), other.target(table=OTHER), table=TARGET)
    assert [table.table for table in proof.tables] == [TARGET] and proof.ok
    assert not world.prove(world.target(), other.target(table=OTHER), table=OTHER).ok


def test_the_sentence_and_the_json_say_the_same() -> None:
    world = World(batches=MIXED)
    world.rows.append(world.rows[0])
    proof = world.prove()
    assert "does not hold, 1 problem: landed delta:orders 3; missing 0, duplicated 1" in proof.sentence
    body = proof.model_dump(mode="json")
    assert (body["ok"], body["missing"], body["duplicated"]) == (False, 0, 1)
    assert body["tables"][0]["duplicated"]["ranges"] == {TOPIC: {"0": [[0, 1]]}}


def test_a_million_rows_in_two_thousand_commits_take_seconds() -> None:
    world = World(batches=[["landed"] * 1 for _ in range(2000)])
    per_commit = 500
    entries = list(_widened(world.entries, per_commit))
    count = 2000 * per_commit
    names = [pa.array([text] * count).dictionary_encode().cast(pa.string()) for text in (TOPIC, TOPIC_ID)]
    numbers = np.arange(count, dtype=np.int64)
    columns = [*names, np.zeros(count, np.int32), numbers[::-1], pa.nulls(count, SCHEMA.field("timestamp").type)]
    rows = pa.table([*columns, np.zeros(count, np.int32)], schema=SCHEMA)
    coverage = entries[-1].entry.coverage
    facts = TableFacts(TARGET, "target", "entry", coverage, tuple(reversed(entries)), rows, later_coverage=coverage)
    topics = {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: count})}
    started = time.monotonic()
    proof = judge(PIPELINE, [facts], topics, readable={(TOPIC, 0): numbers})
    assert proof.ok and proof.tables[0].records == count
    assert time.monotonic() - started < 20


def _widened(entries: Sequence[CommittedEntry], by: int) -> Iterator[CommittedEntry]:
    for number, committed in enumerate(entries):
        if number == 0:
            yield committed
            continue
        changes = {"range": offsets((0, (number - 1) * by, number * by)), "coverage": offsets((0, 0, number * by))}
        yield replace(
            committed, entry=committed.entry.model_copy(update=changes | dict.fromkeys(("read", "landed", "rows"), by))
        )
