"""Which hours of a table are complete, and which of them are to be announced. Pure.

A table's hour is complete when it is over, a grace has passed, and everything has landed that Kafka had then: an end per
partition, asked after the grace, is a *cut-off*, and the table's ledger holds everything below it from where the table began,
without a gap: offsets that a replay has still to land keep the hour open. Rows that land later for an hour which was
announced touch it, and it is announced again after the next cut-off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import Field

from lakebound.frozen import Frozen, FrozenRecord
from lakebound.ledger.hours import HOUR_MS, REMEMBERED_HOURS
from lakebound.ledger.intervals import PartitionIntervals, overlap, total
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.complete_hours import HourUnit

Gaps = Mapping[str, PartitionIntervals]
"""Per topic and partition, intervals of offsets that are not covered, between others that are."""

_HOURS: Mapping[HourUnit, int] = {"hour": 1, "day": 24}
_TOLD_AGAIN_MS = 48 * HOUR_MS
HOUR_FORMAT, DAY_FORMAT = "%Y-%m-%dT%H", "%Y-%m-%d"
_FORMATS: Mapping[HourUnit, str] = {"hour": HOUR_FORMAT, "day": DAY_FORMAT}


class HourSpan(Frozen):
    """The length of what is announced, and how long it is waited for after its end. "Hour" below means such a span."""

    unit: HourUnit = "hour"
    grace_ms: int = 0

    @property
    def length_ms(self) -> int:
        """Of one hour, or of one day."""
        return _HOURS[self.unit] * HOUR_MS

    def number_at(self, moment_ms: int) -> int:
        """Return the number, since 1970, of the hour in which a moment lies."""
        return moment_ms // self.length_ms

    def numbers_of(self, hours: Collection[int]) -> frozenset[int]:
        """Return in which spans these hours, as entries tell them, lie."""
        return frozenset(hour // _HOURS[self.unit] for hour in hours)

    def due_ms(self, number: int) -> int:
        """Return when an hour's grace is over."""
        return (number + 1) * self.length_ms + self.grace_ms

    def last_due(self, moment_ms: int) -> int:
        """Return the last hour whose grace is over at a moment."""
        return (moment_ms - self.grace_ms) // self.length_ms - 1

    def bounds_ms(self, key: str) -> tuple[int, int]:
        """Return beginning and end of an hour, by its name.

        Raises:
            ValueError: It is not the name of one.
        """
        start = datetime.strptime(key, _FORMATS[self.unit]).replace(tzinfo=UTC)
        start_ms = round(start.timestamp() * 1000)
        return start_ms, start_ms + self.length_ms

    def key(self, number: int) -> str:
        """Return an hour's name, Airflow's partition key: ``2026-11-25T10``, of a day ``2026-11-25``."""
        return datetime.fromtimestamp(number * self.length_ms / 1000, UTC).strftime(_FORMATS[self.unit])


class CutOff(FrozenRecord):
    """What Kafka had at a moment.

    Attributes:
        taken_at_ms: Just before Kafka was asked.
        ends: Its ends, whatever is committed: records of an open transaction count.
        topic_ids: Ids of the topics whose ends these are.
    """

    taken_at_ms: int
    ends: dict[str, dict[int, int]]
    topic_ids: dict[str, str]

    def lacking(self, reached: NextOffsets, gaps: Gaps, topic_ids: Mapping[str, str]) -> dict[str, dict[int, int]]:
        """Return how many offsets a table lacks of it, per topic and partition; empty when it has all.

        Args:
            reached: The table's next offsets.
            gaps: What the table lacks below them.
            topic_ids: Ids of the topics of which it has them.
        """
        found: dict[str, dict[int, int]] = {}
        for topic, ends in self.ends.items():
            is_same = topic_ids.get(topic, self.topic_ids.get(topic)) == self.topic_ids.get(topic)
            marks, holes = (reached.get(topic, {}), gaps.get(topic, {})) if is_same else ({}, {})
            for partition, end in ends.items():
                missing = max(0, end - marks.get(partition, 0)) + total(overlap(holes.get(partition, ()), ((0, end),)))
                if missing:
                    found.setdefault(topic, {})[partition] = missing
        return found


