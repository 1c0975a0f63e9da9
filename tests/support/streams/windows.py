"""Readings of sensors with disordered, late, and far-future times; the truth of their windows, worked out without Spark."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions

from lakebound.local.broker import Broker
from lakebound.local.stack import wait_led
from tests.support.streams.pipelines import Pipeline, make_pipeline
from tests.support.waiting import HANGS_SECONDS

SCHEMA = "id BIGINT, sensor STRING, at TIMESTAMP, value BIGINT"
WATERMARK_SECONDS = 10
WINDOW_SECONDS = 5
SENSORS = 6
_FAR_SECONDS = 86_400 * 365


@dataclass(frozen=True)
class Reading:
    """What was sent, and where Kafka put it."""

    partition: int
    offset: int
    id: int
    sensor: str
    at_ms: int
    value: int

    @property
    def is_far(self) -> bool:
        """Whether its time lies ahead, which it was when it was sent: readings are of the hour before."""
        return self.at_ms > time.time() * 1000

    def window_ends_ms(self, window_seconds: int, slide_seconds: int) -> list[int]:
        """Return the ends of its windows."""
        slide_ms, size_ms = slide_seconds * 1000, window_seconds * 1000
        last_start = self.at_ms // slide_ms * slide_ms
        starts = range(last_start, self.at_ms - size_ms, -slide_ms)
        return sorted(start + size_ms for start in starts)


@dataclass
class Sensors:
    """Sends readings and remembers them. Time goes on by a fifth of a second with each; it is not the clock's."""

    servers: str
    topic: str
    partitions: int = 2
    seed: int = 7
    sent: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._producer = Producer({"bootstrap.servers": self.servers})
        self._now_ms = (int(time.time()) - 3600) * 1000 // 60_000 * 60_000
        self._next_id = 0

    def send(self, count: int, step_ms: int = 200) -> None:
        """Send so many readings: six in ten in order, three disordered, one too late."""
        for _ in range(count):
            kind = self._random.random()
            back_ms = 0 if kind < 0.6 else self._random.randrange(8_000 if kind < 0.9 else 60_000)
            self._now_ms += step_ms
            self._produce(self._now_ms - back_ms, self._random.randrange(-1, 9))
        self._producer.flush()

    def know_partitions(self, partitions: int) -> None:
        """Send to so many partitions from here on; a producer that is there goes on with the ones that it has learnt."""
        self.partitions = partitions
        self._producer = Producer({"bootstrap.servers": self.servers})

    def send_far(self) -> None:
        """Send a reading whose time is years ahead."""
        self._produce(self.far_ms, 1)
        self._producer.flush()

    @property
    def far_ms(self) -> int:
        """A time that is years ahead."""
        return int(time.time() * 1000) + _FAR_SECONDS * 1000

    def send_one(self, at_ms: int, value: int = 1, partition: int | None = None, sent_ms: int = 0) -> None:
        """Send a reading of this time, and with this time of Kafka where one is given."""
        self._produce(at_ms, value, partition, sent_ms)
        self._producer.flush()

    @property
    def now_ms(self) -> int:
        """The time of the newest reading, in epoch milliseconds."""
        return self._now_ms

    def send_body(self, body: dict[str, Any], partition: int) -> None:
        """Send a record that the truth does not know."""
        self._producer.produce(self.topic, json.dumps(body).encode(), partition=partition)
        self._producer.flush()

    def close(self) -> int:
        """Send what closes every window before it, in each partition; return their latest end in epoch milliseconds."""
        last_ms = self._now_ms
        self._now_ms += 120_000
        for partition in range(self.partitions):
            self._produce(self._now_ms, 1, partition)
        self._producer.flush()
        return last_ms

    def ends(self) -> dict[int, int]:
        """Return per partition the offset after the last one."""
        ends: dict[int, int] = dict.fromkeys(range(self.partitions), 0)
        for one in self.sent:
            ends[one.partition] = max(ends[one.partition], one.offset + 1)
        return ends

    def _produce(self, at_ms: int, value: int, partition: int | None = None, sent_ms: int = 0) -> None:
        number, self._next_id = self._next_id, self._next_id + 1
        sensor, where = f"s{number % SENSORS}", number % self.partitions if partition is None else partition
        body = {"id": number, "sensor": sensor, "at": iso(at_ms), "value": value}

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            self.sent.append(Reading(where, message.offset(), number, sensor, at_ms, value))

        self._producer.produce(self.topic, json.dumps(body).encode(), None, where, delivered, sent_ms)
        self._producer.poll(0)


def iso(at_ms: int) -> str:
    """Return a time as the records have it."""
    seconds, ms = divmod(at_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03}Z"


Row = tuple[int, str, int, int, int]
"""End of the window in epoch milliseconds, sensor, number of readings, sum of their ids, highest value."""


