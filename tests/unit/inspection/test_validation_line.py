"""What is due: every landing on the standing line once, nothing else, and what can no longer be read is counted."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.worlds.table_line import MemoryTable

from lakebound.inspection.validation.line import Due, ValidatedSoFar, due
from lakebound.ledger.intervals import merge

EVERYTHING = 10**9


class Validator:
    """Claims what is due, and remembers what it was given."""

    def __init__(self, table: MemoryTable) -> None:
        self.table = table
        self.done = ValidatedSoFar()
        self.seen: Counter[int] = Counter()
        self.lost = 0

    def look(self, max_rows: int = EVERYTHING) -> Due | None:
        return due(self.table.line(self.done.has), self.done, max_rows=max_rows)

    def validate(self, max_rows: int = EVERYTHING) -> None:
        while (found := self.look(max_rows)) is not None:
            self.seen.update(step.position for step in found.landings)
            self.lost += found.gap.offsets if found.gap else 0
            offsets = {**self.done.offsets, found.positions[-1][1] - 1: found.newest.offsets or 0}
            self.done = ValidatedSoFar(merge((*self.done.positions, *found.positions)), offsets)
            assert found.landings or found.gap


ACTIONS = st.one_of(
    st.tuples(st.just("land"), st.integers(1, 9)),
    st.tuples(st.just("carry"), st.just(0)),
    st.tuples(st.just("rewind"), st.integers(0, 60)),
    st.tuples(st.just("validate"), st.integers(1, 30)),
)


@settings(max_examples=examples(300))
@given(st.lists(ACTIONS, max_size=40))
def test_every_landing_that_stands_is_validated_once_whatever_was_rewound(actions: list[tuple[str, int]]) -> None:
    table = MemoryTable()
    validator = Validator(table)
    for action, number in actions:
        if action == "land":
            table.land(number)
        elif action == "carry":
            table.carry()
        elif action == "rewind":
            table.rewind(number % (table.current + 1))
        else:
            validator.validate(max_rows=number)
            assert validator.look() is None, "a bound on the rows of a range keeps a landing from being validated"
    validator.validate()
    standing = {step.position for step in table.ancestors(table.current) if step.kind == "land"}
    assert standing <= set(validator.seen)
    assert not [position for position, times in validator.seen.items() if times != 1]
    assert not [position for position in validator.seen if table.commits[position].kind != "land"]
    assert validator.lost == 0 and validator.look() is None


@settings(max_examples=examples(200))
@given(st.lists(st.one_of(st.integers(1, 5), st.just("validate"), st.just("expire"), st.just("carry")), max_size=40))
def test_what_is_no_longer_kept_is_counted_to_the_offset(actions: list[int | str]) -> None:
    table = MemoryTable()
    validator = Validator(table)
    for action in actions:
        if action == "validate":
            validator.validate()
        elif action == "expire":
            table.expire_below(table.current - 1)
        elif action == "carry":
            table.carry()
        else:
            table.land(int(action))
    validator.validate()
    landed = sum(step.rows for step in table.ancestors(table.current) if step.kind == "land")
    assert sum(table.commits[position].rows for position in validator.seen) + validator.lost == landed
    assert validator.look() is None


def test_a_long_range_is_cut_at_the_oldest_and_goes_on_from_there() -> None:
    table = MemoryTable()
    for _ in range(5):
        table.land(10)
    validator = Validator(table)
    first = validator.look(max_rows=25)
    assert first is not None and first.is_cut
    assert [step.position for step in first.landings] == [1, 2] and first.positions == ((0, 3),)
    validator.validate(max_rows=25)
    assert sorted(validator.seen) == [1, 2, 3, 4, 5]


def test_a_landing_that_is_larger_than_a_range_may_be_is_due_after_what_lands_nothing() -> None:
    table = MemoryTable()
    table.land(10)
    found = Validator(table).look(max_rows=5)
    assert found is not None and [step.rows for step in found.landings] == [10], "behind the table's birth"


def test_compaction_alone_is_nothing_new_and_is_passed_with_the_next_landing() -> None:
    table = MemoryTable()
    table.land(3)
    validator = Validator(table)
    validator.validate()
    table.carry()
    assert validator.look() is None
    table.land(2)
    found = validator.look()
    assert found is not None and found.positions == ((2, 4),) and found.rows == 2
    assert found.since_ms == 1_000


def test_a_claim_that_was_begun_is_taken_again_as_it_was_and_not_when_it_was_rewound() -> None:
    table = MemoryTable()
    table.land(1)
    table.land(2)
    table.land(4)
    line = table.line(lambda position: False)
    again = due(line, ValidatedSoFar(), max_rows=EVERYTHING, within=((0, 3),))
    assert again is not None and [step.rows for step in again.landings] == [1, 2] and again.positions == ((0, 3),)
    table.rewind(1)
    again = due(table.line(lambda position: False), ValidatedSoFar(), max_rows=EVERYTHING, within=((2, 4),))
    assert again is None
