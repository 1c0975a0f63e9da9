"""An application without Spark: it lands made-up records of one source partition in a topic, batch by batch.

As a module, ``python -m tests.support.topics.landing HOME SERVERS TOPIC EPOCH BATCHES`` is such an application in a process of
its own, which ``LAKEBOUND_FAULTS`` can kill.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebound.errors import LeaseLostError
from lakebound.landing.kafka_clients import make_producer
from lakebound.landing.to_topics.messages import JSON_COLUMN, staged_schema
from lakebound.landing.to_topics.producer import TopicProducer
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, high_water_marks, new_commit_id
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.to_topics import ToTopicSpec
from lakebound.tables.commit import Committed, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.table import KAFKA_TYPE, DataFile

SOURCE = "source"
BATCH = 20
COLUMNS = pa.schema([pa.field("number", pa.int64()), pa.field("_kafka", KAFKA_TYPE)])


def offsets(start: int, end: int) -> Offsets:
    """Return a range of the one source partition."""
    return {SOURCE: TopicOffsets(topic_id="source-id", partitions={0: ((start, end),)})}


def positions(start: int, end: int) -> set[str]:
    """Return the source positions of a range."""
    return {f"{SOURCE}/0/{offset}/0" for offset in range(start, end)}


class TopicLander:
    """One application that lands in one topic."""

    def __init__(
        self,
        home: Path,
        servers: str,
        topic: str,
        epoch: int,
        make: Callable[[Mapping[str, Any]], Any] = make_producer,
        pipeline: str | None = None,
    ) -> None:
        """Take the lease, fence whoever was before, and commit an ``open`` entry."""
        self.epoch, self.lease, self.home = epoch, home / "lease", home
        self.pipeline = pipeline or topic.replace("-", "_")
        self.lease.write_text(str(epoch))
        self.spec = ToTopicSpec(topic=topic, key="number")
        connection = ConnectionSpec(bootstrap_servers=servers)
        self.producer = TopicProducer(connection, self.pipeline, self.check_lease, [1_000_000], make)
        schema = staged_schema(self.spec, COLUMNS)
        self.target = TopicTarget(
            self.spec, self.pipeline, connection, producer=self.producer, schema=schema, scratch=home / f"scratch-{epoch}"
        )
        if not self.target.exists():
            self.target.create(schema, self._draft("genesis", 0, 0))
        self.view = self.target.read_ledger()
        self._commit([], self._draft("open", 0, 0))

    def check_lease(self) -> None:
        """Raise LeaseLostError when another application has it."""
        owner = int(self.lease.read_text())
        if owner != self.epoch:
            raise LeaseLostError(self.pipeline, self.epoch, owner)

    @property
    def next_offset(self) -> int:
        """The first source offset that the ledger does not hold."""
        return high_water_marks(self.view.coverage).get(SOURCE, {}).get(0, 0)

    def land(self, start: int, end: int) -> Committed:
        """Land the source offsets from ``start`` up to ``end``."""
        return self._commit(self.write(start, end), self._draft("land", start, end))

    def write(self, start: int, end: int) -> list[DataFile]:
        """Write the rows of a range as files that wait for a transaction."""
        kafka = [
            {"topic": SOURCE, "topic_id": "source-id", "partition": 0, "offset": n, "timestamp": None, "ordinal": 0}
            for n in range(start, end)
        ]
        columns = {
            "number": pa.array(range(start, end), pa.int64()),
            "_kafka": pa.array(kafka, KAFKA_TYPE),
            JSON_COLUMN: pa.array([f'{{"number":{n}}}' for n in range(start, end)]),
        }
        schema = self.target.schema()
        rows = pa.table([columns[name] for name in schema.names], schema=schema)
        return write_data_files(rows, self.target.layout(), uuid.uuid4().hex)

    def _commit(self, files: list[DataFile], draft: Entry) -> Committed:
        committed = commit_entry(
            self.target, self.view, files, draft, own_epoch=self.epoch, check_lease=self.check_lease, attempts=5
        )
        self.view = committed.view
        return committed

    def _draft(self, kind: Any, start: int, end: int) -> Entry:
        return Entry(
            kind=kind,
            pipeline=self.pipeline,
            epoch=self.epoch,
            commit=new_commit_id(),
            range=offsets(start, end) if end > start else {},
            read=end - start,
            landed=end - start,
            rows=end - start,
            lane="driver" if end > start else None,
        )


def main() -> None:
    """Land so many batches after what the ledger holds."""
    home, servers, topic, epoch, batches = sys.argv[1:]
    lander = TopicLander(Path(home), servers, topic, int(epoch))
    for _ in range(int(batches)):
        lander.land(lander.next_offset, lander.next_offset + BATCH)


if __name__ == "__main__":
    main()
