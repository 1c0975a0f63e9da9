from __future__ import annotations

from lakebound.control.complete_hours import Announcement
from lakebound.control.taken_hours import KEPT_HOURS, TakenHours, missed, take


def announced(*numbers: int) -> list[Announcement]:
    """Announcements of the hours h10, h11, ... with these numbers."""
    return [Announcement(hour=f"h{number}", number=number, version="1", announced_at_ms=-(10**7)) for number in numbers]


def test_an_announcement_is_taken_once_but_by_the_same_run_again() -> None:
    first = take(None, "h10", 10, "run a")
    assert first == TakenHours(since=9, hours={"h10": (10, "run a")})
    assert take(first, "h10", 10, "run b") is None, "the event came twice"
    assert take(first, "h10", 10, "run a") == first, "a person cleared the run"
    later = take(first, "h10", 17, "run b")
    assert later is not None
    assert later.hours == {"h10": (17, "run b")}, "rows came late"
    assert take(later, "h10", 10, "run c") is None, "what is newer was taken"


def test_what_a_paused_dag_missed_is_asked_for_and_not_again_at_once() -> None:
    taken = take(take(None, "h10", 10, "a"), "h14", 14, "b")
    assert taken is not None
    lately = [Announcement(hour="h12", number=12, version="1", announced_at_ms=-60_000)]
    assert missed(taken, lately, 14, {}, now=0.0) == [], "its run may be queued"
    everything = announced(8, 10, 12, 13, 14, 15)
    wanted = missed(taken, everything, 14, {}, now=0.0)
    assert [one.number for one in wanted] == [12, 13], "neither what came before its first run nor what is still to come"
    asked = {"h12": (12, 0.0), "h13": (11, 0.0)}
    assert [one.number for one in missed(taken, everything, 14, asked, now=60.0)] == [13]
    assert [one.number for one in missed(taken, everything, 14, asked, now=7200.0)] == [12, 13], "that was lost, too"


def test_what_is_remembered_is_bounded_and_what_is_forgotten_does_not_come_back() -> None:
    taken = None
    for number in range(10, 10 + KEPT_HOURS + 5):
        taken = take(taken, f"h{number}", number, "a")
    assert taken is not None
    assert (len(taken.hours), taken.since) == (KEPT_HOURS, 14)
    assert missed(taken, announced(*range(10, 10 + KEPT_HOURS)), 10**6, {}, now=0.0) == []
