"""What a start would do to a world: the real opening, starting offsets and trimming, on tables in memory; and the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import count_last_end, read_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.last_end import read_last_end
from lakebound.errors import BrokerUnavailableError, CrashLoopError, LeaseHeldError, MissingTopicError
from lakebound.ledger.entry import Offsets, missing
from lakebound.ledger.topics import TopicFacts
from lakebound.tables.landed import newest_landed_epoch
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.landing.trimming import group_by_missing, range_between
from lakebound_spark.stream.opening import open_targets, start_offsets, take_lease
from tests.support.tables.local_tables import SCHEMA
from tests.support.worlds.memory_tables import OneRowFile, Row, Stored
from tests.support.worlds.pipeline_worlds import TOPIC, World, is_bad


@dataclass(frozen=True)
class Start:
    """How a start ends.

    Attributes:
        refusal: The error that kept it from landing, None when it landed everything that Kafka has.
        waits: It waits for Kafka.
        missing: Rows that a table lacks, of all records that were ever produced to the present topic.
        doubled: Rows that a table has more than once.
    """

    refusal: Exception | None = None
    waits: bool = False
    missing: int = 0
    doubled: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether everything is there, once."""
        return self.refusal is None and not self.missing and not self.doubled


def start(world: World) -> Start:
    """Start an application, land everything, and compare with what was produced."""
    try:
        _land(world)
    except BrokerUnavailableError:
        return Start(waits=True)
    except Exception as exc:
        return Start(refusal=exc)
    known = world.topics[TOPIC]
    assert known is not None
    return _judge(world, known)


def _land(world: World) -> None:
    control, run = world.control, world.run()
    living = living_submission(control)  # what every starter asks first
    if living is not None:
        raise LeaseHeldError("orders", living.app_id, 0, 0.0)
    changed_at = read_desired(control).since
    last = read_last_end(control)
    lease = take_lease(run)
    if last is not None and last.is_barren:
        last = replace(last, landed_epoch=newest_landed_epoch(world.lake.open(table, run.places) for table in run.spec.tables))
    loop = count_last_end(read_crash_loop(control), last, changed_at)
    if loop.is_over_limit(run.spec.limits.max_failed_starts):
        raise CrashLoopError("orders", loop.reason)
    facts = _ask_kafka(world)
    writer = Writer("orders", lease.epoch, lambda: None, 2)
    schemas = {table.id: SCHEMA for table in (*run.spec.tables, run.spec.quarantine_table)}
    targets, quarantine = open_targets(run, schemas, writer, facts)
    begin = start_offsets(targets, quarantine, facts)
    wanted = range_between(begin, {TOPIC: facts[TOPIC].latest}, {TOPIC: facts[TOPIC].topic_id})
    for offsets, members in group_by_missing(targets, wanted):
        _land_group(offsets, members, quarantine, writer)


def _land_group(offsets: Offsets, members: list[Target], quarantine: Target, writer: Writer) -> None:
    """As ``BatchLander`` does: bad records first, of what the quarantine does not hold."""
    rest = missing(offsets, quarantine.coverage)
    if rest:
        quarantine.commit(writer, rest, Counts(read=1, quarantined=1, rows=1), _rows(rest, bad=True))  # type: ignore[arg-type]
    for target in members:
        target.commit(writer, offsets, Counts(read=1, landed=1, rows=1), _rows(offsets, bad=False), Origin(lane="driver"))  # type: ignore[arg-type]


def _ask_kafka(world: World) -> dict[str, TopicFacts]:
    if world.look.get("problem") == "unavailable":
        raise BrokerUnavailableError("127.0.0.1:1", "away")
    if world.look.get("problem"):
        raise PermissionError("no secret")
    known = world.topics.get(TOPIC)
    if known is None:
        raise MissingTopicError(TOPIC, "127.0.0.1:1")
    return {TOPIC: known}


def _rows(offsets: Offsets, *, bad: bool) -> list[OneRowFile]:
    return [
        OneRowFile((topic, held.topic_id, partition, offset))
        for topic, held in offsets.items()
        for partition, intervals in held.partitions.items()
        for first, last in intervals
        for offset in range(first, last)
        if is_bad(offset) == bad
    ]


def _judge(world: World, known: TopicFacts) -> Start:
    lacking = doubled = 0
    for stored, bad in [(table, False) for table in world.targets] + [(world.quarantine, True)]:
        wanted = Counter(
            (TOPIC, known.topic_id, p, o) for p, latest in known.latest.items() for o in range(latest) if is_bad(o) == bad
        )
        found = _rows_of(stored)
        lacking += sum((wanted - found).values())
        doubled += sum(count - 1 for count in found.values())
    return Start(missing=lacking, doubled=doubled)


def _rows_of(stored: Stored) -> Counter[Row]:
    return stored.rows()
