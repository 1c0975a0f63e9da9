"""What an outside consumer received, against the source: latencies, doubles, and values that are not what they should be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arm_names import Work
from confluent_kafka import Consumer, TopicPartition
from work import COLUMNS, row_of


@dataclass(frozen=True)
class Received:
    """Messages in the order of their receipt.

    Attributes:
        target_partition: Of each.
        partition: Of the source record of each.
        offset: Of the source record of each.
        received_ms: When each was received.
        sample: Values of some of them.
    """

    target_partition: np.ndarray
    partition: np.ndarray
    offset: np.ndarray
    received_ms: np.ndarray
    sample: list[str]


@dataclass(frozen=True)
class Doubles:
    """What consumers saw more than once.

    Attributes:
        plain: Messages of which the source position had been seen.
        deduplicating: Those of them that pass a consumer which skips what is not above the highest offset that it has seen,
            per partition of the target and of the source.
        wrongly_skipped: Messages that this consumer skips although they are new: there must be none.
    """

    plain: int
    deduplicating: int
    wrongly_skipped: int


def read_received(path: Path) -> Received:
    """Return what the consumer has written."""
    rows = [line.split() for line in path.read_text().splitlines()]
    columns = [np.array([int(row[at]) for row in rows], dtype=np.int64) for at in (0, 2, 3)]
    received = np.array([float(row[5]) for row in rows])
    return Received(*columns, received, json.loads(path.with_suffix(".sample").read_text()))


def source_times_ms(servers: str, topic: str, partitions: int) -> dict[int, np.ndarray]:
    """Return Kafka's timestamp of every record of the source topic, by partition, at the place of its offset."""
    config = {"bootstrap.servers": servers, "group.id": f"times-{topic}", "enable.auto.commit": False}
    consumer = Consumer({**config, "auto.offset.reset": "earliest"})
    found: dict[int, np.ndarray] = {}
    for partition in range(partitions):
        place = TopicPartition(topic, partition, 0)
        end = consumer.get_watermark_offsets(place, 30)[1]
        consumer.assign([place])
        times = np.zeros(end)
        read = 0
        while read < end:
            for message in consumer.consume(10_000, 1.0):
                assert message.error() is None, message.error()
                times[message.offset()] = message.timestamp()[1]
                read = message.offset() + 1
        found[partition] = times
    consumer.close()
    return found


def latencies_ms(received: Received, times: dict[int, np.ndarray], began_ms: float, ended_ms: float) -> np.ndarray:
    """Return how late each row was received whose source record was made in a time; of several copies the first counts."""
    produced = np.zeros(len(received.offset))
    for partition, known in times.items():
        here = received.partition == partition
        produced[here] = known[received.offset[here]]
    keys = received.partition * (1 << 40) + received.offset
    _, first = np.unique(keys, return_index=True)
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[first] = True
    wanted = is_first & (produced >= began_ms) & (produced < ended_ms)
    return received.received_ms[wanted] - produced[wanted]


def doubles_seen(received: Received, after_ms: float) -> tuple[Doubles, float | None]:
    """Return what came again, and when the first new message after a time was received; None where none was."""
    seen: set[tuple[int, int]] = set()
    highest: dict[tuple[int, int], int] = {}
    plain = passed = skipped = 0
    first_new: float | None = None
    # As Python's own numbers, which JSON takes.
    columns = (received.target_partition, received.partition, received.offset, received.received_ms)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for target, partition, offset, at in rows:
        is_new = (partition, offset) not in seen
        passes = offset > highest.get((target, partition), -1)
        if is_new:
            seen.add((partition, offset))
            skipped += not passes
            if at > after_ms and first_new is None:
                first_new = at
        else:
            plain += 1
            passed += passes
        highest[target, partition] = max(offset, highest.get((target, partition), -1))
    return Doubles(plain, passed, skipped), first_new


def wrong_values(received: Received, work: Work, values: Sequence[bytes]) -> int:
    """Return how many of the sampled messages are not the row that the work makes of a record."""
    rows = [row for value in values if (row := row_of(work, value)) is not None]
    expected = {row[0]: row for row in rows}
    return sum(not _is_same(json.loads(text), expected, work) for text in received.sample)


def _is_same(body: dict[str, Any], expected: dict[str, tuple[Any, ...]], work: Work) -> bool:
    row = expected.get(body.get("event_id", ""))
    return row is not None and tuple(body.get(name) for name in COLUMNS[work]) == row
