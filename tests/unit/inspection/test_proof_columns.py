"""A proof does not hold where readers see columns wrongly, whatever the offsets say; what was not looked at is said."""

from __future__ import annotations

from dataclasses import replace

from tests.support.worlds.proof_world import SIMPLE, World, proof_of

from lakebound.inspection.proof.result import Proof
from lakebound.tables.misread import ColumnsLook, MisreadFile, Misreading

MOVED, LOST = Misreading("city", "city", "town"), Misreading("note", "note", None)


def prove(look: ColumnsLook | None) -> Proof:
    world = World(batches=SIMPLE)
    return world.prove(replace(world.target(), columns=look))


def test_right_columns_leave_a_proof_as_it_is() -> None:
    for look in (None, ColumnsLook(files=3, looked_at=3)):
        proof = prove(look)
        assert proof.ok and proof_of(proof).notes == () and "readers" not in proof.sentence


def test_files_with_the_same_mistake_are_one_problem() -> None:
    misread = [MisreadFile(f"part-{number}.parquet", 10, MOVED) for number in range(7)]
    proof = prove(ColumnsLook(9, 9, (*misread, MisreadFile("part-8.parquet", None, LOST))))
    found = proof_of(proof)
    assert not proof.ok and (proof.missing, proof.duplicated) == (0, 0)
    assert "columns that readers do not see rightly 2" in proof.sentence
    moved, lost = found.misread
    assert (moved.column, moved.belongs_to, moved.seen_in, moved.files, moved.rows) == ("city", "city", "town", 7, 70)
    assert (lost.seen_in, lost.files, lost.rows, lost.such_as) == (None, 1, None, ("part-8.parquet",))
    assert len(moved.such_as) < 7 and moved.such_as[0] == "part-0.parquet"
    first, second = found.problems
    assert all(word in first for word in ("part-0.parquet", "city", "town", "70 rows", "proof-failed"))
    assert "part-8.parquet" in second and "note" in second


def test_what_cannot_be_told_is_not_proved() -> None:
    proof = prove(ColumnsLook(2, 2, undecided=("part-1.parquet",)))
    assert not proof.ok and "part-1.parquet" in proof_of(proof).problems[0]


def test_a_part_of_the_files_is_told() -> None:
    proof = prove(ColumnsLook(files=12_000, looked_at=10_000))
    assert proof.ok and any("10,000 of its 12,000 files" in note for note in proof_of(proof).notes)
