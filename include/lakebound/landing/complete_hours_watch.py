"""Finds, beside a stream, which hours of its tables are complete, and writes that down for Airflow.

It reads only what stands in the ledgers and what Kafka says of its ends, so it does not matter which application landed the
rows, or that one was killed: the next one goes on where the file ends. What could not be found out is tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from lakebound.control.complete_hours import (
    CompleteHours,
    CutOff,
    TableHours,
    TableSight,
    by_this_clock,
    decide,
    first_look,
    last_number,
    needs_cut_off,
    with_rows,
)
from lakebound.control.complete_hours_file import read_complete_hours, write_complete_hours
from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError, LeaseLostError
from lakebound.landing.table_hours import sight_of
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.complete_hours import CompleteHoursSpec
from lakebound.spec.pipeline import KAFKA_TIMESTAMP, PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

log = logging.getLogger(__name__)

_WAITING_SECONDS = 2.0
"""Between looks while an hour is over and its last records land."""
_RESTING_SECONDS = 30.0
_WRITE_SECONDS = 60.0
"""How old the file gets while nothing changes, so that it shows whether anybody still looks."""


class CompleteHoursKeeper:
    """Looks at the tables of one pipeline; used by one thread."""

    def __init__(
        self,
        spec: PipelineSpec,
        wanted: CompleteHoursSpec,
        places: Places,
        control: ControlFolder,
        ends: Callable[[], Mapping[str, TopicFacts]],
        check_lease: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read nothing yet.

        Args:
            spec: The pipeline.
            wanted: Its block ``complete_hours``.
            places: Where its tables are.
            control: Its folder of state.
            ends: Asks Kafka for the topics, and ends that count open transactions.
            check_lease: Raises LeaseLostError once another application writes for the pipeline.
            clock: Epoch seconds.
        """
        self._spec = spec
        self._places = places
        self._control = control
        self._ends = ends
        self._check_lease = check_lease
        self._clock = clock
        self._fresh = CompleteHours(unit=wanted.unit, grace_ms=wanted.grace_ms, column=wanted.column or KAFKA_TIMESTAMP)
        self._hours: CompleteHours | None = None

    def look(self) -> CompleteHours:
        """Look at all tables, write down what changed, and return what is known.

        Raises:
            LakeboundError: A table or Kafka could not be read.
            LeaseLostError: Another application writes for the pipeline.
        """
        before = self._hours or self._known()
        sights = {one.id: self._sight(one.id, before) for one in self._spec.tables}
        now_ms = round(self._clock() * 1000)
        found = {name: self._after_rows(before, name, sight, now_ms) for name, sight in sights.items() if sight is not None}
        if any(needs_cut_off(table, before.span, now_ms) for table in found.values()):
            found = self._cut_off(found, before, now_ms)
        number = last_number(before)
        for name, table in found.items():
            sight = sights[name]
            assert sight is not None
            found[name] = decide(table, before.span, sight, now_ms, number)
            number = max([number, *(one.number for one in found[name].announced[-1:])])
        hours = before.model_copy(update={"tables": {**before.tables, **found}})
        if hours != before or abs(now_ms - before.looked_at_ms) > _WRITE_SECONDS * 1000:  # the clock may have been ahead
            hours = hours.model_copy(update={"looked_at_ms": now_ms})
            self._check_lease()
            write_complete_hours(self._control, hours)
        self._hours = hours
        return hours

    def pause_seconds(self) -> float:
        """Return how long to wait before the next look."""
        hours = self._hours
        if hours is None or not hours.tables or any(table.cut_off is not None for table in hours.tables.values()):
            return _WAITING_SECONDS
        span, now_ms = hours.span, self._clock() * 1000
        due_ms = min(
            min(span.due_ms(table.next_hour), (table.touched_since_ms or float("inf")) + span.grace_ms)
            for table in hours.tables.values()
        )
        return max(0.2, min(_RESTING_SECONDS, max(0.5, span.grace_ms / 4000), (due_ms - now_ms) / 1000))

    def _known(self) -> CompleteHours:
        """Return what was written down of the pipeline as it is now; nothing of it counts for hours of another length.

        Kafka's ends are asked again where the topics are others: of one that is read no longer nothing more lands.
        """
        try:
            known = read_complete_hours(self._control)
        except ValueError as exc:
            log.error("complete hours: the file cannot be read; it starts again with the current hour: %s", exc)
            return self._fresh
        if known is None or known.unit != self._fresh.unit:
            return self._fresh
        tables = {one.id: known.tables[one.id] for one in self._spec.tables if one.id in known.tables}
        for name, table in tables.items():
            if table.cut_off is not None and set(table.cut_off.ends) != set(self._spec.topics):
                tables[name] = table.model_copy(update={"cut_off": None, "lacking": {}})
        return self._fresh.model_copy(update={"tables": tables, "looked_at_ms": known.looked_at_ms})

    def _sight(self, name: str, before: CompleteHours) -> TableSight | None:
        table = open_table(next(one for one in self._spec.tables if one.id == name), self._places)
        if not table.exists():
            return None
        table.read_ledger()
        return sight_of(table.entries(), before.tables.get(name), before.column)

    def _after_rows(self, before: CompleteHours, name: str, sight: TableSight, now_ms: int) -> TableHours:
        known = before.tables.get(name)
        if known is None:
            return first_look(before.span, sight, now_ms)
        current = by_this_clock(known, before.span, now_ms)
        if current.next_hour < known.next_hour:
            next_one, was = before.span.key(current.next_hour), before.span.key(known.next_hour)
            log.warning("complete hours of %s: the clock has gone back, so %s is due next, and not %s", name, next_one, was)
        return with_rows(current, before.span, sight, now_ms)

    def _cut_off(self, found: Mapping[str, TableHours], before: CompleteHours, now_ms: int) -> dict[str, TableHours]:
        known = self._ends()
        cut_off = CutOff(
            taken_at_ms=now_ms,
            ends={topic: dict(facts.latest) for topic, facts in known.items()},
            topic_ids={topic: facts.topic_id for topic, facts in known.items()},
        )
        return {
            name: table.model_copy(update={"cut_off": cut_off}) if needs_cut_off(table, before.span, now_ms) else table
            for name, table in found.items()
        }


class CompleteHoursWatch:
    """A thread that looks now and then, as long as the application runs. Nothing here can stop a stream by failing."""

    def __init__(self, keeper: CompleteHoursKeeper) -> None:
        self._keeper = keeper
        self._ended = threading.Event()
        self._is_lost = False
        self._said = ""
        self._thread = threading.Thread(target=self._loop, name="complete-hours", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop the thread and look once more: an application that runs now and then lives for less than an hour."""
        self._ended.set()
        self._thread.join(timeout=15)
        if not self._thread.is_alive():
            self._look()

    def _loop(self) -> None:
        self._look()
        while not self._ended.wait(self._keeper.pause_seconds()):
            self._look()

    def _look(self) -> None:
        if self._is_lost:
            return
        try:
            self._keeper.look()
            self._said = ""
        except LeaseLostError:
            self._is_lost = True
        except (LakeboundError, OSError, ValueError) as exc:
            if str(exc) != self._said:
                log.warning("complete hours cannot be determined now; this is tried again: %s", exc)
            self._said = str(exc)
        except Exception:
            log.exception("complete hours cannot be determined now; this is tried again")
