"""Whether Kafka and Spark let a pipeline run in real time, and what a crash would send again; asked by ``lakebound check``."""

from __future__ import annotations

import os
import re
import time

from lakebound.errors import LakeboundError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.topic_check import LOOK_SECONDS
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import REAL_TIME, has_both_ends

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")


def local_slots(master: str) -> int | None:
    """Return how many tasks a Spark on one machine runs at the same time; None for a cluster."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)


def few_slots(partitions: int, slots: int | None, *, beside_batches: bool = False) -> str | None:
    """Return that there are fewer slots than partitions, in words; None where there are enough, or it is not known.

    Args:
        partitions: Of all topics that are read: in real time each is read by a task that never ends.
        slots: Tasks that run at the same time; None where that is not known.
        beside_batches: Whether tables or stores get batches at the same time, which need one slot at least.
    """
    needed = partitions + beside_batches
    if slots is None or slots >= needed:
        return None
    more = ", and the batches of the tables need one more" if beside_batches else ""
    return (
        f"its topics have {partitions} partitions, but Spark runs only {slots} tasks at the same time: each partition needs "
        f"one task{more}; set LAKEBOUND_SPARK_MASTER=local[{needed}]"
    )


def look_at_real_time(spec: PipelineSpec, master: str) -> tuple[list[str], list[str]]:
    """Return (problems, warnings) of a pipeline with ``freshness: real_time``; nothing for others. Waits for Kafka seconds.

    Args:
        spec: The pipeline.
        master: Of Spark, where applications run.
    """
    if spec.freshness != REAL_TIME:
        return [], []
    warnings = []
    if spec.real_time.epoch_seconds > spec.limits.stop_timeout_seconds:
        warnings.append(
            f"real_time.epoch ({spec.real_time.epoch}) is longer than limits.stop_timeout_seconds "
            f"({spec.limits.stop_timeout_seconds:.0f}): a stop may end within an epoch, whose rows are then sent again"
        )
    try:
        kafka = KafkaFacts(spec.connection, timeout_seconds=LOOK_SECONDS)
        facts = kafka.topics(spec.topics)
        begun = kafka.offsets_at(spec.topics, int((time.time() - spec.real_time.epoch_seconds) * 1000))
        missing = _missing(kafka, spec.quarantine_topic)
    except LakeboundError:  # what Kafka says is told with the topics
        return [], [*warnings, _replays(spec, None)]
    if missing is not None:
        warnings.append(missing)
    records = sum(end - begun[topic].get(p, end) for topic, known in facts.items() for p, end in known.latest.items())
    partitions = sum(len(known.earliest) for known in facts.values())
    few = few_slots(partitions, local_slots(master), beside_batches=has_both_ends(spec, spec.freshness))
    return ([] if few is None else [few]), [*warnings, _replays(spec, records)]


def _replays(spec: PipelineSpec, records: int | None) -> str:
    now = "" if records is None else f" ({records:,} records came in the last {spec.real_time.epoch})"
    return (
        f"after a crash, real_time sends the rows of up to {spec.real_time.epoch} again{now}; a consumer knows them by the "
        f"header lakebound_source"
    )


def _missing(kafka: KafkaFacts, topic: str) -> str | None:
    try:
        kafka.topic_ids([topic])
    except LakeboundError as exc:
        return f"the topic of bad records: {exc} (a start waits for it)"
    return None
