from __future__ import annotations

from lakebound.control.commit_events import Announced, CommitEvent, announce
from lakebound.control.progress import Progress, TableProgress

KNOWN = {"high_water_marks": {"orders": {0: 7}}, "complete_until": 90.0}


def look(
    before: Announced, now: float, version: int, *, app: str = "a", rows: int | None = None
) -> tuple[Announced, CommitEvent | None]:
    table = TableProgress(version=str(version), committed_at=now, commits=version, rows=version * 10 if rows is None else rows)
    progress = Progress(pipeline="orders", app_id=app, started_at=0, updated_at=now, tables={"delta:orders": table}, **KNOWN)
    return announce(before, progress, table, now, every_commits=5, every_seconds=60)


def test_so_many_commits_are_one_event_with_all_their_rows() -> None:
    known, event = look(Announced("a", "2", 2, 20), 0.0, 6)
    assert event is None
    known, event = look(known, 1.0, 7)
    assert event == CommitEvent("7", 5, 50, 1.0, {"orders": {0: 7}}, 90.0)
    assert look(known, 2.0, 7) == (known, None)


def test_a_few_commits_wait_until_the_time_is_up() -> None:
    known, event = look(Announced("a", "2", 2, 20), 100.0, 3)
    assert event is None
    known, event = look(known, 159.0, 4)
    assert event is None
    known, event = look(known, 160.0, 4)
    assert event == CommitEvent("4", 2, 20, 160.0, {"orders": {0: 7}}, 90.0)
    assert known.waiting_since is None


def test_a_new_application_counts_from_nought() -> None:
    _, event = look(Announced("a", "90", 90, 900), 0.0, 5, app="b")
    assert event == CommitEvent("5", 5, 50, 0.0, {"orders": {0: 7}}, 90.0)
