"""A pipeline with a table, rows in PostgreSQL and counters in Redis, killed within and between their commits.

The stores are judged by what the broker acknowledged, by clients that know nothing of Lakebound.

In the long form alone: in the short one ``tests/integration/test_store_tombstones.py`` kills an application between the commits
of two stores, and builds them again; counters are killed at each step in ``tests/integration/test_store_targets.py``.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.kafka.makers import TopicMaker
from tests.support.stores.expected import counts_in_redis
from tests.support.stores.redis_server import running_redis
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import make_pipeline

from lakebound.inspection.doctor.pipeline.collect import read_pipeline_facts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.inspection.proof.collect import prove
from lakebound.landing.kafka import KafkaFacts
from lakebound.local.broker import Broker
from lakebound.operations.recovery.store_rebuild import apply_store_rebuild, collect_store, plan_store_rebuild
from lakebound.spec.connection import ConnectionSpec

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200), only_in_long_form]

SECRET = "LAKEBOUND_SECRET_OF_STORES"
SCHEMA = "card STRING, number BIGINT NOT NULL, amount BIGINT, paid_at TIMESTAMP NOT NULL"
CARDS = 40
BAD_EVERY = 50
BETWEEN = "kill@store_rows_sent/redis#4,hold@store_ledger_sent/postgres#4"
"""Redis has it, and PostgreSQL's transaction is open with all that it shall have."""
KILLS = (BETWEEN, "kill@store_rows_sent/redis#4,hold@store_begun/postgres#4", "kill@store_ledger_sent/postgres#3")


class Payments(threading.Thread):
    """Sends some payments a second, and keeps what the broker acknowledged."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer, self._topic = Producer({"bootstrap.servers": servers, "enable.idempotence": True}), topic
        self._ends = threading.Event()
        self.acknowledged: list[dict[str, Any]] = []

    def run(self) -> None:
        number = 0
        while not self._ends.wait(0.02):
            card = f"card-{number * 7 % CARDS}"
            paid_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            body = {"card": None if number % BAD_EVERY == 7 else card, "number": number, "amount": number, "paid_at": paid_at}
            self._producer.produce(
                self._topic, json.dumps(body), card, on_delivery=lambda error, _, body=body: self._note(error, body)
            )
            self._producer.poll(0)
            number += 1
        assert self._producer.flush(60) == 0
        del self._producer  # else it looks for the broker after its end

    def end(self) -> list[dict[str, Any]]:
        """Return all payments that were acknowledged."""
        self._ends.set()
        self.join()
        return self.acknowledged

    def _note(self, error: Any, body: dict[str, Any]) -> None:
        assert error is None, error
        self.acknowledged.append(body)


def test_a_table_and_two_stores_of_one_pipeline_get_each_record_once(
    tmp_path: Path, broker: Broker, topic: TopicMaker, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)
    source, database = topic("payments"), postgresql.new_database()
    rows = {"host": "127.0.0.1", "port": PostgreSQLProxy(postgresql).port, "database": database, "username": USER}
    with running_redis() as server, applications() as starter:
        stores = [
            {"name": "cards", "key": "card", "postgres": {**rows, "password": {"env": SECRET}}},
            {
                "name": "velocity",
                "key": "card",
                "redis": {"host": "127.0.0.1", "port": PostgreSQLProxy(server).port},
                "counters": {"time": "paid_at", "windows": {"1h": "10s"}, "sums": ["amount"]},
            },
        ]
        value = {"format": "json", "schema": SCHEMA}
        pipeline = make_pipeline(
            tmp_path, broker.bootstrap_servers, source, formats=("delta",), lane="direct", value=value, to_stores=stores
        )
        payments = Payments(broker.bootstrap_servers, source)
        payments.start()
        for rules in KILLS:
            starter.start(pipeline, faults=rules).wait_killed(rules)
        last = starter.start(pipeline)
        sent = payments.end()
        last.wait_landed(ends_of(broker, source))
        assert last.stop().verdict == "stopped", last

        good = [one for one in sent if one["card"] is not None]
        login = {"host": os.path.dirname(postgresql.socket), "user": USER, "password": PASSWORD, "dbname": database}
        with psycopg.connect(**login) as own:
            held = dict(own.execute(b"SELECT card, (number, amount)::text FROM cards").fetchall())
        assert held == {
            one["card"]: f"({one['number']},{one['amount']})" for one in sorted(good, key=lambda one: one["number"])
        }
        assert counts_in_redis(server.client(), "velocity", {"1h": 3600}) == counted(good)

        proof = {found.table: found for found in prove(pipeline.spec, pipeline.places).tables}
        for store in ("postgres:cards", "redis:velocity"):
            assert (proof[store].rows, proof[store].quarantined) == (len(good), len(sent) - len(good))
        assert diagnose(read_pipeline_facts(pipeline.spec, pipeline.settings)).verdict != "needs_person"

        for store in ("cards", "velocity"):
            plan = plan_store_rebuild(pipeline.spec, collect_store(pipeline.spec, store))
            assert plan.loses == ()
            apply_store_rebuild(pipeline.spec, pipeline.settings, store, plan.hash, by="somebody")
        assert counts_in_redis(server.client(), "velocity", {"1h": 3600}) == Counter()
        again = starter.start(pipeline)
        again.wait_landed(ends_of(broker, source))
        assert again.stop().verdict == "stopped", again
        assert counts_in_redis(server.client(), "velocity", {"1h": 3600}) == counted(good)
        with psycopg.connect(**login) as own:
            assert dict(own.execute(b"SELECT card, (number, amount)::text FROM cards").fetchall()) == held
        assert prove(pipeline.spec, pipeline.places).ok


def ends_of(broker: Broker, source: str) -> dict[str, dict[int, int]]:
    """Return the end of each partition of the source."""
    facts = KafkaFacts(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers)).topics([source])
    return {source: dict(facts[source].latest)}


def counted(payments: list[dict[str, Any]]) -> Counter[tuple[str, int, int, str]]:
    """Return counts and sums by card and bucket of ten seconds."""
    found: Counter[tuple[str, int, int, str]] = Counter()
    for one in payments:
        second = int(time.mktime(time.strptime(one["paid_at"], "%Y-%m-%dT%H:%M:%SZ"))) - time.timezone
        place = (one["card"], 3600, second - second % 10)
        found[*place, "count"] += 1
        found[*place, "amount"] += one["amount"]
    return found
