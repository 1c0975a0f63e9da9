"""A record that was quarantined and released later is landed once; nothing else that stands in both places is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.worlds.proof_world import OTHER, PIPELINE, TARGET, World, at, born, offsets, proof_of

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.result import TableProof
from lakebound.ledger.entry import Entry
from lakebound.tables.table import CommittedEntry

BATCHES: Any = [["landed", "quarantined", "exploded"], ["filtered"] * 2 + ["quarantined"] * 2, ["landed", "quarantined"]]
"""Quarantined: 1, 5, 6, 8."""


def release(world: World, *records: int, rows: int = 1, filtered: tuple[int, ...] = (), landed: bool = True) -> None:
    """Release records of partition 0 as the application does."""
    before = world.entries[-1].entry
    places = [(0, offset, offset + 1) for offset in (*records, *filtered)]
    entry = Entry.model_validate(
        {"kind": "release", "pipeline": PIPELINE, "epoch": 1, "commit": f"r{len(world.entries)}", "coverage": before.coverage}
        | {"releases": offsets(*places), "released": before.released + len(places), "lane": "driver"}
        | {"read": len(places), "landed": len(records), "filtered": len(filtered), "rows": rows * len(records)}
    )
    world.entries.append(CommittedEntry(f"release-{len(world.entries)}", len(world.entries), entry))
    world.rows += [(0, offset, ordinal) for offset in records for ordinal in range(rows)] if landed else []


def target(world: World, **changes: Any) -> TableAsFound:
    return replace(world.target(), released=world.entries[-1].entry.released, **changes)


def proved(world: World, facts: TableAsFound | None = None, **options: Any) -> TableProof:
    return proof_of(world.prove(facts or target(world), **options))


def test_released_records_are_landed_once() -> None:
    world = World(batches=BATCHES)
    release(world, 1, 8)
    release(world, 5, rows=3)
    for deep in (True, False):
        proof = proved(world, deep=deep)
        assert proof.problems == () and (proof.missing.count, proof.duplicated.count) == (0, 0)
    assert (proved(world).records, proved(world).rows, proved(world).quarantined) == (3 + 3, 5 + 2 + 3, 4)


def test_the_counts_add_up_after_a_release() -> None:
    """Read are 3 + 4 + 2 records: 3 landed, 2 were filtered, 4 quarantined. A release lands two and filters one."""
    world = World(batches=BATCHES)
    for deep in (True, False):
        before = proved(world, deep=deep)
        assert (before.records, before.filtered, before.only_quarantined) == (3, 2, 4)
    release(world, 1, 8, filtered=(6,))
    for deep in (True, False):
        proof = proved(world, deep=deep)
        assert (proof.records, proof.filtered, proof.only_quarantined, proof.released) == (5, 3, 1, 3), deep
        assert proof.records + proof.filtered + proof.only_quarantined == 9


def test_the_same_without_the_entry_is_doubled() -> None:
    world = World(batches=BATCHES)
    release(world, 1, 8)
    del world.entries[-1]
    proof = proved(world)
    assert proof.duplicated.ranges == at((1, 2), (8, 9)) and any("both landed and quarantined" in p for p in proof.problems)


def test_another_record_in_both_places_is_still_found() -> None:
    world = World(batches=BATCHES)
    release(world, 1)
    world.rows.append((0, 5, 0))
    proof = proved(world)
    assert proof.duplicated.ranges == at((5, 6))


def test_a_row_that_was_released_twice_is_doubled() -> None:
    world = World(batches=BATCHES)
    release(world, 1)
    world.rows.append((0, 1, 0))
    assert proved(world).duplicated.ranges == at((1, 2))


def test_a_released_row_that_is_gone_is_missing() -> None:
    world = World(batches=BATCHES)
    release(world, 1, 8)
    world.rows.remove((0, 8, 0))
    proof = proved(world)
    assert proof.missing.ranges == at((8, 9)) and "a release from quarantine" in proof.problems[0]


def test_of_an_exploded_one_a_missing_row_is_counted() -> None:
    world = World(batches=BATCHES)
    release(world, 1, rows=3, filtered=(5,))
    world.rows.remove((0, 1, 2))
    proof = proved(world)
    assert proof.missing.count == 1 and proof.missing.within == at((1, 2), (5, 6))


def test_what_the_transform_drops_now_is_right() -> None:
    world = World(batches=BATCHES)
    release(world, 1, filtered=(5, 6))
    assert proved(world).problems == ()


def test_after_the_entry_has_expired_the_count_still_explains_it() -> None:
    world = World(batches=BATCHES)
    release(world, 1, 8)
    kept = born("open", world.entries[-1].entry.coverage, released=2)
    facts = replace(target(world), entries=(kept,), released=2)
    assert proved(world, facts).problems == ()
    world.rows.append((0, 5, 0))
    proof = proved(world, replace(facts, rows=target(world).rows))
    assert proof.duplicated.count == 1 and proof.duplicated.within == at((1, 2), (5, 6), (8, 9))


def test_a_release_while_the_rows_are_read_is_no_doubling() -> None:
    world = World(batches=BATCHES)
    before = target(world)
    release(world, 1, 8)
    facts = replace(before, rows=target(world).rows, later_releases=(world.entries[-1].entry.releases,))
    assert proved(world, facts).problems == ()
    assert proved(world, replace(facts, later_releases=())).duplicated.count == 2


@pytest.mark.parametrize("released", [1, 0])
def test_a_reset_leaves_standing_what_it_counts(released: int) -> None:
    """Taking offsets back leaves the released rows; a restore by hand takes them away, and the rebased entry says so."""
    world = World(batches=BATCHES)
    release(world, 1)
    coverage = world.entries[-1].entry.coverage
    world.entries.append(born("reset", coverage, released=released))
    assert bool(proved(world).problems) == (released == 0)
    world.rows.remove((0, 1, 0))
    assert proved(world).missing.count == released


def test_entries_alone_say_when_a_release_does_not_add_up() -> None:
    world = World(batches=BATCHES)
    release(world, 1)
    wrong = world.entries[-1].entry.model_copy(update={"read": 3, "landed": 3, "rows": 3})
    world.entries[-1] = replace(world.entries[-1], entry=wrong)
    assert "read 3 records of a range of 1 offsets" in proved(world, deep=False).problems[0]


def test_a_table_that_was_not_released_to_yet_contradicts_nothing() -> None:
    world = World(batches=BATCHES)
    other = replace(world.target(), table=OTHER)
    release(world, 1, 8)
    proof = world.prove(target(world), other)
    assert [proof_of(proof, name).problems for name in (TARGET, OTHER)] == [(), ()]
