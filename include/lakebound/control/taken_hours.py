"""Which announced hours a DAG has taken up, and which it missed: Airflow gives a paused DAG no events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakebound.control.complete_hours import Announcement

KEPT_HOURS = 700
"""Of so many a DAG remembers that it took them: a month of hours, within what Airflow's state store takes as one value."""
ASK_AGAIN_SECONDS = 3600.0
PENDING_SECONDS = 900.0
"""An hour that was found complete so lately may still wait for Airflow: its run may be queued."""


@dataclass(frozen=True)
class TakenHours:
    """What one DAG has taken of the announcements of one table.

    Attributes:
        since: Announcements up to this number are of before its first run, or forgotten.
        hours: Per hour the number of the newest announcement that it took, and the run that did.
    """

    since: int = 0
    hours: Mapping[str, tuple[int, str]] = field(default_factory=dict)


def take(before: TakenHours | None, hour: str, number: int, run: str) -> TakenHours | None:
    """Return what is taken with this announcement; None where another run has taken it, or a newer one, already.

    Args:
        before: What was taken so far; None at the DAG's first run.
        hour: Name of the hour.
        number: Of the announcement.
        run: What tells the run from others; the run itself may take the same again, as when it is cleared.
    """
    known = before or TakenHours(since=number - 1)
    newest, by = known.hours.get(hour, (0, run))
    if newest >= number and by != run:
        return None
    hours = {**known.hours, hour: (max(newest, number), run)}
    ordered = sorted(hours.items(), key=lambda one: one[1][0])
    dropped, kept = ordered[:-KEPT_HOURS], ordered[-KEPT_HOURS:]
    return TakenHours(max([known.since, *(taken for _, (taken, _) in dropped)]), dict(kept))


def missed(
    taken: TakenHours,
    announced: Iterable[Announcement],
    before_number: int,
    asked_at: Mapping[str, tuple[int, float]],
    now: float,
) -> list[Announcement]:
    """Return the announcements that were to come before this one, did not, are not new, and were not asked for lately.

    Args:
        taken: What the DAG took.
        announced: Newest announcement of each hour.
        before_number: Of the announcement that the run is about.
        asked_at: Per hour the number that was asked for, and when, in epoch seconds.
        now: Epoch seconds.
    """
    found = []
    for one in announced:
        asked, at = asked_at.get(one.hour, (0, 0.0))
        is_asked = asked >= one.number and now - at < ASK_AGAIN_SECONDS
        is_new = now - one.announced_at_ms / 1000 < PENDING_SECONDS
        is_taken = taken.hours.get(one.hour, (0, ""))[0] >= one.number
        if taken.since < one.number < before_number and not (is_taken or is_asked or is_new):
            found.append(one)
    return found
