"""How far a redo has got, and what its entries say of the rows that leave."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.worlds.proof_world import PIPELINE, kafka_rows, offsets
from tests.support.worlds.redo_world import RedoWorld

from lakebound.inspection.proof.history import spans_of
from lakebound.landing.table_hours import hours_of
from lakebound.ledger.entry import Entry, count
from lakebound.ledger.hours import HOUR_MS, RowHours
from lakebound.ledger.redo_progress import NO_REDO, RedoProgress
from lakebound.operations.redo.progress import NOT_BEGUN, pieces_left, redone_since, standing, to_do, unfinished_since_ms
from lakebound.operations.redo.replacing import with_leaving
from lakebound.operations.release.released import released_offsets
from lakebound.spec.pipeline import KAFKA_TIMESTAMP
from lakebound.tables.table import CommittedEntry


def redone(*plans: tuple[str, int, int], back_to: int | None = None) -> list[CommittedEntry]:
    """Return entries, newest first: redos of (plan, start, end), and perhaps a reset that leaves the first few of them."""
    found, first = list[CommittedEntry](), ""
    for number, (plan, start, end) in enumerate(plans):
        before = f"r{number - 1}" if number else None
        first = first if number and plans[number - 1][0] == plan else f"r{number}"
        body = {"redoes": offsets((0, start, end)), "decision": plan, "redo_before": before, "newest_redo": f"r{number}"}
        body |= {"redo_first": first, "redo_progress": RedoProgress(plan=plan)}
        found.append(CommittedEntry(str(number), number, entry("redo", f"r{number}", **body)))
    if back_to is not None:
        newest = f"r{back_to - 1}" if back_to else ""
        progress = RedoProgress(plan=plans[back_to - 1][0]) if back_to else NO_REDO
        found.append(CommittedEntry("reset", 99, entry("reset", "c", newest_redo=newest, redo_progress=progress)))
    return found[::-1]


@pytest.mark.parametrize(
    ("left", "since_ms", "replaced"),
    [
        ((0, 0, 0), None, []),
        ((0, 9, 0), None, []),
        ((9, 0, 7), 2, [(20, 30)]),
        ((0, 9, 7), 1, [(10, 30)]),
        ((9, 8, 7), 0, [(0, 30)]),
    ],
)
def test_a_redo_in_the_place_of_one_that_was_not_finished_goes_on_with_what_that_one_began(
    left: tuple[int, ...], since_ms: int | None, replaced: list[tuple[int, int]]
) -> None:
    entries = redone(("a", 0, 10), ("b", 10, 20), ("c", 20, 30))
    entries = [
        CommittedEntry(
            one.version,
            one.committed_at_ms,
            one.entry.model_copy(update={"redo_progress": RedoProgress(plan=one.entry.decision or "", left=left[number])}),
        )
        for number, one in zip((2, 1, 0), entries, strict=True)
    ]
    assert unfinished_since_ms(entries) == since_ms
    assert solid(redone_since(entries, 99 if since_ms is None else since_ms)) == replaced


def entry(kind: str, commit: str, **fields: Any) -> Entry:
    return Entry.model_validate({"kind": kind, "pipeline": PIPELINE, "epoch": 1, "commit": commit, **fields})


def solid(found: Any) -> list[tuple[int, int]]:
    return [pair for intervals in spans_of(found).values() for pair in intervals]


@pytest.mark.parametrize(
    ("entries", "done"),
    [
        (redone(), []),
        (redone(("a", 0, 5), ("a", 5, 9)), [(0, 9)]),
        (redone(("a", 0, 5), ("b", 3, 9)), []),
        (redone(("b", 0, 9), ("a", 3, 5)), [(3, 5)]),
        (redone(("a", 0, 5), ("a", 5, 9), back_to=1), [(0, 5)]),
        (redone(("a", 0, 5), ("a", 5, 9), back_to=0), []),
        (redone(("a", 0, 5), ("a", 5, 9))[:1], [(5, 9)]),
    ],
    ids=["none", "pieces", "another plan since", "another plan before", "rewound", "rewound to before", "expired"],
)
def test_what_a_plan_has_done_is_what_its_standing_entries_say(
    entries: list[CommittedEntry], done: list[tuple[int, int]]
) -> None:
    assert solid(standing(entries, "a").done) == done


def test_no_entry_is_asked_for_that_is_older_than_the_plan() -> None:
    def entries() -> Iterator[CommittedEntry]:
        yield from redone(("b", 0, 9), ("a", 3, 5), ("a", 5, 6))[:2]
        raise AssertionError("one was")

    assert standing(entries(), "a").first == "r1"
    found = [CommittedEntry("9", 9, entry("land", "c", newest_redo="r0", redo_progress=RedoProgress(plan="b")))]
    assert standing(chain(found, entries()), "a") == NOT_BEGUN


@given(st.integers(1, 30), st.integers(0, 60), st.integers(0, 60))
def test_a_redo_that_goes_on_has_the_pieces_of_before_of_which_something_is_left(most: int, one: int, other: int) -> None:
    wanted = offsets((0, 0, 60))
    replaces = {"a": wanted, "b": offsets((0, 10, 60))}
    done = {"a": offsets((0, 0, one)) if one else {}, "b": offsets((0, 10, other)) if other > 10 else {}}
    left = pieces_left(wanted, replaces, done, most)
    every = pieces_left(wanted, replaces, {}, most)
    assert all(piece in every for piece in left)
    assert sum(count(to_do(piece, replaces["a"], done["a"])) for piece in left) == 60 - one
    assert sum(count(to_do(piece, replaces["b"], done["b"])) for piece in left) == 60 - max(other, 10)


def leaving(*hours: int) -> pa.Table:
    rows = kafka_rows([(0, number, 0) for number in range(len(hours))])
    moments = pa.array([hour * HOUR_MS * 1000 for hour in hours], pa.int64()).cast(rows.schema.field("timestamp").type)
    return rows.set_column(rows.column_names.index("timestamp"), "timestamp", moments)


def test_hours_of_rows_that_leave_are_touched_even_where_none_comes() -> None:
    draft = entry("redo", "r", redoes=offsets((0, 0, 9)))
    found = with_leaving(draft, [leaving(500, 502), leaving(501)])
    assert found.erases == 3 and hours_of(found, KAFKA_TIMESTAMP) == {500, 501, 502}
    assert with_leaving(draft, []) == draft and hours_of(draft, KAFKA_TIMESTAMP) == set()


def test_of_another_column_it_is_not_known_which_hours_are_touched() -> None:
    draft = entry("redo", "r", redoes=offsets((0, 0, 9)), rows=1, hours=RowHours(column="at", intervals=((7, 8),)))
    assert hours_of(draft, "at") == {7}
    assert hours_of(with_leaving(draft, [leaving(500)]), "at") is None


@pytest.mark.parametrize("seed", range(20))
def test_what_was_released_and_redone_since_is_told_by_its_rows(seed: int) -> None:
    world = RedoWorld(seed)
    world.land(20)
    world.release(4)
    released = {offset for start, end in solid(world.entries[-1].entry.releases) for offset in range(start, end)}
    world.redo(5, 15)
    named, unnamed = released_offsets(reversed(world.entries), world.now.released)
    offsets_named = {offset for pairs in named.values() for start, end in pairs for offset in range(start, end)}
    assert offsets_named == {offset for offset in released if not 5 <= offset < 15} and unnamed == 0