def true_windows(
    sent: Iterable[Reading],
    refused: Mapping[tuple[int, int], str],
    watermarks_ms: Mapping[tuple[int, int], int] | None = None,
    window_seconds: int = WINDOW_SECONDS,
    slide_seconds: int = WINDOW_SECONDS,
) -> list[Row]:
    """Return the rows of all windows, open ones included.

    Args:
        sent: All readings.
        refused: Reason of those in quarantine, by partition and offset.
        watermarks_ms: Of those that were late in part: windows that end at or before it were closed.
        window_seconds: Length of a window.
        slide_seconds: Distance between two.
    """
    found: defaultdict[tuple[int, str], list[Reading]] = defaultdict(list)
    for one in sent:
        place = (one.partition, one.offset)
        if one.value < 0 or refused.get(place, "late_in_part") != "late_in_part":
            continue
        closed_ms = (watermarks_ms or {}).get(place, 0)
        for end in one.window_ends_ms(window_seconds, slide_seconds):
            if end > closed_ms:
                found[end, one.sensor].append(one)
    return sorted(
        (end, sensor, len(own), sum(one.id for one in own), max(one.value for one in own))
        for (end, sensor), own in found.items()
    )


def landed_windows(rows: Any) -> list[Row]:
    """Return the rows of a table, as Arrow has them."""
    return sorted(
        (round(row["window"]["end"].timestamp() * 1000), row["sensor"], row["readings"], row["ids"], row["highest"])
        for row in rows.select(["window", "sensor", "readings", "ids", "highest"]).to_pylist()
    )


def delete_records(broker: Broker, topic: str, before: Mapping[int, int]) -> None:
    """Delete the records before these offsets, by partition, as retention does."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(topic, p, offset) for p, offset in before.items()]).values():
        deleted.result(timeout=HANGS_SECONDS)


def compact(broker: Broker, topic: str) -> None:
    """Have Kafka compact the topic from now on."""
    set_topic(broker, topic, {"cleanup.policy": "compact"})


def set_topic(broker: Broker, topic: str, settings: Mapping[str, str]) -> None:
    """Give the topic these settings."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(timeout=HANGS_SECONDS)


def add_partition(broker: Broker, topic: str, partitions: int) -> None:
    """Give the topic so many partitions."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_partitions([NewPartitions(topic, partitions)]).values():
        created.result(timeout=HANGS_SECONDS)
    wait_led(admin, {topic: partitions})


STATE = {"event_time": "at", "watermark": f"{WATERMARK_SECONDS}s"}


def sensors_pipeline(folder: Path, broker: Broker, topic: str, transform: str = "count_in_windows") -> Pipeline:
    return make_pipeline(
        folder,
        broker.bootstrap_servers,
        topic,
        value={"format": "json", "schema": SCHEMA},
        transform=f"transforms.landing_transforms.{transform}",
        state=STATE,
        objectives={"quarantine_rate": None},
        limits={"lease_ttl_seconds": 20, "outage_seconds": 120, "max_records_per_batch": 100, "idle_entry_seconds": 3600},
    )


def refused(pipeline: Pipeline) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], int]]:
    """Return reasons by place, and the watermark of those that were late."""
    rows = pipeline.read(pipeline.spec.quarantine_table).to_pylist()
    places = [(row["_kafka"]["partition"], row["_kafka"]["offset"]) for row in rows]
    twice = [place for place, times in Counter(places).items() if times > 1]
    assert not twice, f"in quarantine more than once: {twice}"
    reasons = {place: row["reason"] for place, row in zip(places, rows, strict=True)}
    return reasons, {p: told_watermark(row) for p, row in zip(places, rows, strict=True) if row["reason"].startswith("late")}


def told_watermark(row: dict[str, Any]) -> int:
    found = re.search(r"watermark (.+?) UTC, which was \d+ ms behind$", row["error"])
    assert found is not None, row["error"]
    return round(datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp() * 1000)


def assert_windows(pipeline: Pipeline, sensors: Sensors, until_ms: int, size: int = 5, slide: int = 5) -> None:
    """Check every window that ends until then, in both tables; and that each reading is somewhere."""
    assert sensors.sent, "nothing was sent: nothing was tested"
    reasons, watermarks = refused(pipeline)
    truth = true_windows(sensors.sent, reasons, watermarks, size, slide)
    want = [row for row in truth if row[0] <= until_ms]
    assert want
    for table in pipeline.spec.tables:
        got = landed_windows(pipeline.read(table))
        assert not [row for row in got if row[0] > until_ms + 5000 * size], "a window was closed before its time"
        got = [row for row in got if row[0] <= until_ms]
        lacking, strange = Counter(want) - Counter(got), Counter(got) - Counter(want)
        assert (lacking, strange) == (Counter(), Counter()), f"{table.id}: missing {lacking}, wrong or doubled {strange}"
    newest_ms = max(one.at_ms for one in sensors.sent if not one.is_far)
    by_place = {(one.partition, one.offset): one for one in sensors.sent}
    for place, reason in reasons.items():
        one = by_place[place]
        assert reason in ("late", "late_in_part", "far_ahead", "before_1970")
        assert (reason == "before_1970") == (one.at_ms < 0)
        assert (reason == "far_ahead") == one.is_far
        if reason == "late":
            assert one.window_ends_ms(size, slide)[-1] <= newest_ms - 1000 * WATERMARK_SECONDS, "it was not late"
            assert one.window_ends_ms(size, slide)[-1] <= watermarks[place]
    assert {one for one, reason in reasons.items() if reason == "far_ahead"} == {p for p, r in by_place.items() if r.is_far}
