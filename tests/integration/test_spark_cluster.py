"""Two pipelines land at once on a real cluster: a master and two workers, closed by a signature and by a secret.

One driver runs on a worker, the other stays here (client mode). Their executors write every batch, and each gets its cores.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from tests.conftest import TopicMaker
from tests.support.kafka.journal import Journal
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.streams.spark_cluster import SparkCluster, spark_cluster

from lakebound.control.applications import ask_stop, kill_leftovers
from lakebound.control.processes import wait_until
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import BackendName, Owner, Submission
from lakebound.landing.run_spec import RunSpec
from lakebound.local.broker import Broker
from lakebound_airflow.backends.backend import Backend
from lakebound_airflow.backends.choice import backend_for
from lakebound_airflow.backends.target import Target

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

START_SECONDS = 240.0
RECORDS = 400
FILTER = "org.apache.spark.ui.JWSFilter"
OBSERVED = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.ui.prometheus.enabled": "true"}
SECURED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
OWNER = Owner(dag_id="ingest__events", run_id="run-1", task_id="stream")


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """The secret by which Spark's processes know each other, in the environment and nowhere else."""
    found = secrets.token_urlsafe(32)
    monkeypatch.setenv("_SPARK_AUTH_SECRET", found)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return found


@pytest.fixture
def cluster(tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkCluster]:
    """A master and two workers with three cores each, and the key of the REST server where Airflow finds it."""
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    (tmp_path / "rest-key").write_text(key)
    monkeypatch.setenv("LAKEBOUND_SPARK_REST_KEY_FILE", str(tmp_path / "rest-key"))
    (tmp_path / "cluster").mkdir()
    conf = {**SECURED, "spark.master.rest.filters": FILTER, f"spark.{FILTER}.param.secretKey": key}
    with spark_cluster(tmp_path / "cluster", conf=conf, environment={"_SPARK_AUTH_SECRET": secret}) as found:
        yield found


class Landing:
    """One pipeline on the cluster, from its submission to the judgement."""

    def __init__(self, folder: Path, broker: Broker, topic: str, target: Target) -> None:
        folder.mkdir()
        (folder / "events").mkdir()
        self.journal, self.topic = Journal(), topic
        self.producer = JournalingProducer(broker.bootstrap_servers, self.journal)
        conf = {**SECURED, **OBSERVED, "spark.eventLog.dir": f"file://{folder}/events"}
        spark = {"driver_memory": "768m", "executor_memory": "512m", "conf": conf}
        made = make_pipeline(folder, broker.bootstrap_servers, topic, lane="cluster", spark=spark)
        self.pipeline: Pipeline = replace(made, settings=replace(made.settings, spark_ui="on"))
        self.events = folder / "events"
        self.backend: Backend = backend_for(target, self.pipeline.settings)
        self.orders: RunSpec = self.pipeline.run_spec()
        self.submission: Submission = self.backend.submit(self.orders, OWNER)

    def send(self, numbers: range) -> None:
        """Send records."""
        send_events(self.producer, self.topic, numbers)
        self.producer.flush()

    def wait_landed(self) -> None:
        """Return when everything that was sent is in the tables."""
        control = self.pipeline.control

        def landed() -> bool:
            outcome, progress = read_outcome(control, self.orders.app_id), read_progress(control)
            assert outcome is None, f"it ended: {outcome}"
            assert self.backend.is_alive(control, self.submission), f"it died; log: {self.submission.log}"
            return progress is not None and sum(table.rows for table in progress.tables.values()) >= 2 * self.journal.count()

        wait_until(landed, START_SECONDS, "the landing of what was sent")

    def stop(self) -> None:
        """Ask it to end, and return when it has, well."""
        control = self.pipeline.control
        ask_stop(control, self.orders.app_id, reason="test", by="test")
        wait_until(lambda: not self.backend.is_alive(control, self.submission), START_SECONDS, "its end")
        outcome = read_outcome(control, self.orders.app_id)
        assert outcome is not None and outcome.verdict == "stopped", outcome

    def leave(self) -> None:
        """End what is left of it."""
        kill_leftovers(self.submission)


def test_two_pipelines_land_at_once_and_neither_takes_the_others_cores(
    cluster: SparkCluster, secret: str, broker: Broker, topic: TopicMaker, tmp_path: Path
) -> None:
    on_a_worker = Target(BackendName.STANDALONE, cluster.master, cluster.rest_url)
    here = Target(BackendName.LOCAL, cluster.master)
    landings: list[Landing] = []
    try:
        for number, target in enumerate((on_a_worker, here)):
            landings.append(Landing(tmp_path / f"pipeline-{number}", broker, topic(partitions=2), target))
        wait_until(lambda: cluster.executor_cores() == [2, 2], START_SECONDS, "two cores for each")
        for one in landings:
            one.send(range(RECORDS))
        for one in landings:
            one.wait_landed()
        assert sum(worker["coresused"] for worker in cluster.state()["workers"]) == 2 + 2 + 1, "two executors each, one driver"
        _check_metrics(landings[1])
        _check_that_the_secret_is_nowhere(cluster, landings, secret)
        for one in landings:
            one.stop()
    finally:
        for one in landings:
            one.leave()
    for one in landings:
        assert_exactly_once(one.pipeline, one.journal)
        assert _tasks_on_executors(one.events) > 0


def _check_metrics(landing: Landing) -> None:
    """The driver's page has the metrics of its executors in Prometheus' format."""
    with urlopen(f"{landing.submission.spark_ui}/metrics/executors/prometheus/", timeout=10) as answer:
        assert "metrics_executor_completedTasks_total" in answer.read().decode()


def _check_that_the_secret_is_nowhere(cluster: SparkCluster, landings: list[Landing], secret: str) -> None:
    """The secret is in no command line, file, log or page."""
    lines = [line for process in psutil.process_iter(["cmdline"]) for line in process.info["cmdline"] or ()]
    assert any("CoarseGrainedExecutorBackend" in line for line in lines), "those of executors are among them"
    assert not [line for line in lines if secret in line]
    files = [path for one in landings for path in one.pipeline.settings.home.rglob("*") if path.is_file()]
    files += [path for one in landings for path in one.events.rglob("*") if path.is_file()]
    files += [path for path in cluster.folder.rglob("*") if path.is_file() and path.name in ("stdout", "stderr")]
    files += list(cluster.folder.glob("*.log"))
    assert files
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    with urlopen(f"{landings[1].submission.spark_ui}/environment/", timeout=10) as page:
        assert secret not in page.read().decode()


def _tasks_on_executors(events: Path) -> int:
    """Return how many tasks ended on executors, as the event logs say."""
    lines = [line for path in events.rglob("*") if path.is_file() for line in path.read_text().splitlines()]
    found = (json.loads(line) for line in lines if '"SparkListenerTaskEnd"' in line)
    return sum(one["Task Info"]["Executor ID"] != "driver" for one in found)
