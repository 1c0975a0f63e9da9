"""When rows wait too long for their validation, and when a run gets too little of the cores. Pure."""

from __future__ import annotations

import pytest

from lakebound.control.progress import TableProgress
from lakebound.inspection.validation.lateness import (
    Begun,
    Waiting,
    is_late,
    is_starved,
    late_after_seconds,
    late_finding,
    waiting_now,
)
from lakebound.inspection.validation.verdict import ValidatedRange

TABLE, OTHER = "delta:lake.orders", "iceberg:lake.orders"
NOON = 1_790_000_000.0


def landed(version: str, at: float, rows: int = 10) -> TableProgress:
    return TableProgress(version=version, committed_at=at, commits=1, rows=rows)


def validated(last: str, at: float, claim: str = "c") -> ValidatedRange:
    return ValidatedRange(claim=claim, run_id="r", table=TABLE, positions=((0, 1),), last=last, to_ms=int(at * 1000), at=at)


@pytest.mark.parametrize(
    ("commit", "last", "waits"),
    [
        (landed("9", NOON), None, True),
        (landed("9", NOON, rows=0), None, False),
        (landed("9", NOON), validated("9", NOON - 500), False),
        (landed("9", NOON), validated("8", NOON - 61), True),
        # The commit returned later than the time that it has in the table, and a compaction came after it.
        (landed("9", NOON), validated("10", NOON - 60), False),
        (landed("9", NOON), validated("10", NOON + 5), False),
    ],
)
def test_rows_wait_when_their_commit_is_newer_than_what_was_validated(
    commit: TableProgress, last: ValidatedRange | None, waits: bool
) -> None:
    found = waiting_now({}, {TABLE: commit}, [last] if last else [], [TABLE], NOON)
    assert list(found) == ([TABLE] if waits else [])


def test_rows_wait_since_the_first_look_and_a_validation_begins_anew() -> None:
    before = waiting_now({}, {TABLE: landed("9", NOON)}, [], [TABLE, OTHER], NOON)
    later = waiting_now(before, {TABLE: landed("12", NOON + 300)}, [], [TABLE, OTHER], NOON + 300)
    assert later == before == {TABLE: Waiting(since=NOON)}
    after = waiting_now(later, {TABLE: landed("20", NOON + 600)}, [validated("12", NOON + 310)], [TABLE], NOON + 600)
    assert after == {TABLE: Waiting(after="c", since=NOON + 600)}
    assert waiting_now(after, {TABLE: landed("20", NOON + 600)}, [], [OTHER], NOON + 700) == {}


@pytest.mark.parametrize(("every_seconds", "seconds"), [(60.0, 600.0), (3600.0, 18_000.0)])
def test_validation_is_late_after_ten_minutes_or_five_intervals(every_seconds: float, seconds: float) -> None:
    assert late_after_seconds(every_seconds) == seconds
    waiting = {TABLE: Waiting(since=NOON), OTHER: Waiting(since=NOON + seconds)}
    assert not is_late(waiting, every_seconds, NOON + seconds - 1)
    assert late_finding("orders", waiting, None, every_seconds, NOON + seconds - 1) is None
    assert is_late(waiting, every_seconds, NOON + seconds)
    found = late_finding("orders", waiting, None, every_seconds, NOON + seconds)
    assert found is not None and TABLE in found.what and OTHER not in found.what
    assert "validate__orders" in found.what and found.since == NOON


def test_the_finding_names_the_run_that_has_not_ended() -> None:
    begun = Begun(run_id="validate-orders-1", at=NOON + 60)
    found = late_finding("orders", {TABLE: Waiting(since=NOON)}, begun, 60.0, NOON + 900)
    assert found is not None and "validate-orders-1" in found.what
    assert found.evidence == {"waiting_seconds": 900, "run": "validate-orders-1"}


@pytest.mark.parametrize(
    ("cpu_seconds", "wall_seconds", "starved"),
    [(0.0, 119.0, False), (0.0, 120.0, True), (23.9, 120.0, True), (24.0, 120.0, False), (119.0, 600.0, True)],
)
def test_a_run_is_starved_when_it_had_less_than_a_fifth_of_a_core_for_two_minutes(
    cpu_seconds: float, wall_seconds: float, starved: bool
) -> None:
    assert is_starved(cpu_seconds, wall_seconds) is starved