class Announcement(FrozenRecord):
    """An hour that is complete; of each hour the newest is kept.

    Attributes:
        hour: Its name (``HourSpan.key``).
        number: Grows with every announcement of the pipeline.
        version: Delta version or Iceberg snapshot id that holds the hour.
        further: Whether the hour was announced before, or had passed before the first announcement: rows came late.
        announced_at_ms: When this was found.
    """

    hour: str
    number: int
    version: str
    further: bool = False
    announced_at_ms: int


class TableHours(FrozenRecord):
    """How far the announcements of a table are.

    Attributes:
        next_hour: Number of the first hour that was never due.
        touched: Hours before it of which rows have landed since they were announced.
        touched_since_ms: Since when there are such; None without any.
        commit: Commit id of the entry up to which it is known which hours rows touched.
        landed: Offsets landed, and released from quarantine, by then.
        cut_off: What must have landed before the next announcement; None where nothing is due.
        lacking: Of the cut-off, at the last look: offsets per topic and partition.
        announced: Newest announcement of each hour, in their order.
    """

    next_hour: int
    touched: tuple[int, ...] = ()
    touched_since_ms: int | None = None
    commit: str | None = None
    landed: int = 0
    cut_off: CutOff | None = None
    lacking: dict[str, dict[int, int]] = Field(default_factory=dict)
    announced: tuple[Announcement, ...] = ()


class CompleteHours(FrozenRecord):
    """The file ``complete-hours.json``: what the application found, and Airflow announces."""

    unit: HourUnit = "hour"
    grace_ms: int = 0
    column: str = ""
    looked_at_ms: int = Field(default=0, description="When the application looked last.")
    tables: dict[str, TableHours] = Field(default_factory=dict)

    @property
    def span(self) -> HourSpan:
        """What an hour is here."""
        return HourSpan(unit=self.unit, grace_ms=self.grace_ms)


@dataclass(frozen=True)
class TableSight:
    """One look at a table's ledger.

    Attributes:
        version: The version that was read.
        reached: Next offsets per topic and partition.
        topic_ids: Of the topics of which it has offsets.
        commit: Id of the newest entry.
        landed: Offsets landed and released so far.
        touched: Hours (of 3600 s) of the rows that landed after the entry that was known; None where that cannot be said.
        is_put_back: Whether a rewind may have undone the entry that was known: as many offsets may be other rows.
        gaps: What it lacks below ``reached``, since the first offset that it has.
    """

    version: str
    reached: NextOffsets
    topic_ids: Mapping[str, str]
    commit: str | None
    landed: int
    touched: frozenset[int] | None
    is_put_back: bool = False
    gaps: Gaps = field(default_factory=dict)


def first_look(span: HourSpan, sight: TableSight, now_ms: int) -> TableHours:
    """Return where the announcements of a table begin: with the present hour; of what was landed before nothing is said.

    Args:
        span: What an hour is.
        sight: The look.
        now_ms: Its time.
    """
    return TableHours(next_hour=span.number_at(now_ms), commit=sight.commit, landed=sight.landed)


def by_this_clock(known: TableHours, span: HourSpan, now_ms: int) -> TableHours:
    """Return what is known where the clock has gone back since: what it concluded of times that have not come counts no longer.

    No look can have found more than all hours before the present one due. Where that is so nevertheless, the clock was ahead,
    or is behind now. Then the hour after the last one is due next that was announced at a time that has come, and what was
    announced too early is announced again when it is over. Where none of these is remembered, two days are announced again.
    What nobody looked at until its time had really come shows nothing of this: such a cut-off counts.

    Args:
        known: After the look before.
        span: What an hour is.
        now_ms: The time.
    """
    present = span.number_at(now_ms)
    changes: dict[str, object] = {}
    if known.next_hour > present:
        next_hour = _next_by(known, span, now_ms)
        touched = tuple(hour for hour in known.touched if hour < next_hour)  # the others are due when they are over
        since = known.touched_since_ms if touched else None
        changes |= {"next_hour": next_hour, "touched": touched, "touched_since_ms": since}
    if known.touched_since_ms is not None and known.touched_since_ms > now_ms and changes.get("touched", known.touched):
        changes["touched_since_ms"] = now_ms
    if known.cut_off is not None and known.cut_off.taken_at_ms > now_ms:
        changes |= {"cut_off": None, "lacking": {}}
    return known.model_copy(update=changes) if changes else known


