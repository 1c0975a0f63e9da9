"""Which hours are announced, over every order of records, commits, looks and lost looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.control.complete_hours import (
    Announcement,
    CompleteHours,
    CutOff,
    HourSpan,
    TableHours,
    TableSight,
    after,
    by_this_clock,
    decide,
    first_look,
    needs_cut_off,
    with_rows,
)
from lakebound.landing.table_hours import hours_of, sight_of
from lakebound.ledger.entry import Entry, TopicOffsets, decode, encode, new_commit_id
from lakebound.ledger.hours import HOUR_MS, REMEMBERED_HOURS, RowHours, hours_between, row_hours
from lakebound.ledger.intervals import merge
from lakebound.spec.pipeline import KAFKA_TIMESTAMP
from lakebound.tables.table import CommittedEntry

BEGIN = 490_000
"""Number of the hour in which the worlds begin."""
SPAN = HourSpan(unit="hour", grace_ms=300_000)


@dataclass
class World:
    """Two partitions of Kafka, a table with its entries, and what was announced of it; the clock is ``ahead_ms`` ahead."""

    now_ms: int = BEGIN * HOUR_MS
    ahead_ms: int = 0
    records: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: {0: [], 1: []})
    landed: dict[int, set[int]] = field(default_factory=lambda: {0: set(), 1: set()})
    entries: list[CommittedEntry] = field(default_factory=list)
    landed_at: list[dict[int, set[int]]] = field(default_factory=list)
    known: TableHours | None = None
    told: list[Announcement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commit({}, "open")

    def commit(self, landed: dict[int, int], kind: str = "land", left_out: int = 0) -> None:
        """Land that many records of each partition; so many before them are left out, as a gap in the coverage."""
        hours = []
        for partition, number in landed.items():
            first = max(self.landed[partition], default=-1) + 1 + left_out
            self.fill(hours, partition, range(first, min(first + number, len(self.records[partition]))))
        self.write(hours, kind)

    def replay(self, partition: int, number: int) -> None:
        """Land the first records of what was left out."""
        known, hours = self.landed[partition], list[int]()
        self.fill(hours, partition, [one for one in range(max(known, default=0)) if one not in known][:number])
        self.write(hours, "replay")

    def fill(self, hours: list[int], partition: int, offsets: Iterable[int]) -> None:
        """Land these offsets, and add the hours of their rows."""
        for one in offsets:
            hours.append(self.records[partition][one][1])
            self.landed[partition].add(one)

    def write(self, hours: list[int], kind: str) -> None:
        """Commit what was landed."""
        partitions = {p: merge([(0, 0), *((one, one + 1) for one in held)]) for p, held in self.landed.items()}
        entry = Entry.model_validate(
            {"kind": kind, "pipeline": "orders", "epoch": 1, "commit": new_commit_id(), "rows": len(hours)}
            | {"coverage": {"orders": TopicOffsets(topic_id="id", partitions=partitions)}}
            | {"hours": row_hours(KAFKA_TIMESTAMP, hours, self.now_ms)}
        )
        self.entries.insert(0, CommittedEntry(str(len(self.entries)), self.now_ms, entry))
        self.landed_at.append({partition: set(held) for partition, held in self.landed.items()})

    def look(self, *, is_lost: bool = False) -> None:
        """Look as the application does; what was found is lost where it is killed before it has written it down."""
        sight = sight_of(self.entries, self.known, KAFKA_TIMESTAMP)
        assert sight is not None
        now_ms = self.now_ms + self.ahead_ms
        if self.known is None:
            known = first_look(SPAN, sight, now_ms)
        else:
            known = with_rows(by_this_clock(self.known, SPAN, now_ms), SPAN, sight, now_ms)
        if needs_cut_off(known, SPAN, now_ms):
            ends = {"orders": {p: len(records) for p, records in self.records.items()}}
            known = known.model_copy(update={"cut_off": CutOff(taken_at_ms=now_ms, ends=ends, topic_ids={"orders": "id"})})
        number = max((one.number for one in known.announced), default=0)
        known = decide(known, SPAN, sight, now_ms, number)
        if is_lost:
            return
        self.told += [one for one in known.announced if one.number > number]
        self.known = TableHours.model_validate_json(known.model_dump_json(exclude_defaults=True))

    def take(self, what: str, one: int, two: int) -> None:
        """Take one of ``STEPS``."""
        if what == "append":
            self.records[one].append((self.now_ms, self.now_ms // HOUR_MS + two))
        elif what == "land":
            self.commit({one: two})
        elif what == "leap":
            self.commit({one: two}, left_out=2)
        elif what == "replay":
            self.replay(one, two)
        elif what == "carry":
            self.commit({}, "carry")
        elif what == "pass":
            self.now_ms += one * 60_000
        else:
            self.look(is_lost=bool(one))

    def check(self, first: int = 0) -> None:
        """Check that the version of each announcement holds all that Kafka had when the hour's grace was over."""
        numbers = {SPAN.key(number): number for number in range(BEGIN - 60, BEGIN + 200)}
        for one in self.told[first:]:
            due_ms = SPAN.due_ms(numbers[one.hour])
            for partition, records in self.records.items():
                had = sum(1 for appended_ms, _ in records if appended_ms < due_ms)
                assert self.landed_at[int(one.version)][partition] >= {*range(had)}, one
            assert one.announced_at_ms >= due_ms


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1), st.integers(-5, 1)),
        st.tuples(st.just("land"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("leap"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("replay"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("pass"), st.integers(1, 130), st.just(0)),
        st.tuples(st.just("look"), st.booleans(), st.just(0)),
        st.tuples(st.just("carry"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=examples(100))
@given(STEPS)
@example([*[("append", 0, 0)] * 4, ("leap", 0, 2), ("pass", 66, 0), ("look", False, 0), ("replay", 0, 2), ("look", False, 0)])
def test_no_hour_is_announced_too_early_none_is_missing_and_late_rows_are_told(steps: list[tuple[str, int, int]]) -> None:
    world = World()
    world.look()
    for step in steps:
        world.take(*step)
    check_to_the_end(world)


@settings(max_examples=20)
@given(STEPS, st.sampled_from([0.5, 2, 30, 9000]), st.booleans(), STEPS)
@example([("append", 0, 0), ("pass", 60, 0), ("land", 0, 1), ("look", False, 0)], 9000, True, [])
def test_a_clock_that_was_ahead_and_is_set_back_leaves_no_hour_out(
    before: list[tuple[str, int, int]], ahead_hours: float, from_the_first_look: bool, after_it: list[tuple[str, int, int]]
) -> None:
    world = World()
    if not from_the_first_look:
        world.look()
    world.ahead_ms = round(ahead_hours * HOUR_MS)
    world.look()
    for step in before:
        world.take(*step)
    # By then the true time may be where the wrong one was: nothing shows that this cut-off was taken too early.
    assume(world.known is None or world.known.cut_off is None or world.known.cut_off.taken_at_ms > world.now_ms)
    world.ahead_ms, told, begin = 0, len(world.told), world.now_ms // HOUR_MS if from_the_first_look else BEGIN
    # Announcements then begin with the present hour: of what was landed of earlier ones until now nothing is said.
    unsaid = len(world.entries) if from_the_first_look else 0
    world.look()
    for step in after_it:
        world.take(*step)
    check_to_the_end(world, told, begin, unsaid)


def check_to_the_end(world: World, first: int = 0, begin: int = BEGIN, unsaid: int = 0) -> None:
    """Land all, look until nothing is due, and check what was told.

    Args:
        first: Since this announcement nothing may be too early.
        begin: The hour with which announcements begin.
        unsaid: So many of the first entries are told of only from this hour on.
    """
    appended = max((ms for records in world.records.values() for ms, _ in records), default=world.now_ms)
    world.commit({0: 99, 1: 99})
    for partition in (0, 1):
        world.replay(partition, 99)
    for _ in range(4):
        world.look()
        world.now_ms += HOUR_MS + 300_000
    world.check(first)
    newest = {one.hour: int(one.version) for one in world.told}
    for hour in range(begin, appended // HOUR_MS + 1):
        assert SPAN.key(hour) in newest, "an hour without records is complete, too"
    for version, committed in enumerate(reversed(world.entries)):
        assert committed.entry.hours is not None
        for hour in hours_between(committed.entry.hours.intervals):
            if hour <= appended // HOUR_MS and (hour >= begin or version >= unsaid):
                assert newest[SPAN.key(hour)] >= version, "rows that nobody was told of"
    numbers = [one.number for one in world.told]
    assert numbers == sorted(set(numbers))


def sight(reached: int, *, version: str = "7", touched: frozenset[int] | None = frozenset(), landed: int = 0) -> TableSight:
    return TableSight(version, {"orders": {0: reached}}, {"orders": "id"}, "c", landed, touched)


def test_a_partition_that_lags_keeps_the_hour_open_and_is_named() -> None:
    cut_off = CutOff(taken_at_ms=SPAN.due_ms(BEGIN), ends={"orders": {0: 10, 1: 0}}, topic_ids={"orders": "id"})
    known = TableHours(next_hour=BEGIN, cut_off=cut_off)
    waiting = decide(known, SPAN, sight(8), SPAN.due_ms(BEGIN + 3), 0)
    assert (waiting.next_hour, waiting.lacking) == (BEGIN, {"orders": {0: 2}})
    done = decide(waiting, SPAN, sight(10), SPAN.due_ms(BEGIN + 3), 0)
    # Of the hours after it Kafka has not been asked yet.
    assert [one.hour for one in done.announced] == [SPAN.key(BEGIN)]
    assert needs_cut_off(done, SPAN, SPAN.due_ms(BEGIN + 3))


def test_a_gap_below_the_cut_off_keeps_the_hour_open_and_is_counted() -> None:
    """150 of the 300 offsets that Kafka had are there: the last ones, which a stream landed while a replay lands the others."""
    cut_off = CutOff(taken_at_ms=SPAN.due_ms(BEGIN), ends={"orders": {0: 300, 1: 0}}, topic_ids={"orders": "id"})
    known, later = TableHours(next_hour=BEGIN, cut_off=cut_off), SPAN.due_ms(BEGIN + 3)

    def look(*held: tuple[int, int]) -> TableHours:
        entry = Entry(kind="land", pipeline="orders", epoch=1, commit="c").model_copy(
            update={"coverage": {"orders": TopicOffsets(topic_id="id", partitions={0: merge(held), 1: ((0, 0),)})}}
        )
        found = sight_of([CommittedEntry("7", 0, entry)], known, KAFKA_TIMESTAMP)
        assert found is not None
        return decide(known, SPAN, found, later, 0)

    assert look((0, 0), (150, 300)).lacking == {"orders": {0: 150}}
    assert look((0, 100), (150, 290)).lacking == {"orders": {0: 60}}
    assert [one.hour for one in look((0, 300), (310, 320)).announced] == [SPAN.key(BEGIN)], "what came later is not waited for"
    assert [one.hour for one in look((120, 300)).announced] == [SPAN.key(BEGIN)], (
        "what lies before the table's start was never due"
    )


def test_offsets_of_another_incarnation_of_the_topic_do_not_count() -> None:
    cut_off = CutOff(taken_at_ms=SPAN.due_ms(BEGIN), ends={"orders": {0: 5}}, topic_ids={"orders": "new"})
    known = TableHours(next_hour=BEGIN, cut_off=cut_off)
    assert decide(known, SPAN, sight(99), SPAN.due_ms(BEGIN), 0).announced == ()
    assert with_rows(known, SPAN, sight(99), SPAN.due_ms(BEGIN)).cut_off is None


def test_where_the_history_is_gone_every_announced_hour_may_have_been_touched() -> None:
    told = tuple(Announcement(hour=SPAN.key(BEGIN + n), number=n, version="1", announced_at_ms=0) for n in range(3))
    known = TableHours(next_hour=BEGIN + 3, announced=told, landed=50)
    assert with_rows(known, SPAN, sight(9, touched=None, landed=50), 0).touched == (), "nothing landed since"
    assert with_rows(known, SPAN, sight(9, touched=None, landed=51), 0).touched == (BEGIN, BEGIN + 1, BEGIN + 2)


def test_a_day_is_24_hours_of_utc() -> None:
    span = HourSpan(unit="day", grace_ms=0)
    assert (span.key(span.number_at(BEGIN * HOUR_MS)), SPAN.key(BEGIN)) == ("2025-11-24", "2025-11-24T16")
    assert span.numbers_of({BEGIN, BEGIN + 7}) == {BEGIN // 24}
    assert span.numbers_of({BEGIN + 8}) == {BEGIN // 24 + 1}


def test_an_entry_tells_hours_briefly_whatever_stands_in_the_column() -> None:
    present, every_other = BEGIN * HOUR_MS, range(BEGIN - 1000, BEGIN, 2)
    told = row_hours("at", [0, 10**7, BEGIN + 5, *every_other], present)
    assert hours_between(told.intervals) >= set(every_other)
    assert min(hours_between(told.intervals)) >= BEGIN - REMEMBERED_HOURS
    assert len(told.intervals) <= 201
    assert row_hours("at", range(BEGIN - 168, BEGIN), present).intervals == ((BEGIN - 168, BEGIN),)
    entry = Entry(kind="land", pipeline="orders", epoch=1, commit="c", rows=1, hours=told)
    assert decode(encode(entry), "here") == entry


def test_what_an_entry_without_hours_says() -> None:
    entry = Entry(
        kind="land", pipeline="orders", epoch=1, commit="c", rows=1, timestamps_ms=(BEGIN * HOUR_MS, (BEGIN + 1) * HOUR_MS)
    )
    assert hours_of(entry, KAFKA_TIMESTAMP) == {BEGIN, BEGIN + 1}
    assert hours_of(entry, "at") is None
    other = entry.model_copy(update={"hours": RowHours(column="at", intervals=((3, 4),))})
    assert (hours_of(other, "at"), hours_of(other, KAFKA_TIMESTAMP)) == ({3}, None)
    assert hours_of(entry.model_copy(update={"rows": 0}), "at") == set()


def test_what_airflow_has_recorded_is_not_told_again() -> None:
    told = tuple(Announcement(hour=SPAN.key(n), number=n + 10, version="1", announced_at_ms=0) for n in range(3))
    hours = CompleteHours(tables={"delta:orders": TableHours(next_hour=3, announced=told)})
    assert [one.number for one in after(hours, "delta:orders", 10)] == [11, 12]
    assert after(hours, "delta:other", 0) == []
