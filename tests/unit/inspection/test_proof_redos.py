"""The proof of a table whose ranges were redone: it holds after a right redo, and names one that lost or doubled rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.worlds.proof_world import TOPIC, born, proof_of
from tests.support.worlds.redo_world import RedoWorld, State

from lakebound.inspection.proof.history import trace
from lakebound.inspection.proof.redone import shares_of

SEEDS = st.integers(0, 2**32 - 1)
ALL_LANDED = {"read": 20, "landed": 20, "rows": 20, "filtered": 0, "quarantined": 0}


def any_world(seed: int, commits: int = 12) -> tuple[RedoWorld, list[str]]:
    world = RedoWorld(seed)
    return world, [world.do_anything() for _ in range(commits)]


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_any_sequence_of_land_redo_release_maintenance_and_rewind_is_proved(seed: int) -> None:
    world, done = any_world(seed)
    for deep in (True, False):
        proof = world.prove(deep=deep)
        assert proof.ok, (done, [table.problems for table in proof.tables])
        assert (proof.missing, proof.duplicated) == (0, 0)
    assert proof_of(world.prove()).rows == len(world.now.rows())


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_a_redo_heals_what_somebody_deleted(seed: int) -> None:
    world = RedoWorld(seed)
    world.land(20)
    rows = [offset for _, offset, _ in world.now.rows()]
    lost = set(world.choice.sample(sorted({*rows}), min(3, len({*rows}))))
    if not lost:
        return
    world.lose(lost)
    assert not world.prove().ok
    world.redo(min(lost), max(lost) + 1)
    world.land(5)
    assert world.prove().ok, [table.problems for table in world.prove().tables]


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_a_row_that_is_lost_after_redos_is_missing(seed: int) -> None:
    world, done = any_world(seed)
    rows = world.now.rows()
    if not rows:
        return
    lost = world.choice.choice(rows)
    proof = proof_of(world.prove([row for row in rows if row != lost]))
    assert proof.missing.count == 1, (done, proof.problems)
    where = {**proof.missing.ranges, **proof.missing.within}[TOPIC][0]
    assert any(start <= lost[1] < end for start, end in where), (lost, where)


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_a_row_that_stayed_or_came_twice_is_named(seed: int) -> None:
    world, done = any_world(seed)
    rows = world.now.rows()
    if not rows:
        return
    twice = world.choice.choice(rows)
    assert proof_of(world.prove([*rows, twice])).duplicated.count == 1
    # A row that a redo should have taken out, of a record that now has fewer.
    offset = world.choice.choice(sorted(world.now.fates))
    stayed = (0, offset, sum(row[1] == offset for row in rows))
    proof = proof_of(world.prove([*rows, stayed]))
    assert proof.surplus.count + proof.duplicated.count > 0 and proof.problems, done


def redone_world() -> RedoWorld:
    """Return a world of two batches of 10 records, of which [5, 15) were redone."""
    world = RedoWorld(54)
    world.land(10)
    world.land(10)
    world.redo(5, 15)
    return world


def test_of_an_entry_that_a_redo_cuts_the_rest_is_its_own() -> None:
    world = redone_world()
    world.redo(8, 10)
    facts = world.target()
    shares = [share for share in shares_of(trace(facts.entries, facts.coverage)) if share.spans]
    held = [[(start, end) for intervals in share.spans.values() for start, end in intervals] for share in shares]
    assert held == [[(0, 5)], [(15, 20)], [(5, 8), (10, 15)], [(8, 10)]]
    assert [share.redone for share in shares] == [5, 5, 2, 0]


def test_a_redo_that_lost_all_of_its_rows_is_named_by_its_commit() -> None:
    world = redone_world()
    proof = proof_of(world.prove([row for row in world.now.rows() if not 5 <= row[1] < 15]))
    records = {row[1] for row in world.now.rows() if 5 <= row[1] < 15}
    assert proof.missing.count == len(records) > 0 and "commit 3 lacks" in proof.problems[0]


def test_a_redo_whose_old_rows_stayed_is_doubled() -> None:
    world = RedoWorld(54)
    world.land(20)
    before = world.now.rows()
    world.redo(0, 20)
    after = world.now.rows()
    assert set(before) & set(after)
    assert proof_of(world.prove([*before, *after])).duplicated.count == len(set(before) & set(after))


def test_without_its_entry_a_redo_is_no_explanation() -> None:
    world = redone_world()
    rows = world.now.rows()
    del world.entries[-1]
    assert not world.prove(rows).ok


def test_after_a_rewind_to_before_a_redo_the_old_rows_are_right_and_the_new_ones_are_not() -> None:
    world = RedoWorld(54)
    world.land(20)
    world.redo(3, 9)
    redone = world.now.rows()
    world.rewind(1)
    assert world.now.rows() != redone
    assert world.prove().missing == 0 and proof_of(world.prove()).surplus.count == 0
    assert not world.prove(redone).ok
    assert world.entries[-1].entry.newest_redo == ""


@pytest.mark.parametrize("back", [2, 3])
def test_a_rewind_that_is_undone_brings_the_redo_back(back: int) -> None:
    world = RedoWorld(54)
    world.land(20)
    world.redo(3, 9)
    world.redo(5, 7)
    world.rewind(back - 1)
    world.rewind(3)
    proof = proof_of(world.prove())
    assert (proof.missing.count, proof.surplus.count) == (0, 0)
    facts = world.target()
    standing = [one.entry.kind for one in trace(facts.entries, facts.coverage).standing]
    assert standing == ["land", "redo", "redo"]


def test_entries_alone_count_the_rows_exactly_and_the_records_at_most() -> None:
    world = redone_world()
    proof = proof_of(world.prove(deep=False))
    assert proof.rows == len(world.now.rows())
    assert proof.records >= len({row[1] for row in world.now.rows()})
    assert any("upper bounds" in note for note in proof.notes)


def test_what_a_redo_puts_into_quarantine_is_right_though_one_application_landed_it_as_good() -> None:
    """The quarantine's ledger lags: it covers none of these offsets, so the redo lands them there, with the stream's epoch."""
    world = RedoWorld(54)
    world.land(20)
    world.quarantine, world.states[-1] = [born()], State(end=20, fates=dict.fromkeys(range(20), "one"))
    world.entries[-1] = replace(world.entries[-1], entry=world.entries[-1].entry.model_copy(update=ALL_LANDED))
    world.redo(3, 17)
    assert any(fate == "bad" for fate in world.now.fates.values()) and world.quarantine[-1].entry.kind == "replay"
    for deep in (True, False):
        assert world.prove(deep=deep).ok, [table.problems for table in world.prove(deep=deep).tables]


def test_a_redo_that_died_between_the_quarantine_and_the_table_is_no_problem() -> None:
    in_both = 0
    for seed in range(20):
        world = RedoWorld(seed)
        world.land(20)
        world.die_before_redo(0, 20)
        assert world.prove().ok
        in_both += bool(world.now.bad & {row[1] for row in world.now.rows()})
    assert in_both > 10
