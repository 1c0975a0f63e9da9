"""A customer that is deleted in the source is gone from the stores: the real application, killed, and stores built again.

What the stores must hold is folded from what the broker acknowledged, and read by clients that know nothing of Lakebound.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.kafka.makers import TopicMaker
from tests.support.stores.expected import folded, rows_in_postgres, rows_in_redis
from tests.support.stores.redis_server import running_redis
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import make_pipeline
from tests.support.waiting import wait_until

from lakebound.inspection.proof.collect import prove
from lakebound.landing.kafka import KafkaFacts
from lakebound.local.broker import Broker
from lakebound.operations.recovery.store_rebuild import apply_store_rebuild, collect_store, plan_store_rebuild
from lakebound.spec.connection import ConnectionSpec

pytestmark = pytest.mark.integration

SECRET = "LAKEBOUND_SECRET_OF_STORES"


class Customers:
    """Sends rows and tombstones of a few customers, and keeps them in the order of each key."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._producer, self._topic = Producer({"bootstrap.servers": servers, "enable.idempotence": True}), topic
        self._partitions = partitions
        self._dice, self._number = random.Random(partitions), 0
        self.told: list[tuple[str, int | None]] = []
        self.unreadable = 0

    def send(self, count: int) -> None:
        """Send so many, and wait until the broker has them."""
        for _ in range(count):
            number, self._number = self._number, self._number + 1
            card = f"card-{self._dice.randrange(12)}"
            kind = self._dice.choices(("row", "gone", "unreadable"), (6, 4, 1))[0]
            # One partition for each customer, whatever form its key has.
            place: dict[str, Any] = {"topic": self._topic, "partition": int(card[5:]) % self._partitions}
            if kind == "unreadable":
                self.unreadable += 1
                self._producer.produce(**place, key=json.dumps({"card": card, "tenant": 1}), value=None)
                continue
            key = card if self._dice.random() < 0.5 else json.dumps({"card": card})
            body = None if kind == "gone" else json.dumps({"card": card, "number": number})
            self._producer.produce(**place, key=key, value=body)
            self.told.append((card, None if kind == "gone" else number))
        assert self._producer.flush(60) == 0


# Shortly, tombstones in real time: tests/spark/test_tombstones.py.
@pytest.mark.parametrize("freshness", ["250ms", pytest.param("real_time", marks=only_in_long_form)])
def test_a_deleted_customer_is_gone_from_the_stores_after_kills_and_after_a_rebuild(
    tmp_path: Path,
    broker: Broker,
    topic: TopicMaker,
    postgresql: PostgreSQL,
    monkeypatch: pytest.MonkeyPatch,
    freshness: str,
) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)
    servers, database = broker.bootstrap_servers, postgresql.new_database()
    # In real time each partition takes a core.
    partitions = 1 if freshness == "real_time" else 3
    source = topic("customers", partitions=partitions)
    more: dict[str, Any] = {}
    if freshness == "real_time":
        more = {
            "to_topics": [{"topic": topic("sent")}],
            "real_time": {"epoch": "5s", "tables": "250ms", "quarantine_topic": topic("bad", partitions=1)},
        }
    where = {"host": "127.0.0.1", "port": PostgreSQLProxy(postgresql).port, "database": database, "username": USER}
    login = {"host": os.path.dirname(postgresql.socket), "user": USER, "password": PASSWORD, "dbname": database}
    with running_redis() as server, applications() as starter, psycopg.connect(**login, autocommit=True) as own:
        pipeline = make_pipeline(
            tmp_path,
            servers,
            source,
            formats=("delta",),
            lane="direct",
            value={"format": "json", "schema": "card STRING NOT NULL, number BIGINT NOT NULL"},
            null_values="delete",
            freshness=freshness,
            to_stores=[
                {"name": "online", "key": "card", "postgres": {**where, "password": {"env": SECRET}}},
                {"name": "cards", "key": "card", "redis": {"host": "127.0.0.1", "port": PostgreSQLProxy(server).port}},
            ],
            **more,
        )
        customers = Customers(servers, source, partitions)

        def held() -> tuple[dict[str, int], dict[str, int]]:
            return rows_in_redis(server.client(), "cards"), rows_in_postgres(own, "online")

        def assert_folded() -> None:
            wanted = folded(customers.told)
            assert held() == (wanted, wanted)

        customers.send(200)
        if freshness != "real_time":
            # Redis has the batch, and PostgreSQL has it not: that one gets rows and tombstones again.
            rules = "kill@store_rows_sent/redis#3,hold@store_begun/postgres#3"
            starter.start(pipeline, faults=rules).wait_killed(rules)
        running = starter.start(pipeline)
        for _ in range(3):
            customers.send(60)
            running.wait_landed(ends_of(broker, source))
            wanted = folded(customers.told)
            # In real time it is the topics that have landed.
            wait_until(lambda wanted=wanted: held() == (wanted, wanted), 60.0, "the stores hold the newest of each key")
        assert running.stop().verdict == "stopped", running

        proof = prove(pipeline.spec, pipeline.places, deep=True)
        assert proof.ok, proof
        [bad] = [found for found in proof.tables if found.table == pipeline.spec.quarantine_table.id]
        assert bad.rows == customers.unreadable

        if freshness != "real_time":
            for store in ("online", "cards"):
                plan = plan_store_rebuild(pipeline.spec, collect_store(pipeline.spec, store))
                apply_store_rebuild(pipeline.spec, pipeline.settings, store, plan.hash, by="somebody")
            again = starter.start(pipeline)
            again.wait_landed(ends_of(broker, source))
            assert again.stop().verdict == "stopped", again
            assert_folded()
            assert prove(pipeline.spec, pipeline.places, deep=True).ok


def ends_of(broker: Broker, source: str) -> dict[str, dict[int, int]]:
    """Return the end of each partition of the source."""
    facts = KafkaFacts(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers)).topics([source])
    return {source: dict(facts[source].latest)}
