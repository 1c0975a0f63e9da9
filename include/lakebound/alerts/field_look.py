"""Looks at a few of a topic's newest records for fields that the pipeline's schema does not name.

Whoever has the doctor look (the watch, the DAG ``checkpoint_health``) looks here, too: beside the stream, once an hour, within
bounds of records, bytes and seconds. A broker that does not answer is the doctor's to tell: nothing is said here then.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lakebound.alerts.doctor_findings import NEVER_STARTED
from lakebound.control.desired import read_desired
from lakebound.control.findings import Fact, Finding, Severity, replace_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.unknown_fields import (
    RUNBOOK,
    FieldsRecord,
    dropped_fields,
    read_record,
    record_after,
    schema_sign,
    sentence,
    write_record,
)
from lakebound.errors import LakeboundError
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_settings import consumer_config
from lakebound.landing.sampling import Range, choose_ranges
from lakebound.ledger.topics import PartitionId
from lakebound.spec.draft.unknown_fields import UnknownField, schema_of, unknown_fields
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import ValueSpec

SOURCE = "unknown_fields"
LOOK_EVERY_SECONDS = 3600.0
TIMEOUT_SECONDS = 5.0
_POLL_SECONDS = 0.2
_SILENT_RULES = frozenset({NEVER_STARTED, "broker-unavailable", "topic-missing", "topic-awaited"})
"""Findings of the doctor by which there is nothing to be read."""

ReadValues = Callable[[PipelineSpec], Sequence[bytes | None]]


@dataclass(frozen=True)
class Bounds:
    """Where a look ends.

    Attributes:
        records: Of all partitions together.
        bytes: Of the values.
        seconds: From the first poll.
    """

    records: int = 200
    bytes: int = 4 * 1024 * 1024
    seconds: float = 3.0


def look_at_fields(spec: PipelineSpec, control: ControlFolder, diagnosis: Diagnosis, read: ReadValues | None = None) -> None:
    """Look where a look is due, and write down which fields are dropped; what cannot be read leaves all as it was.

    Args:
        spec: The pipeline.
        control: Its state folder.
        diagnosis: What the doctor has just said of it.
        read: Reads the values of some records; default: the newest ones in Kafka.

    Raises:
        OSError: The state folder cannot be written.
    """
    now, record = time.time(), read_record(control)
    if schema_of(spec.value) is None or not read_desired(control).wants_app:
        replace_findings(control, SOURCE, ())
        return
    if is_due(record, schema_sign(spec), now) and not any(one.rule in _SILENT_RULES for one in diagnosis.findings):
        record = _looked(spec, record, read or newest_values, now) or record
        if record is not None:
            write_record(control, record)
    replace_findings(control, SOURCE, field_findings(dropped_fields(record, spec), spec.value, now))


def is_due(record: FieldsRecord | None, sign: str, now: float) -> bool:
    """Whether it is time to look: an hour after the last look, and at once when the schema was changed. Pure.

    Args:
        record: Of the looks before.
        sign: Of the schema as it is now.
        now: Epoch seconds.
    """
    return record is None or record.schema_sign != sign or not 0 <= now - record.looked_at < LOOK_EVERY_SECONDS


def field_findings(fields: Sequence[UnknownField], value: ValueSpec, now: float) -> tuple[Finding, ...]:
    """Return one finding of all fields that are dropped; none where none is. Pure."""
    if not fields:
        return ()
    evidence: dict[str, Fact] = {"fields": len(fields), "records": max(one.records for one in fields)}
    return (
        Finding(
            cause="unknown-fields",
            severity=Severity.WARNING,
            what=sentence(fields, value),
            since=now,
            evidence=evidence,
            runbook=RUNBOOK,
            done="the other fields of these records are landed",
        ),
    )


def _looked(spec: PipelineSpec, before: FieldsRecord | None, read: ReadValues, now: float) -> FieldsRecord | None:
    try:
        values = read(spec)
    except (LakeboundError, KafkaException):
        return None  # the doctor tells of a broker that does not answer, of logins and of rights
    found = unknown_fields(values, spec.value)
    return record_after(before, found, read=len(values), sign=schema_sign(spec), now=now)


def newest_values(spec: PipelineSpec) -> list[bytes | None]:
    """Return the values of some of the newest records; joins no group and commits no offset.

    Raises:
        LakeboundError: Kafka does not answer in time, or refuses.
        KafkaException: A record cannot be read.
    """
    facts = KafkaFacts(spec.connection, timeout_seconds=TIMEOUT_SECONDS).topics(spec.topics)
    known = {(name, p): (one.earliest[p], one.latest[p]) for name, one in facts.items() for p in one.latest}
    bounds = Bounds()
    ranges = choose_ranges(known, bounds.records, newest=True)
    if not ranges:
        return []
    consumer = make_consumer(
        {
            **consumer_config(spec.connection),
            "group.id": f"lakebound-doctor-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.message.max.bytes": 64 * 1024,
            "queued.max.messages.kbytes": 1024,
            "log_level": "0",
        }
    )
    try:
        return read_values(consumer, ranges, bounds)
    finally:
        consumer.close()


def read_values(
    consumer: Consumer, ranges: Mapping[PartitionId, Range], bounds: Bounds, clock: Callable[[], float] = time.monotonic
) -> list[bytes | None]:
    """Return the values of the records in some ranges, up to the bounds.

    Args:
        consumer: It is assigned to the ranges.
        ranges: Per topic and partition the first offset, and the one after the last.
        bounds: Where to end early.
        clock: Seconds.

    Raises:
        KafkaException: A partition cannot be read.
    """
    consumer.assign([TopicPartition(topic, partition, start) for (topic, partition), (start, _) in ranges.items()])
    left, values, size = {*ranges}, list[bytes | None](), 0
    most = Counter({place: end - start for place, (start, end) in ranges.items()})
    deadline = clock() + bounds.seconds
    while left and len(values) < bounds.records and size < bounds.bytes and clock() < deadline:
        message = consumer.poll(_POLL_SECONDS)
        if message is None:
            continue
        place = (str(message.topic()), int(message.partition() or 0))
        if (error := message.error()) is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            left.discard(place)
        elif place in left:
            values.append(message.value())
            size += len(values[-1] or b"")
            most[place] -= 1
            if most[place] <= 0 or int(message.offset() or 0) + 1 >= ranges[place][1]:
                left.discard(place)
    return values
