"""The judge of every crash test: the producer's journal against the rows that stand in the tables.

It imports nothing of lakebound, and believes no entry, no progress and no checkpoint: Delta tables are read by
``deltalake``, Iceberg tables by ``pyiceberg`` with a catalog object of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.kafka.journal import Journal, Place, row_hash, value_hash

Rows = Mapping[Place, list[tuple[int, str]]]
"""Per place in Kafka the rows that came from it, as (ordinal, hash of the content)."""


@dataclass(frozen=True)
class Judgement:
    """What is wrong with one table; places in Kafka, with the ordinal last where one record gives several rows.

    Attributes:
        table: Its name.
        expected: Rows that it must hold.
        missing: Not there.
        duplicated: There more than once.
        altered: There, with another content.
        unexpected: There, although no acknowledged record may have given it.
    """

    table: str
    expected: int
    missing: tuple[tuple[Any, ...], ...] = ()
    duplicated: tuple[tuple[Any, ...], ...] = ()
    altered: tuple[tuple[Any, ...], ...] = ()
    unexpected: tuple[tuple[Any, ...], ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every row is there once, as it was produced, and no other."""
        return not (self.missing or self.duplicated or self.altered or self.unexpected)

    def __str__(self) -> str:
        parts = [f"{self.table}: {self.expected} expected"]
        for name in ("missing", "duplicated", "altered", "unexpected"):
            found = getattr(self, name)
            parts.append(f"{name} {len(found)}" + (f" (first: {found[:5]}, last: {found[-1]})" if found else ""))
        return ", ".join(parts)


def judge_table(journal: Journal, table: str, rows: Rows) -> Judgement:
    """Judge a target table: the rows of every record that must be landed, and nothing else."""
    wanted = {
        (*record.place, ordinal): content
        for record in journal.records
        if record.fate == "table"
        for ordinal, content in enumerate(record.rows)
    }
    return _judge(table, wanted, rows)


def judge_quarantine(journal: Journal, table: str, rows: Rows) -> Judgement:
    """Judge the quarantine: the raw bytes of every record that must be there, and nothing else."""
    wanted = {(*record.place, 0): record.sha256 for record in journal.records if record.fate == "quarantine"}
    return _judge(table, wanted, rows)


def read_delta(folder: Path | str, storage_options: dict[str, str] | None = None) -> pa.Table:
    """Return all rows of a Delta table, also of one in an object store; one that is not there has none."""
    if not DeltaTable.is_deltatable(str(folder), storage_options):
        return pa.table({"_kafka": pa.array([], pa.struct([]))})
    return DeltaTable(str(folder), storage_options=storage_options).to_pyarrow_table()


def read_iceberg(catalog_file: Path, namespace: str, name: str) -> pa.Table:
    """Return all rows of an Iceberg table in a SQLite catalog, whatever that catalog calls itself."""
    with sqlite3.connect(f"file:{catalog_file}?mode=ro", uri=True, timeout=60) as connection:
        query = "select catalog_name from iceberg_tables where table_namespace = ? and table_name = ?"
        found = connection.execute(query, (namespace, name)).fetchone()
    assert found, f"{catalog_file} has no table {namespace}.{name}"
    catalog = SqlCatalog(found[0], uri=f"sqlite:///{catalog_file}?timeout=60", init_catalog_tables="false")
    return catalog.load_table((namespace, name)).scan().to_arrow()


def table_rows(table: pa.Table) -> dict[Place, list[tuple[int, str]]]:
    """Return a target table's rows by place, with the hash of their columns."""
    return _by_place(table, row_hash)


def quarantine_rows(table: pa.Table) -> dict[Place, list[tuple[int, str]]]:
    """Return the quarantine's rows by place, with the hash of the raw bytes."""
    return _by_place(table, lambda row: value_hash(row["value"]))


def readable_places(bootstrap_servers: str, topic: str, config: Mapping[str, str] | None = None) -> set[Place]:
    """Return the places that a read_committed consumer finds in a topic, from its beginning to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"oracle-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **(config or {}),
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        unread, places = set(partitions), set()
        while unread:
            message = consumer.poll(30)
            assert message is not None, f"{topic}: partitions {sorted(unread)} did not come to their end within 30 s"
            if message.error():
                unread.discard(message.partition())
            else:
                places.add((topic, message.partition(), message.offset()))
        return places
    finally:
        consumer.close()


def _judge(table: str, wanted: Mapping[tuple[Any, ...], str], rows: Rows) -> Judgement:
    found: dict[tuple[Any, ...], list[str]] = {}
    for place, contents in rows.items():
        for ordinal, content in contents:
            found.setdefault((*place, ordinal), []).append(content)
    return Judgement(
        table=table,
        expected=len(wanted),
        missing=tuple(sorted(key for key in wanted if key not in found)),
        duplicated=tuple(sorted(key for key, contents in found.items() if len(contents) > 1)),
        altered=tuple(sorted(key for key in wanted if any(content != wanted[key] for content in found.get(key, [])))),
        unexpected=tuple(sorted(key for key in found if key not in wanted)),
    )


def _by_place(table: pa.Table, content: Any) -> dict[Place, list[tuple[int, str]]]:
    result: dict[Place, list[tuple[int, str]]] = {}
    for row in table.to_pylist():
        kafka = row["_kafka"]
        place = (kafka["topic"], kafka["partition"], kafka["offset"])
        result.setdefault(place, []).append((kafka["ordinal"], content(row)))
    return result
