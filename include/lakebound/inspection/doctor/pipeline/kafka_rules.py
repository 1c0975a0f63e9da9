"""Rules about what Kafka still has of what the ledgers expect: each looks at the facts and says what it found. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.control import situations
from lakebound.errors import BrokerUnavailableError, error_named
from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.wording import needs_approval, needs_person, ranges, starting
from lakebound.ledger.entry import high_water_marks
from lakebound.ledger.intervals import gaps, subtract, total
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import loss, passed_by_retention


def broker_unavailable(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The application waits until an outage ends; when it has waited too long and failed, a person is asked."""
    if facts.kafka.problem != "unavailable":
        return
    waited = facts.outcome is not None and issubclass(error_named(facts.outcome.error_class), BrokerUnavailableError)
    if facts.living is None and waited:
        sentence = (
            f"{facts.kafka.sentence}; the last application failed after {facts.spec.limits.outage_seconds:.0f} s of waiting"
        )
        yield needs_person("broker-unavailable", sentence, "broker-unavailable")
        return
    sentence = f"{facts.kafka.sentence}; an application waits until Kafka answers; no record is lost until retention deletes it"
    yield starting("broker-unavailable", sentence, "broker-unavailable")


def kafka_refused(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The secret is not where the connection says, or Kafka does not let the doctor look."""
    if facts.kafka.problem in ("missing_secret", "refused"):
        yield needs_person("kafka-refused", facts.kafka.sentence, "missing-secret")


def topic_missing(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A topic of the pipeline is not on the broker: deleted, or never created. For some time the application waits for it."""
    progress = facts.own_progress
    if progress is not None and situations.awaits_topic(progress, facts.now):
        return
    for topic, known in facts.kafka.topics.items():
        if known is not None:
            continue
        landed = {
            table.table: high_water_marks(table.coverage).get(topic) for table in facts.targets if topic in table.coverage
        }
        servers, pipeline = facts.spec.connection.bootstrap_servers, facts.spec.pipeline
        found = situations.topic_missing([topic], servers, pipeline, [topic] if landed else [])
        # Nobody has started it yet: who creates topics before the first start has done nothing wrong.
        build = needs_person if facts.has_run else starting
        yield build("topic-missing", str(found), "topic-missing", landed=landed)


def topic_recreated(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A topic has another id than the one whose offsets the ledgers hold, whether or not it has grown past them."""
    for topic, known in facts.kafka.topics.items():
        if known is None:
            continue
        others = {
            table.table: table.coverage[topic].topic_id
            for table in facts.tables
            if topic in table.coverage and table.coverage[topic].topic_id != known.topic_id
        }
        if not others:
            continue
        grown = _grown_past(facts, topic)
        sentence = (
            f"topic {topic!r} was deleted and created again: the ledgers have offsets of topic id "
            f"{', '.join(sorted(set(others.values())))}, the broker has topic id {known.topic_id}"
            + ("; it is already longer than the landed offsets, so Spark alone would silently skip its start" if grown else "")
            + ". Records of the old topic that were not landed are lost; the new topic can be landed from its beginning"
        )
        yield needs_approval(
            "topic-recreated", sentence, "topic-recreated", ledgers=others, broker=known.topic_id, grown_past=grown
        )


def retention_passed(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Kafka has deleted records that no table holds: exactly those between the lowest mark and the earliest offset."""
    lost = passed_by_retention(facts.lowest_marks(), facts.kafka.topics)
    if lost:
        sentence = (
            f"Kafka's retention deleted {loss(lost)} offsets before they were landed: {ranges(lost)}. An application refuses "
            f"to start until a person accepts the loss"
        )
        yield needs_approval("retention-passed", sentence, "retention-passed", loses=lost)


def unseen_partition_cut(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A partition was added and lost its first records before it was ever read: a start would silently begin after them."""
    lost: dict[tuple[str, int], LostRange] = {}
    for table in facts.targets:
        for topic, offsets in table.coverage.items():
            known = facts.kafka.topics.get(topic)
            if known is None or known.topic_id != offsets.topic_id or not offsets.partitions:
                continue
            for partition, earliest in known.earliest.items():
                if partition not in offsets.partitions and earliest > 0:
                    lost[topic, partition] = LostRange(topic=topic, partition=partition, start=0, end=earliest)
    if lost:
        sentence = (
            f"partitions were added to the topic, and Kafka deleted their first records before any of them was landed: "
            f"{ranges(lost.values())}"
        )
        yield needs_approval("unseen-partition-cut", sentence, "retention-passed", loses=lost.values())


def offsets_beyond_end(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A ledger has offsets that Kafka does not have: Kafka would use them again for other records."""
    for table, topic, partition, intervals in facts.held():
        known = facts.kafka.topics.get(topic)
        if known is None or not intervals:
            continue
        mark, latest = intervals[-1][1], known.latest.get(partition)
        if latest is None or mark > latest:
            has = "there is no such partition" if latest is None else f"Kafka ends at {latest}"
            sentence = (
                f"the ledger of table {table.table} has offsets of topic {topic!r} partition {partition} up to {mark}, but "
                f"{has}: the topic was truncated (unclean leader election, a restored backup), or this is another broker"
            )
            evidence = {"table": table.table, "ledger": mark, "kafka": latest}
            yield needs_person("offsets-beyond-end", sentence, "offsets-beyond-end", **evidence)


def interior_gap(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A gap below a table's next offset: a start continues above it, so only a replay lands it."""
    lost: dict[tuple[str, int, int], LostRange] = {}
    holes: dict[str, list[tuple[int, int]]] = {}
    replays = 0
    for table, topic, partition, intervals in facts.held():
        known = facts.kafka.topics.get(topic)
        if known is None or not gaps(intervals):
            continue
        holes[f"{table.table} {topic}/{partition}"] = list(gaps(intervals))
        earliest = known.earliest.get(partition, 0)
        replays += total(subtract(gaps(intervals), ((0, earliest),)))
        for start, end in gaps(intervals):
            if start < earliest:
                lost[topic, partition, start] = LostRange(topic=topic, partition=partition, start=start, end=min(end, earliest))
    if holes:
        sentence = (
            f"there are gaps below the next offset, and no start lands them: {_holes(holes)}. "
            f"A replay can land {replays} of these offsets" + (f"; Kafka no longer has {ranges(lost.values())}" if lost else "")
        )
        yield needs_approval("interior-gap", sentence, "interior-gap", loses=lost.values(), replays=replays, gaps=holes)


def _holes(holes: dict[str, list[tuple[int, int]]]) -> str:
    return "; ".join(f"{where} {' '.join(f'[{start}, {end})' for start, end in found[:4])}" for where, found in holes.items())


def _grown_past(facts: PipelineFacts, topic: str) -> bool:
    """Whether the new topic has every landed offset of the old one: then offsets alone do not show the change."""
    known = facts.kafka.topics[topic]
    marks = [high_water_marks(table.coverage).get(topic, {}) for table in facts.targets]
    return known is not None and all(
        known.latest.get(partition, -1) >= mark for partitions in marks for partition, mark in partitions.items()
    )


KAFKA_RULES = (
    broker_unavailable,
    kafka_refused,
    topic_missing,
    topic_recreated,
    retention_passed,
    unseen_partition_cut,
    offsets_beyond_end,
    interior_gap,
)
