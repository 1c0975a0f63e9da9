"""A pipeline whose batches a test lands by itself, from a real broker and without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.result import Proof
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.local.broker import Broker
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.value import BytesValueSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, Table, open_table
from tests.support.tables import local_tables

SCHEMA = pa.schema([pa.field("value", pa.binary()), pa.field("_kafka", KAFKA_TYPE)])
DELTA, ICEBERG = TableSpec(format="delta", name="raw.records"), TableSpec(format="iceberg", name="raw.records")
GOOD, EXPLODED, DROPPED, BAD = b"good", b"exploded", b"dropped", b"bad"
ROWS = {GOOD: 1, EXPLODED: 3}
Row = tuple[int, int]
"""Offset and ordinal."""


@dataclass
class Landed:
    """A pipeline that this test lands by itself, without Spark."""

    broker: Broker
    places: Places
    topics: Sequence[str]
    tables: Sequence[TableSpec] = (DELTA, ICEBERG)
    ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        connection = ConnectionSpec(bootstrap_servers=self.broker.bootstrap_servers)
        self.spec = PipelineSpec(
            pipeline="records",
            topics=tuple(self.topics),
            connection=connection,
            value=BytesValueSpec(format="bytes"),
            transform="transforms.records.clean",
            freshness="1s",
            tables=tuple(self.tables),
        )
        self.ids = KafkaFacts(connection).topic_ids(self.topics)
        self.opened = [open_table(table, self.places) for table in (*self.tables, self.spec.quarantine_table)]
        for table in self.opened:
            table.create(SCHEMA, Entry(kind="genesis", pipeline="records", epoch=1, commit=new_commit_id()))

    @property
    def targets(self) -> list[Table]:
        return self.opened[:-1]

    def land(self, topic: str, partition: int, start: int, end: int) -> None:
        """Land a range in all tables as the application does: bad records first."""
        records = {o: value for o, value in self.read(topic, partition).items() if start <= o < end}
        bad = [(offset, 0) for offset, value in records.items() if value == BAD]
        rows = [(offset, number) for offset, value in records.items() for number in range(ROWS.get(value, 0))]
        landed = sum(value in ROWS for value in records.values())
        where = self.range(topic, partition, start, end)
        if bad:
            self.commit(self.opened[-1], topic, partition, where, bad, read=len(bad), quarantined=len(bad))
        counts = {"filtered": list(records.values()).count(DROPPED), "landed": landed, "quarantined": len(bad)}
        for table in self.targets:
            self.commit(table, topic, partition, where, rows, read=len(records), **counts)

    def commit(self, table: Table, topic: str, partition: int, where: Offsets, kept: Sequence[Row], **counts: int) -> None:
        """Commit rows with an entry, by the application's own means."""
        draft = Entry.model_validate(
            {"kind": "land", "pipeline": "records", "epoch": 1, "commit": new_commit_id(), "range": where}
            | {"rows": len(kept), "lane": "driver"}
            | counts
        )
        files = write_data_files(self.rows(topic, partition, kept), table.layout(), "test")
        view = table.read_ledger()
        commit_entry(table, view, files, draft, own_epoch=1, check_lease=lambda: None, attempts=1)

    def plant(self, table: Table, rows: pa.Table, landed: Offsets | None = None) -> None:
        """Commit rows behind the ledger's back: with the newest entry again, or with one for a range landed already."""
        entry = table.read_ledger().entry
        assert entry is not None
        count = rows.num_rows if landed else 0
        changes = {"commit": new_commit_id(), "range": landed or {}, "filtered": 0, "quarantined": 0}
        counts = dict.fromkeys(("read", "landed", "rows"), count)
        files = write_data_files(rows, table.layout(), "planted")
        table.commit(files, entry.model_copy(update=changes | counts))

    def rows(self, topic: str, partition: int, rows: Sequence[Row]) -> pa.Table:
        """Return rows of these offsets and ordinals."""
        origin = {"topic": topic, "topic_id": self.ids[topic], "partition": partition, "timestamp": local_tables.FIRST_DAY_US}
        return pa.Table.from_pylist(
            [{"value": b"", "_kafka": {**origin, "offset": offset, "ordinal": number}} for offset, number in rows], SCHEMA
        )

    def range(self, topic: str, partition: int, start: int, end: int) -> Offsets:
        """Return one interval."""
        return {topic: TopicOffsets(topic_id=self.ids[topic], partitions={partition: ((start, end),)})}

    def read(self, topic: str, partition: int) -> dict[int, bytes | None]:
        """Return the readable records of a partition by offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": "test",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(topic, partition, 0)])
        records = {}
        try:
            while True:
                message = consumer.poll(30)
                assert message is not None
                if message.error():
                    return records
                records[message.offset()] = message.value()
        finally:
            consumer.close()

    def end(self, topic: str, partition: int = 0) -> int:
        """Return the next offset."""
        return KafkaFacts(self.spec.connection).topics([topic])[topic].latest[partition]

    def prove(self, *, deep: bool = True, table: str | None = None) -> Proof:
        """Return the proof."""
        return prove(self.spec, self.places, deep=deep, table=table)


def send(broker: Broker, topic: str, values: Sequence[bytes], keys: int = 1000) -> None:
    """Produce the values to partition 0."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value=value, key=str(number % keys), partition=0)
    assert producer.flush(30) == 0
