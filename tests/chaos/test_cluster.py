"""Streams on a Spark cluster, with the S3 server and the catalogs of docker-compose.yaml as processes; driver and worker die.

Only `make test-cluster` runs it, because versitygw and Iceberg's own REST catalog must be got first. What `make test` has of
this, with the tests' own servers, is in ``test_cataloged_streams.py`` and ``test_store_streams.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.catalogs.installations import Installation, store_on
from tests.support.catalogs.postgresql import PostgreSQL
from tests.support.cluster.servers import ReferenceCatalog, VersityGW
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load, send_events
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import assert_exactly_once, make_pipeline
from tests.support.streams.spark_cluster import SparkCluster, spark_cluster
from tests.support.tables.stored import KEY_ID, SECRET
from tests.support.waiting import wait_until

from lakebound.control import processes
from lakebound.local.broker import Broker
from lakebound.storage.location import Location
from lakebound.storage.race import race

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.environ.get("LAKEBOUND_CLUSTER") != "full", reason="only in make test-cluster"),
]

RULE = "kill@after_commit/iceberg#2"  # the catalog has the commit, and nobody was told
PER_SECOND = 50
AFTER_IT = 200
EXECUTOR_SECONDS = 300.0
LANDING_SECONDS = 600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VersityGW]:
    """The S3 server."""
    server = VersityGW(tmp_path / "store")
    yield server
    server.stop()


@pytest.fixture
def installation(store: VersityGW, tmp_path: Path) -> Iterator[Installation]:
    """Tables in a bucket, behind the REST catalog, which keeps its own data in PostgreSQL."""
    place = store_on(store)
    with TemporaryDirectory(prefix="lakebound-postgresql-") as folder:
        database = PostgreSQL(Path(folder))
        catalog = ReferenceCatalog(tmp_path, place, store, database)
        yield catalog.installation(tmp_path, place)
        catalog.stop()
        database.stop()


@pytest.fixture
def cluster(installation: Installation, tmp_path: Path) -> Iterator[SparkCluster]:
    """A master and two workers; executors find the keys of the store in the workers' environment."""
    (tmp_path / "cluster").mkdir()
    keys = {name: os.environ[name] for name in (KEY_ID, SECRET)}
    with spark_cluster(tmp_path / "cluster", environment=keys) as found:
        yield found


def test_driver_and_worker_are_killed_and_nothing_is_lost_or_doubled(
    installation: Installation,
    cluster: SparkCluster,
    tmp_path: Path,
    broker: Broker,
    topic: TopicMaker,
) -> None:
    warehouse = installation.at.warehouse
    assert race(Location(f"{warehouse.location}/race", warehouse.store)).is_safe, "no tables into a store that loses races"
    spark = {"driver_memory": "768m", "executor_memory": "512m", "executor_cores": 1, "max_cores": 2}
    made = make_pipeline(tmp_path, broker.bootstrap_servers, topic("cluster", partitions=2), lane="driver", spark=spark)
    pipeline = installation.holding(replace(made, settings=replace(made.settings, spark_master=cluster.master)))
    journal, (name,) = Journal(), pipeline.spec.topics
    producer = JournalingProducer(pipeline.settings.kafka, journal)
    with applications() as starter:
        with Load(producer, name, PER_SECOND, None):
            starter.start(pipeline, faults=RULE).wait_killed(RULE)
            last = starter.start(pipeline)
            last.wait_running()
            wait_until(lambda: sum(cluster.executor_cores()) >= 2, EXECUTOR_SECONDS, "executors on the workers")
            processes.kill(cluster.workers[0])  # with its executor: a machine that is gone
        send_events(producer, name, range(AFTER_IT))
        last.wait_landed(journal.ends(), LANDING_SECONDS)
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)
