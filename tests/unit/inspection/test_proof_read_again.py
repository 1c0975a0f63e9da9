"""A record that was quarantined, and landed when it was read again with another schema, is right; other doubles are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.worlds.proof_world import OTHER, QUARANTINE, TARGET, Row, World, at, born, kafka_rows, proof_of

from lakebound.inspection.proof.result import Proof

BATCHES: Any = [["landed"] * 2, ["landed", "quarantined", "filtered", "quarantined", "quarantined"], ["quarantined", "landed"]]
"""Quarantined: 3, 5, 6, 7. Of these the second batch was read again: 3 and 5 fitted by then."""

FITTED = ((0, 3, 0), (0, 5, 0), (0, 5, 1))


def read_again(kind: str = "land", epoch: int = 2, added: Sequence[Row] = FITTED, **counts: int) -> World:
    """Return a world whose first application died between the quarantine's commit and those of the tables."""
    world = World(batches=BATCHES)
    changes = {"kind": kind, "epoch": epoch, "landed": 3, "quarantined": 1, "rows": 4} | counts
    for number in range(2, len(world.entries)):
        own = changes if number == 2 else {"epoch": epoch}
        world.entries[number] = replace(world.entries[number], entry=world.entries[number].entry.model_copy(update=own))
    world.rows += added
    return world


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize(("kind", "epoch"), [("land", 2), ("replay", 1)])
def test_what_fitted_when_it_was_read_again_is_right(kind: str, epoch: int, deep: bool) -> None:
    proof = proof_of(read_again(kind, epoch).prove(deep=deep))
    assert proof.problems == () and (proof.missing.count, proof.duplicated.count) == (0, 0)
    assert any("were quarantined when they were read again" in note and "[3, 4)" in note for note in proof.notes) == deep


def test_a_table_that_was_added_later_is_right_beside_the_first() -> None:
    first, added = World(batches=BATCHES), read_again()
    proof = first.prove(first.target(), added.target(table=OTHER))
    assert [proof_of(proof, name).problems for name in (TARGET, OTHER)] == [(), ()]


def test_a_record_in_both_places_that_its_entry_does_not_count_is_a_double() -> None:
    world = read_again()
    world.rows.append((0, 6, 0))
    proof = proof_of(world.prove())
    assert proof.duplicated.ranges == at((3, 4), (5, 7)) and proof.surplus.count == 1
    world = read_again()
    world.rows.append((0, 7, 0))
    assert proof_of(world.prove()).duplicated.ranges == at((7, 8)), "of another entry, which counts it as quarantined"


def test_a_double_in_place_of_a_landed_row_is_still_found() -> None:
    """As many rows as the entry counts, and not the same: the quarantine then lacks one that it counts as bad."""
    world = read_again()
    world.rows.remove((0, 2, 0))
    world.rows.append((0, 6, 0))
    proof = proof_of(world.prove())
    assert proof.duplicated.ranges == at((3, 4), (5, 7))
    assert any("both landed and quarantined" in problem for problem in proof.problems)


def test_a_missing_row_of_what_was_read_again_is_missing() -> None:
    world = read_again()
    world.rows.remove((0, 5, 1))
    assert proof_of(world.prove()).missing.count == 1


def test_what_is_counted_as_bad_is_looked_for_among_what_did_not_land() -> None:
    """Kafka has the records no more; the quarantine has as many rows as are counted, one of them of a record that landed."""
    world = World(batches=[["landed"] * 2, ["landed", "quarantined", "landed"]], earliest=5)
    assert proof_of(world.prove()).missing.count == 0
    world.bad = [(0, 2, 0)]
    assert proof_of(world.prove()).missing.count == 1


def test_without_an_entry_nothing_explains_it() -> None:
    world = read_again()
    facts = world.target(entries=(born("open", world.entries[-1].entry.coverage),))
    assert proof_of(world.prove(facts)).duplicated.ranges == at((3, 4), (5, 6))


def test_the_same_application_does_not_read_otherwise() -> None:
    def contradicted(proof: Proof) -> bool:
        return any("its entries count at most" in problem for problem in proof_of(proof).problems)

    assert contradicted(read_again(epoch=1).prove(deep=False))
    assert not contradicted(read_again(epoch=2).prove(deep=False))


def test_rows_of_another_order_change_nothing() -> None:
    world = read_again()
    assert proof_of(world.prove(world.target(rows=kafka_rows(world.rows[::-1])))).problems == ()


def read_again_for_another_table(epoch: int) -> Callable[[bool], Proof]:
    """Return the proof of two tables: one has landed a batch, and then a record of it did not fit for the other one."""
    first = World(batches=[["landed"] * 2, ["landed"] * 3])
    second = World(batches=[["landed"] * 2, ["landed", "quarantined", "landed"]])
    for entries, number in ((second.entries, 2), (second.quarantine, 1)):
        entries[number] = replace(entries[number], entry=entries[number].entry.model_copy(update={"epoch": epoch}))
    return lambda deep: second.prove(first.target(), second.target(table=OTHER), deep=deep)


@pytest.mark.parametrize("deep", [True, False])
def test_what_did_not_fit_when_it_was_read_again_for_another_table_is_right(deep: bool) -> None:
    """Such as after a crash between the commits of the tables, or when a table was added."""
    proof = read_again_for_another_table(epoch=2)(deep)
    assert [proof_of(proof, name).problems for name in (TARGET, OTHER, QUARANTINE)] == [(), (), ()]
    assert (proof.missing, proof.duplicated) == (0, 0)
    of_one_application = read_again_for_another_table(epoch=1)(deep)
    assert any("its entries count at most 0 quarantined" in one for one in proof_of(of_one_application).problems)
