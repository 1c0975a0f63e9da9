"""Rules about Kafka and a foreign checkpoint: can Kafka still deliver the records? Pure; no findings without Kafka's facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakebound.inspection.doctor.diagnosis import DoctorVerdict, RuleFinding
from lakebound.inspection.doctor.foreign.facts import TopicSeen
from lakebound.inspection.doctor.foreign.standing import Standing
from lakebound.landing.checkpoint.log_files import OffsetsFile
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import loss

RUNBOOK = "foreign-checkpoint-kafka"


def going_on_from(s: Standing) -> OffsetsFile | None:
    """Return where the next start begins: the end of the newest batch in the table, else of the newest sound offsets file."""
    return s.checkpoint.sound_offsets(s.lowest) or s.checkpoint.sound_offsets(s.planned)


def topic_gone(s: Standing) -> RuleFinding | None:
    """E14: a topic, or a partition of it, is not on the broker."""
    gone = sorted(
        f"{topic}/{partition}" for topic, partition, _, seen in _stored(s) if seen is None or partition not in seen.latest
    )
    if not gone:
        return None
    return _finding(
        "topic-gone",
        "needs_person",
        f"{', '.join(gone)} is not on the broker: this is another broker, the topic was deleted, or it was created again with "
        "fewer partitions. Spark fails with KAFKA_DATA_LOSS.PARTITIONS_DELETED; with failOnDataLoss=false it silently skips "
        "records",
        s.evidence(gone=gone),
    )


def stored_offset_beyond_end(s: Standing) -> RuleFinding | None:
    """E14, E16: the checkpoint has offsets after the end of the topic."""
    beyond = {f"{t}/{p}": (stored, seen.latest[p]) for t, p, stored, seen in _known(s) if stored > seen.latest[p]}
    planned = s.checkpoint.sound_offsets(s.planned)
    if planned is not None and s.kafka_topics is not None:
        ends = ((topic, p, offset, s.kafka_topics.get(topic)) for (_, topic, p), offset in planned.marks.items())
        beyond |= {f"{t}/{p}": (end, seen.latest[p]) for t, p, end, seen in ends if seen and end > seen.latest.get(p, end)}
    if not beyond:
        return None
    shown = ", ".join(f"{name} (stored {stored}, end {latest})" for name, (stored, latest) in sorted(beyond.items()))
    return _finding(
        "stored-offset-beyond-end",
        "needs_person",
        f"the checkpoint has offsets that Kafka does not have: {shown}. The topic was created again or truncated, it is "
        "another broker, or the file was changed. Spark fails with KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED; with "
        "failOnDataLoss=false it skips records. A new topic needs a new checkpoint that starts at earliest",
        s.evidence(beyond=beyond),
    )


def topic_recreated(s: Standing) -> RuleFinding | None:
    """E14 without an error: the topic was created again, and is already longer than the stored offset."""
    younger = {
        f"{t}/{p}": (seen.younger_from[p], stored)
        for t, p, stored, seen in _known(s)
        if seen.younger_from.get(p, stored) < stored
    }
    if not younger:
        return None
    shown = ", ".join(f"{name} [{start}, {end})" for name, (start, end) in sorted(younger.items()))
    return _finding(
        "topic-recreated",
        "needs_person",
        f"the checkpoint has read {shown}, but Kafka's records at these offsets are newer than that batch: the topic was "
        "created again (or its producers' clocks are wrong). Spark continues without an error and skips these records. A new "
        "topic needs a new checkpoint that starts at earliest",
        s.evidence(younger=younger, topic_ids={topic: seen.topic_id for topic, _, _, seen in _known(s)}),
    )


def retention_passed(s: Standing) -> RuleFinding | None:
    """E13: Kafka has deleted records that were not read yet."""
    lost = tuple(
        LostRange(topic=t, partition=p, start=stored, end=seen.earliest[p])
        for t, p, stored, seen in _known(s)
        if stored < seen.earliest[p] and stored <= seen.latest[p]
    )
    if not lost:
        return None
    return _lossy(
        "retention-passed",
        f"Kafka has deleted {loss(lost)} offsets that were not landed; Spark fails with KAFKA_DATA_LOSS. Look for these "
        "records elsewhere; to continue without them, accept the loss and start a new checkpoint at earliest. "
        "failOnDataLoss=false would hide this loss and every later one",
        s.evidence(),
        lost,
    )


def partitions_added(s: Standing) -> RuleFinding | None:
    """E15: a partition that the query has not read yet no longer begins at 0."""
    stored = {(topic, partition) for topic, partition, _, _ in _stored(s)}
    topics = {topic: seen for topic, _, _, seen in _known(s)}
    lost = tuple(
        LostRange(topic=topic, partition=partition, start=0, end=earliest)
        for topic, seen in sorted(topics.items())
        for partition, earliest in sorted(seen.earliest.items())
        if (topic, partition) not in stored and earliest > 0
    )
    if not lost:
        return None
    return _lossy(
        "partitions-added",
        "partitions were added, and Kafka has already deleted their first records; Spark fails with "
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO. To continue, accept the loss and start a new checkpoint",
        s.evidence(),
        lost,
    )


def _stored(s: Standing) -> Iterator[tuple[str, int, int, TopicSeen | None]]:
    """Yield topic, partition, the next offset to read, and Kafka's facts of the topic; nothing without Kafka's facts."""
    found = going_on_from(s)
    if found is None or s.kafka_topics is None:
        return
    for (_, topic, partition), offset in sorted(found.marks.items()):
        yield topic, partition, offset, s.kafka_topics.get(topic)


def _known(s: Standing) -> Iterator[tuple[str, int, int, TopicSeen]]:
    for topic, partition, offset, seen in _stored(s):
        if seen is not None and partition in seen.latest:
            yield topic, partition, offset, seen


def _lossy(rule: str, sentence: str, evidence: Mapping[str, object], lost: tuple[LostRange, ...]) -> RuleFinding:
    return _finding(rule, "needs_approval", sentence, evidence).model_copy(update={"loses": lost})


def _finding(rule: str, verdict: DoctorVerdict, sentence: str, evidence: Mapping[str, object]) -> RuleFinding:
    return RuleFinding(rule=rule, verdict=verdict, sentence=sentence, runbook=RUNBOOK, evidence=dict(evidence))
