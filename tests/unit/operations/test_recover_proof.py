"""What recovery leaves in a ledger, and what the proof says of it: lost by decision, two incarnations side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.worlds.proof_world import PIPELINE, TARGET, TOPIC, TOPIC_ID, World, at, born, kafka_rows, offsets, proof_of

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.judgement import judge
from lakebound.inspection.proof.result import Proof
from lakebound.ledger.entry import Entry, add
from lakebound.ledger.topics import TopicFacts
from lakebound.tables.table import CommittedEntry

NEW_ID = "id-2"


def entry(kind: str, number: int, **fields: Any) -> CommittedEntry:
    """Return an entry of any kind."""
    body = {"kind": kind, "pipeline": PIPELINE, "epoch": 2, "commit": f"c{number}"}
    return CommittedEntry(str(number), number, Entry.model_validate(body | fields))


class TestLostByDecision:
    """[0, 10) landed; [10, 25) was deleted by Kafka and given up; [25, 30) landed."""

    def proof(self, *, deep: bool, skip: bool = True, rows: range = range(25, 30)) -> Proof:
        world = World(batches=[["landed"] * 10])
        world.end, world.earliest = 30, 25
        covered = offsets((0, 0, 25))
        if skip:
            world.entries.append(entry("skip", 2, range=offsets((0, 10, 25)), coverage=covered))
        else:
            covered = offsets((0, 0, 10))
        landed = add(covered, offsets((0, 25, 30)))
        world.entries.append(entry("land", 3, range=offsets((0, 25, 30)), coverage=landed, read=5, landed=5, rows=5))
        world.rows += [(0, offset, 0) for offset in rows]
        world.readable += list(range(25, 30))
        return world.prove(deep=deep)

    @pytest.mark.parametrize("deep", [False, True])
    def test_it_is_named_and_not_missing(self, deep: bool) -> None:
        proof = self.proof(deep=deep)
        found = proof_of(proof)
        assert proof.ok, found.problems
        assert (proof.missing, proof.skipped, found.skipped.ranges) == (0, 15, at((10, 25)))
        assert "lost by decision 15" in proof.sentence
        assert "lost by decision, as a skip entry says: 15: orders/0 [10, 25)" in found.notes

    @pytest.mark.parametrize("deep", [False, True])
    def test_without_the_decision_it_is_missing(self, deep: bool) -> None:
        proof = self.proof(deep=deep, skip=False)
        assert not proof.ok
        assert (proof.missing, proof.skipped) == (15, 0)

    def test_rows_of_offsets_that_were_given_up_are_too_many(self) -> None:
        proof = self.proof(deep=True, rows=range(24, 30))
        assert not proof.ok
        assert proof_of(proof).surplus.within == at((10, 25))

    def test_a_reset_that_takes_the_decision_back_takes_it_off_the_proof(self) -> None:
        world = World(batches=[["landed"] * 10])
        world.entries.append(entry("skip", 2, range=offsets((0, 10, 25)), coverage=offsets((0, 0, 25))))
        world.entries.append(entry("reset", 3, coverage=offsets((0, 0, 10))))
        assert (world.prove().skipped, proof_of(world.prove()).skipped.count) == (0, 0)


class TestTwoIncarnations:
    """[0, 10) of the old topic landed; the topic was made anew; [0, 6) of the new one landed, at the same offsets."""

    old = World(batches=[["landed"] * 6, ["landed"] * 4])

    def facts(self, *, rows: pa.Table | None = None, history: int = 99) -> TableAsFound:
        former = {TOPIC: (offsets((0, 0, 10))[TOPIC],)}
        begun = offsets((0, 0, 0), topic_id=NEW_ID)
        landed = offsets((0, 0, 6), topic_id=NEW_ID)
        entries = [
            *self.old.entries,
            entry("reset", 3, coverage=begun, former=former),
            entry("open", 4, coverage=begun, former=former),
            entry("land", 5, range=landed, coverage=landed, former=former, read=6, landed=6, rows=6),
        ]
        found = self.rows() if rows is None else rows
        newest_first = tuple(reversed(entries))[:history]
        return TableAsFound(TARGET, "target", "entry", landed, newest_first, found, later_coverage=landed, former=former)

    def rows(self, old: range = range(10), new: range = range(6)) -> pa.Table:
        return pa.concat_tables(
            [kafka_rows([(0, offset, 0) for offset in old]), kafka_rows([(0, offset, 0) for offset in new], NEW_ID)]
        )

    def prove(self, facts: TableAsFound, *, deep: bool = True) -> Proof:
        quarantine = TableAsFound("delta:quarantine.orders", "quarantine", "entry", {}, (born(),), kafka_rows([]))
        readable = {(TOPIC, 0): np.arange(6, dtype=np.int64)} if deep else None
        topics = {TOPIC: TopicFacts(NEW_ID, {0: 0}, {0: 6})}
        return judge(PIPELINE, [facts, quarantine], topics, readable=readable)

    @pytest.mark.parametrize("deep", [False, True])
    @pytest.mark.parametrize("history", [99, 1], ids=["all-entries", "newest-entry"])
    def test_rows_of_both_are_where_they_belong(self, deep: bool, history: int) -> None:
        proof = self.prove(self.facts(history=history), deep=deep)
        assert proof.ok, proof_of(proof).problems
        assert (proof.missing, proof.duplicated) == (0, 0)
        if history == 99:
            assert proof_of(proof).records == 16
            assert proof_of(proof).rows == 16

    def test_a_doubled_row_of_the_old_one_is_named(self) -> None:
        rows = pa.concat_tables([self.rows(), kafka_rows([(0, 3, 0)])])
        assert proof_of(self.prove(self.facts(rows=rows))).duplicated.ranges == at((3, 4))

    def test_a_lost_row_of_the_old_one_is_missing(self) -> None:
        proof = self.prove(self.facts(rows=self.rows(old=range(9))))
        assert not proof.ok
        assert (proof.missing, proof_of(proof).missing.ranges) == (1, at((9, 10)))

    def test_a_lost_row_of_the_new_one_is_missing_although_the_old_one_has_that_offset(self) -> None:
        proof = self.prove(self.facts(rows=self.rows(new=range(5))))
        assert (proof.missing, proof_of(proof).missing.ranges) == (1, at((5, 6)))

    def test_rows_of_an_incarnation_that_nobody_knows_are_outside(self) -> None:
        facts = replace(self.facts(), former={})
        proof = self.prove(facts)
        assert not proof.ok
        assert proof_of(proof).outside.count == 10
        assert any(f"name another topic id, {TOPIC_ID}" in problem for problem in proof_of(proof).problems)

    def test_entries_of_the_old_one_stand_however_often_the_table_was_reset_since(self) -> None:
        facts = self.facts()
        again = entry("reset", 6, coverage=facts.coverage, former=facts.former)
        proof = self.prove(replace(facts, entries=(again, *facts.entries)))
        assert proof.ok, proof_of(proof).problems
        assert proof_of(proof).records == 16