def _next_by(known: TableHours, span: HourSpan, now_ms: int) -> int:
    """Return the hour that is due next, of what was found while the clock was ahead."""
    present = span.number_at(now_ms)
    if not known.announced:
        return present
    told = [span.bounds_ms(one.hour)[0] // span.length_ms for one in known.announced if one.announced_at_ms <= now_ms]
    return min(present, max(told) + 1 if told else span.number_at(now_ms - _TOLD_AGAIN_MS))


def with_rows(known: TableHours, span: HourSpan, sight: TableSight, now_ms: int) -> TableHours:
    """Return what is known after the rows that a look found.

    Args:
        known: After the look before.
        span: What an hour is.
        sight: The look.
        now_ms: Its time.
    """
    oldest = known.next_hour - REMEMBERED_HOURS
    if sight.touched is not None:
        hours = span.numbers_of(sight.touched)
    elif sight.landed == known.landed and not sight.is_put_back:
        hours = frozenset()
    else:  # Nobody can say which hours these rows touched: each that was announced may be.
        names = {one.hour for one in known.announced}
        hours = frozenset(n for n in range(oldest, known.next_hour) if span.key(n) in names)
    touched = tuple(sorted({*known.touched, *(hour for hour in hours if oldest <= hour < known.next_hour)}))
    since = None if not touched else known.touched_since_ms if known.touched_since_ms is not None else now_ms
    cut_off = known.cut_off
    if cut_off is not None and any(cut_off.topic_ids.get(topic, own) != own for topic, own in sight.topic_ids.items()):
        cut_off = None  # Its topic was recreated since: nobody can land up to its ends any more.
    changes = {
        "cut_off": cut_off,
        "touched": touched,
        "touched_since_ms": since,
        "commit": sight.commit,
        "landed": sight.landed,
    }
    return known.model_copy(update=changes)


def needs_cut_off(known: TableHours, span: HourSpan, now_ms: int) -> bool:
    """Return whether Kafka's ends are to be asked: an hour is over, or rows came late and others may follow no longer.

    Args:
        known: What is known of the table.
        span: What an hour is.
        now_ms: The time.
    """
    if known.cut_off is not None:
        return False
    is_late = known.touched_since_ms is not None and now_ms >= known.touched_since_ms + span.grace_ms
    return is_late or now_ms >= span.due_ms(known.next_hour)


def decide(known: TableHours, span: HourSpan, sight: TableSight, now_ms: int, last_number: int) -> TableHours:
    """Return what is known after the announcements that are due; without a cut-off, or before it is reached, there is none.

    Args:
        known: After ``with_rows`` of the same look.
        span: What an hour is.
        sight: The look.
        now_ms: Its time.
        last_number: The highest number of an announcement of the pipeline so far.
    """
    if known.cut_off is None:
        return known
    lacking = known.cut_off.lacking(sight.reached, sight.gaps, sight.topic_ids)
    if lacking:
        return known.model_copy(update={"lacking": lacking})
    next_hour = max(known.next_hour, span.last_due(known.cut_off.taken_at_ms) + 1)
    oldest = max(known.next_hour, next_hour - REMEMBERED_HOURS)
    due = [*known.touched, *range(oldest, next_hour)]
    # Numbers follow the clock, so that a state that was lost, or taken back, does not give one twice.
    first = max(last_number + 1, now_ms)
    announced = {one.hour for one in known.announced}
    new = tuple(
        Announcement(
            hour=span.key(hour),
            number=first + at,
            version=sight.version,
            further=hour < known.next_hour or span.key(hour) in announced,
            announced_at_ms=now_ms,
        )
        for at, hour in enumerate(due)
    )
    again = {one.hour for one in new}
    kept = (*(one for one in known.announced if one.hour not in again), *new)[-REMEMBERED_HOURS:]
    return known.model_copy(
        update={
            "next_hour": next_hour,
            "touched": (),
            "touched_since_ms": None,
            "cut_off": None,
            "lacking": {},
            "announced": kept,
        }
    )


def last_number(hours: CompleteHours) -> int:
    """Return the highest number of an announcement; 0 without any."""
    return max((one.number for table in hours.tables.values() for one in table.announced[-1:]), default=0)


def after(hours: CompleteHours, table: str, number: int) -> list[Announcement]:
    """Return the announcements of a table with a higher number, in their order.

    Args:
        hours: The state.
        table: Id of the table.
        number: Of the last one that is known.
    """
    known = hours.tables.get(table)
    return [one for one in known.announced if one.number > number] if known is not None else []
