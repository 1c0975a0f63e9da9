"""A topic that was written in real time: rows count once, and only as far as the ledger tells, also beside tables."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.worlds.proof_world import MIXED, World, kafka_rows, proof_of

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.real_time import sent_at_least_once
from lakebound.ledger.entry import Offsets, TopicOffsets

COVERAGE: Offsets = {"src": TopicOffsets(topic_id="id", partitions={0: ((0, 3),), 1: ((0, 1),)})}


def rows(*places: tuple[str | None, int | None, int | None, int | None]) -> pa.Table:
    columns = dict(zip(("topic", "partition", "offset", "ordinal"), zip(*places, strict=True), strict=True))
    ids = ["id" if topic else None for topic in columns["topic"]]
    return pa.table({**{name: pa.array(values) for name, values in columns.items()}, "topic_id": pa.array(ids, pa.string())})


def test_copies_count_once_and_are_told() -> None:
    once, note = sent_at_least_once(rows(("src", 0, 1, 0), ("src", 0, 1, 0), ("src", 0, 1, 1), ("src", 1, 0, 0)), COVERAGE)
    assert sorted((r["partition"], r["offset"], r["ordinal"]) for r in once.to_pylist()) == [(0, 1, 0), (0, 1, 1), (1, 0, 0)]
    assert note is not None and note.startswith("messages sent more than once: 1;")


def test_rows_after_the_newest_entry_are_not_judged_and_foreign_ones_are() -> None:
    once, note = sent_at_least_once(rows(("src", 0, 3, 0), ("src", 1, 7, 0), (None, None, None, None)), COVERAGE)
    assert (once.num_rows, once["topic"].to_pylist(), note) == (1, [None], None)


def sent(world: World) -> TableAsFound:
    """Return a topic that got in real time what the target of a world got in batches: Spark counts rows, not records."""
    entries = []
    for committed in world.entries:
        entry = committed.entry
        landed = min(entry.rows, entry.read - entry.quarantined)
        counts = {"landed": landed, "filtered": entry.read - entry.quarantined - landed, "delivery": "at_least_once"}
        entries.append(replace(committed, entry=entry.model_copy(update=counts)))
    newest_first = tuple(reversed(entries))
    return world.target(table="topic:clean", entries=newest_first, bad_rows=kafka_rows(world.bad))


@pytest.mark.parametrize("deep", [False, True])
def test_a_topic_in_real_time_and_a_table_in_batches_contradict_each_other_in_nothing(deep: bool) -> None:
    world = World(batches=MIXED)
    proof = world.prove(world.target(), sent(world), deep=deep)
    assert [(table.table, table.problems) for table in proof.tables if table.problems] == []
    assert proof.ok


def test_a_row_that_a_topic_in_real_time_lacks_is_missing_although_a_table_has_it() -> None:
    world = World(batches=MIXED)
    topic = sent(world)
    assert topic.rows is not None
    proof = world.prove(world.target(), replace(topic, rows=topic.rows.slice(1)))
    assert proof_of(proof, "topic:clean").missing.count == 1 and not proof.ok
