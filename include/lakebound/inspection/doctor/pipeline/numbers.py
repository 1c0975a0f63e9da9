"""The numbers that warn before something fails, from the facts alone. Pure; None: not known, or nothing to measure.

*Time to data loss* is how long the stream could stand still from now on: per partition in which records wait, the least of

- by age: (timestamp of the record at the mark + ``retention.ms``) - now;
- by size, where ``retention.bytes`` is set: (mark - earliest offset) / (records produced per second over the last 10 minutes):
  once a log is full, its beginning moves as fast as its end.

Kafka deletes whole segments, so the records live longer rather than shorter. Where nothing waits, nothing can be lost.

*Recovery debt* is what a crash now would have read again: from the lowest mark of the tables to the highest mark that a table
or the application has. The batch in flight is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.kafka_look import waiting_places
from lakebound.ledger.marks import debt, highest, lag
from lakebound.spec.real_time import has_both_ends
from lakebound.spec.to_topics import is_topic


def numbers_of(facts: PipelineFacts) -> dict[str, float | None]:
    """Return every number; its name has the unit."""
    return {
        "lag_records": lag_records(facts),
        "lag_seconds": lag_seconds(facts),
        "seconds_to_data_loss": seconds_to_data_loss(facts),
        "recovery_debt_records": recovery_debt_records(facts),
        "seconds_since_commit": seconds_since_commit(facts),
        "checkpoint_bytes": None if facts.scratch.exists is None else facts.scratch.bytes,
        "lease_age_seconds": lease_age_seconds(facts),
        "clock_difference_seconds": clock_difference_seconds(facts),
    }


def lag_records(facts: PipelineFacts) -> int | None:
    """Return how many offsets the lowest marks of the tables are behind Kafka's ends."""
    return lag(facts.lowest_marks(), {topic: known.latest for topic, known in facts.kafka.topics.items() if known is not None})


def lag_seconds(facts: PipelineFacts) -> float | None:
    """Return the age of the oldest waiting record; 0 if no record waits."""
    if not facts.lowest_marks():
        return None
    if not waiting_places(facts.kafka, facts.lowest_marks()):
        return 0.0
    ages = [facts.now - waiting.timestamp_ms / 1000 for waiting in facts.kafka.waiting.values() if waiting.timestamp_ms]
    return max((0.0, *ages)) if ages else None


def seconds_to_data_loss(facts: PipelineFacts) -> float | None:
    """Return how long the stream can stop before retention deletes the first record that is not landed."""
    left = list(_seconds_left(facts))
    return min(left) if left else None


def _seconds_left(facts: PipelineFacts) -> Iterator[float]:
    marks = facts.lowest_marks()
    for (topic, partition), waiting in facts.kafka.waiting.items():
        known, retention = facts.kafka.topics.get(topic), facts.kafka.retention.get(topic)
        if known is None or retention is None:
            continue
        if retention.milliseconds is not None and waiting.timestamp_ms is not None:
            yield max(0.0, (waiting.timestamp_ms + retention.milliseconds) / 1000 - facts.now)
        if retention.bytes is not None and waiting.per_second > 0:
            ahead = marks.get(topic, {}).get(partition, 0) - known.earliest.get(partition, 0)
            yield max(0.0, ahead / waiting.per_second)


def recovery_debt_records(facts: PipelineFacts) -> int:
    """Return how many offsets a start would read again now."""
    read = facts.progress.high_water_marks if facts.progress is not None else {}
    return debt(facts.lowest_marks(), highest([read, *facts.table_marks()]))


def seconds_since_commit(facts: PipelineFacts) -> float | None:
    """Return the time since the newest commit with rows, in any target; None where there was none.

    Where topics are written in real time and tables in batches beside them, it is the older one of the newest of both: one
    query may have stopped landing while the other goes on.
    """
    newest = [max(times, default=None) for times in _commit_times(facts)]
    if None in newest:
        return None
    return max(0.0, facts.now - min(at for at in newest if at is not None))


def _commit_times(facts: PipelineFacts) -> list[list[float]]:
    """Return when targets were committed to, by the queries that do it."""
    freshness = facts.wanted_freshness or facts.spec.freshness
    groups: list[list[float]] = [[], []]
    for table in facts.targets:
        if table.committed_at_ms is not None:
            groups[is_topic(table.table)].append(table.committed_at_ms / 1000)
    return groups if has_both_ends(facts.spec, freshness) else [[*groups[0], *groups[1]]]


def lease_age_seconds(facts: PipelineFacts) -> float | None:
    """Return the time since the holder's last heartbeat; None if nobody holds the lease."""
    if facts.lease is None or facts.lease.released:
        return None
    return facts.lease.age_seconds(facts.now)


def clock_difference_seconds(facts: PipelineFacts) -> float | None:
    """Return the least time by which clocks differ, as far as it can be observed.

    The holder writes its clock into the lease, the file system the time of the writing; and nothing that this machine reads was
    made in its future. Where the holder's clock is behind, only the lease shows it.
    """
    lease = facts.lease
    ahead = [0.0]
    if lease is not None and facts.lease_live and facts.lease_written_at is not None:
        ahead.append(abs(facts.lease_written_at - lease.heartbeat_at))
    if lease is not None:
        ahead.append(lease.heartbeat_at - facts.now)
    ahead += [table.committed_at_ms / 1000 - facts.now for table in facts.targets if table.committed_at_ms]
    ahead += [table.newest_record_ms / 1000 - facts.now for table in facts.targets if table.newest_record_ms]
    return max(ahead) if lease is not None or len(ahead) > 1 else None
