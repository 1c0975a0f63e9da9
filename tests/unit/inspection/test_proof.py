"""The proof: ledgers that hold, and every fault that is planted in one named as what it is, where it is."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.worlds.proof_world import (
    MIXED,
    PIPELINE,
    QUARANTINE,
    SCHEMA,
    SIMPLE,
    TOPIC,
    World,
    at,
    born,
    kafka_rows,
    offsets,
    proof_of,
)

from lakebound.ledger.entry import Entry, add, count
from lakebound.tables.table import CommittedEntry

FATES = st.sampled_from(["unreadable", "landed", "exploded", "filtered", "quarantined"])
WORLDS = st.builds(
    World,
    partition=st.integers(0, 3),
    start=st.integers(0, 5),
    batches=st.lists(st.lists(FATES, min_size=1, max_size=12), min_size=1, max_size=8),
)


@settings(max_examples=examples(100))
@given(WORLDS, st.booleans())
def test_whatever_was_landed_rightly_is_proved(world: World, deep: bool) -> None:
    proof = world.prove(deep=deep)
    assert proof.ok, [table.problems for table in proof.tables]
    assert (proof.missing, proof.duplicated) == (0, 0)
    assert proof_of(proof).rows == len(world.rows)
    assert proof_of(proof).lag == 5


@settings(max_examples=examples(100))
@given(WORLDS, st.data())
def test_records_that_were_compacted_or_deleted_after_they_landed_are_not_missing(world: World, data: st.DataObject) -> None:
    world.readable = [offset for offset in world.readable if data.draw(st.booleans())]
    world.earliest = data.draw(st.integers(world.start, world.end))
    assert world.prove().ok


@settings(max_examples=examples(100))
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


@settings(max_examples=examples(100))
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


@settings(max_examples=examples(100))
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


@settings(max_examples=examples(100))
@given(WORLDS, st.data())
def test_an_entry_that_lands_what_another_one_landed_is_an_overlap(world: World, data: st.DataObject) -> None:
    start = data.draw(st.integers(world.start, world.end - 1))
    end = data.draw(st.integers(start + 1, world.end))
    world.entries.append(world._entry(world.entries, offsets((world.partition, start, end))))
    found = proof_of(world.prove(deep=False))
    assert found.overlaps.count == found.duplicated.count == end - start
    assert found.overlaps.ranges == at((start, end), partition=world.partition)
    assert not found.ok


@settings(max_examples=examples(100))
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
    assert found.ok and "older ledger entries were removed" in found.notes[0]
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


@settings(max_examples=30)
@given(WORLDS, st.data())
def test_what_landed_before_the_oldest_entry_that_is_kept_is_not_said_to_be_proved(world: World, data: st.DataObject) -> None:
    kept = data.draw(st.integers(1, len(world.entries) - 1))
    world.entries = world.entries[kept:]
    before = sum(len(batch) for batch in world.batches) - sum(one.entry.read for one in world.entries)
    proof = world.prove(deep=False)
    found = proof_of(proof)
    oldest = world.entries[0]
    covered = count(oldest.entry.coverage) - count(oldest.entry.range)
    assert proof.ok and (found.assumed, found.is_partial) == (covered, covered > 0) and before >= 0
    if found.is_partial:
        assert found.since is not None and found.since.version == oldest.version
        assert f"since {oldest.version}; {covered} offsets before it were not compared" in proof.sentence
        assert found.model_dump(mode="json")["is_partial"] is True
    whole = proof_of(world.prove())
    assert not whole.is_partial and whole.rows == len(world.rows), "the rows tell all"
