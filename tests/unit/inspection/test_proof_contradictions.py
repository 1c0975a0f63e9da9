"""The proof: facts that contradict each other, tables that cannot be read, and the answer's own form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.worlds.proof_world import (
    MIXED,
    OTHER,
    PIPELINE,
    SCHEMA,
    SIMPLE,
    TARGET,
    TOPIC,
    TOPIC_ID,
    World,
    at,
    kafka_rows,
    offsets,
    proof_of,
)

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.history import difference
from lakebound.inspection.proof.judgement import judge
from lakebound.ledger.intervals import Interval, merge
from lakebound.ledger.topics import TopicFacts
from lakebound.tables.table import CommittedEntry


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
    assert "count at least 4 quarantined records, but delta:quarantine.orders has at most 1 of them" in problem


def test_a_quarantine_that_holds_more_than_the_entries_count_contradicts() -> None:
    world = World(batches=MIXED)
    entry = world.quarantine[1].entry.model_copy(update={"quarantined": 2, "rows": 2, "read": 2})
    world.quarantine[1] = replace(world.quarantine[1], entry=entry)
    assert "at most 4 quarantined records" in proof_of(world.prove(deep=False)).problems[0]


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
    broken = TableAsFound("iceberg:broken", error="the ledger entry cannot be read")
    proof = world.prove(broken, TableAsFound(TARGET, exists=False))
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


def test_a_million_rows_in_two_thousand_commits_are_judged() -> None:
    world = World(batches=[["landed"] * 1 for _ in range(2000)])
    per_commit = 500
    entries = list(_widened(world.entries, per_commit))
    count = 2000 * per_commit
    names = [pa.array([text] * count).dictionary_encode().cast(pa.string()) for text in (TOPIC, TOPIC_ID)]
    numbers = np.arange(count, dtype=np.int64)
    columns = [*names, np.zeros(count, np.int32), numbers[::-1], pa.nulls(count, SCHEMA.field("timestamp").type)]
    rows = pa.table([*columns, np.zeros(count, np.int32)], schema=SCHEMA)
    coverage = entries[-1].entry.coverage
    facts = TableAsFound(TARGET, "target", "entry", coverage, tuple(reversed(entries)), rows, later_coverage=coverage)
    topics = {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: count})}
    proof = judge(PIPELINE, [facts], topics, readable={(TOPIC, 0): numbers})
    assert proof.ok and proof.tables[0].records == count


def _widened(entries: Sequence[CommittedEntry], by: int) -> Iterator[CommittedEntry]:
    for number, committed in enumerate(entries):
        if number == 0:
            yield committed
            continue
        changes = {"range": offsets((0, (number - 1) * by, number * by)), "coverage": offsets((0, 0, number * by))}
        yield replace(
            committed, entry=committed.entry.model_copy(update=changes | dict.fromkeys(("read", "landed", "rows"), by))
        )
