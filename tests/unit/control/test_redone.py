"""What was redone last: noted once, in numbers that grow, and small whatever the ranges are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.worlds.proof_world import TOPIC, offsets

from lakebound.control.commit_events import redone_event
from lakebound.control.folder import ControlFolder
from lakebound.control.redone import MOST_KEPT, MOST_RANGES, Redone, TableRedone, note_redone, ranges_of, read_redone

TABLE = "delta:lake.orders"


def redone(plan: str, end: int = 9, at: float = 1_800_000_000.0, undoes: str | None = None) -> Redone:
    """Return what a redo of the offsets below ``end`` says."""
    tables = {TABLE: TableRedone(version="7", ranges=ranges_of(offsets((0, 3, end))))}
    return Redone(at=at, plan=plan, undoes=undoes, source_before=("aaa", None), source_after=("bbb",), tables=tables)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_what_was_noted_last_is_not_noted_again_and_all_else_is(control: ControlFolder) -> None:
    assert read_redone(control) == ()
    for one in (
        redone("p1"),
        redone("p1", at=1_900_000_000.0),
        redone("p1", 20),
        redone("u1", 20, undoes="p1"),
        redone("p1", 20),
    ):
        note_redone(control, one)
    found = read_redone(control)
    assert [(one.plan, one.undoes) for one in found] == [("p1", None), ("u1", "p1"), ("p1", None), ("p1", None)]
    assert [one.tables[TABLE].ranges[0].next_offset for one in found] == [20, 20, 20, 9]


def test_numbers_grow_although_clocks_go_back_and_files_are_lost(control: ControlFolder) -> None:
    numbers = []
    for number, at in enumerate((1_800_000_000.0, 1_700_000_000.0, 1_800_000_000.0)):
        note_redone(control, redone(f"p{number}", at=at))
        numbers.append(read_redone(control)[0].number)
    control.folder.joinpath("redone.json").write_text('{"newest": [')
    note_redone(control, redone("p9", at=1_800_000_001.0))
    numbers.append(read_redone(control)[0].number)
    assert numbers == sorted(set(numbers))


def test_it_stays_small(control: ControlFolder) -> None:
    for number in range(2 * MOST_KEPT):
        note_redone(control, redone(f"p{number}"))
    assert len(read_redone(control)) == MOST_KEPT
    many = offsets(*((partition, 2 * at, 2 * at + 1) for partition in (0, 1) for at in range(MOST_RANGES)))
    assert [(one.topic, one.partition, one.first_offset, one.next_offset) for one in ranges_of(many)] == [
        (TOPIC, 0, 0, 2 * MOST_RANGES - 1),
        (TOPIC, 1, 0, 2 * MOST_RANGES - 1),
    ]


def test_the_event_of_a_table_names_plan_code_and_ranges() -> None:
    event = redone_event(redone("p1"), TABLE, None)
    assert (event.version, event.commits, event.rows) == ("7", 0, 0)
    assert event.redone == {
        "plan": "p1",
        "undoes": None,
        "source_before": ["aaa", None],
        "source_after": ["bbb"],
        "ranges": [{"topic": TOPIC, "partition": 0, "first_offset": 3, "next_offset": 9}],
    }
