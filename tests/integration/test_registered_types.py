"""Each type of each format lands as it was sent, in each lane, and hostile bytes among them go to quarantine.

Confluent's serialisers write the records, with a real registry; who reads the tables knows nothing of lakebound.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.formats.avro_schemas import every_leaf, record_schema
from tests.support.formats.every_type import Sent, avro_records, json_records, protobuf_records
from tests.support.formats.hostile_values import BOMBS
from tests.support.formats.protobuf import message_class
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer
from tests.support.readers.plain_values import plain
from tests.support.registry.pipelines import registered
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.applications import applications
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Lane, make_pipeline

from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

RECORDS = 25
LONG_TEXT = 10 << 20
MOST_BYTES = 4 * LONG_TEXT
TEXTS = {"avro": "plain6", "json_schema": "plain0"}
"""A column of texts, by the kind of the schema."""
KINDS: dict[str, Callable[[], Sent]] = {
    "avro": lambda: avro_records(every_leaf(), random.Random(1), RECORDS),
    "avro drawn": lambda: avro_records(record_schema(random.Random(7), fields=8), random.Random(7), RECORDS),
    "protobuf": protobuf_records,
    "json_schema": json_records,
}
LANES: tuple[Lane, ...] = ("direct", "driver", "cluster") if LONG_FORM else ("cluster",)


def with_long_text(records: Sent) -> Sent:
    """Return the records, and one more with a long text, where the schema has a text by itself."""
    name = TEXTS.get(records.kind, "")
    at = next((at for at, row in enumerate(records.rows) if isinstance(row.get(name), str)), None)
    if at is None:
        return records
    value, row = ({**one[at], name: "é" * (LONG_TEXT // 2)} for one in (records.values, records.rows))
    return replace(records, values=[*records.values, value], rows=[*records.rows, row])


def contents(records: Sent, registry: SchemaRegistry, topic: str) -> Iterator[bytes]:
    """Yield the records as a producer with Confluent's serialisers writes them; the first one registers the schema."""
    client, context = registry.client(), SerializationContext(topic, MessageField.VALUE)
    write: Any
    if records.kind == "protobuf":
        kind = message_class(records.text, "shop.Every")
        write = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        yield from (write(kind.FromString(payload), context) for payload in records.payloads)
        return
    write = (
        AvroSerializer(client, records.text)
        if records.kind == "avro"
        else JSONSerializer(records.text, client, conf={"validate": False})
    )
    yield from (write(value, context) for value in records.values)


def hostile(good: bytes) -> Iterator[bytes]:
    """Yield bytes that are no record, behind the id of a schema that is known."""
    frame = good[:5]
    yield from (frame + bomb for bomb in BOMBS)
    yield from (
        good[:-1],
        good + b"\xff" * 11,
        b"\x01" + good[1:],
        frame[:4],
        frame + b"x" * LONG_TEXT,
        frame + b"[" * LONG_TEXT,
    )
    yield from (b"\0" + number.to_bytes(4, "big") + good[5:] for number in (2**31 - 1, 2**32 - 1, 900_000_001))


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("kind", KINDS if LONG_FORM else ["avro"])
def test_each_type_lands_as_it_was_sent(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path, kind: str, lane: Lane
) -> None:
    records, journal = with_long_text(KINDS[kind]()), Journal()
    name = topic("types", partitions=1, config={"max.message.bytes": str(MOST_BYTES)})
    producer = JournalingProducer(broker.bootstrap_servers, journal, message_max_bytes=MOST_BYTES)
    wrote = [*contents(records, schema_registry, name)]
    bad = [*hostile(wrote[1])]
    for number, content in enumerate(wrote):
        producer.send(name, content, rows=[{"number": number}])
        for one in bad[number :: len(wrote)]:
            producer.send(name, one)
    producer.flush()
    value = {"format": records.kind, "registry": "shop"}
    made = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane, freshness="200ms", value=value)
    pipeline = registered(made, schema_registry.url, tmp_path)
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    offsets = sorted(one.place[2] for one in journal.records if one.rows)
    wrong = []
    for table in pipeline.spec.tables:
        found = {row["_kafka"]["offset"]: row for row in pipeline.read(table).to_pylist()}
        # Bytes that an attacker makes may be a record; each of them is in the table or in quarantine.
        assert set(offsets) <= set(found)
        held = {row["_kafka"]["offset"] for row in pipeline.read(pipeline.spec.quarantine_table).to_pylist()}
        assert not held & set(found) and held | set(found) == set(range(len(wrote) + len(bad)))
        assert len(held) >= len(bad) - 3, held
        for offset, right in zip(offsets, records.rows, strict=True):
            for column, expected in right.items():
                row, whole = found[offset], table.format == "delta"
                shown, wanted = (plain(one, null_lists=whole) for one in (row[column], expected))
                if shown != wanted:
                    wrong.append(f"{table.id}, offset {offset}, {column}: {shown!r} instead of {wanted!r}")
    assert not wrong, f"{len(wrong)} values:\n" + "\n".join(wrong[:40])
