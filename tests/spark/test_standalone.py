"""The standalone backend against real masters and workers, started from the pip package.

The cluster is closed as a company would close it: its REST server takes signed requests only, and its processes know each other
by a secret. One test has an open master.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.spark_cluster import START_SECONDS, SparkCluster, spark_cluster
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.applications import ask_stop
from lakebound.control.lease import read_lease
from lakebound.control.ports import free_port
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import BackendName, read_submission
from lakebound.errors import SubmitFailedError
from lakebound.landing.spark_command import QUICK_START
from lakebound.settings import Settings
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.standalone import StandaloneBackend
from lakebound_airflow.backends.target import Target

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

KEY = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
FILTER = "org.apache.spark.ui.JWSFilter"
CLOSED = {
    "spark.master.rest.filters": FILTER,
    f"spark.{FILTER}.param.secretKey": KEY,
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
AUTHENTICATED = json.dumps({"conf": {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A closed master, and one worker with three cores to give."""
    secret = {"_SPARK_AUTH_SECRET": secrets.token_urlsafe(32)}
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=1, conf=CLOSED, environment=secret) as found:
        yield found


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that holds the master's key, named by the environment."""
    file = tmp_path / "rest-key"
    file.write_text(KEY)
    monkeypatch.setenv("LAKEBOUND_SPARK_REST_KEY_FILE", str(file))
    return file


@pytest.fixture
def backend(cluster: SparkCluster, settings: Settings, key_file: Path) -> StandaloneBackend:
    return backend_at(cluster, replace(settings, spark_settings=AUTHENTICATED))


def backend_at(cluster: SparkCluster, settings: Settings) -> StandaloneBackend:
    quick = replace(settings, jvm_options=QUICK_START)
    found = backend_for(Target(BackendName.STANDALONE, cluster.master, cluster.rest_url), quick)
    assert isinstance(found, StandaloneBackend)
    return found


def test_an_application_runs_as_a_driver_on_the_cluster_is_found_again_and_stops_when_asked(
    backend: StandaloneBackend, cluster: SparkCluster, settings: Settings
) -> None:
    run_spec = orders(settings)
    control = run_spec.control
    submission = backend.submit(run_spec, OWNER)
    assert submission.remote_id is not None
    assert submission.remote_id.startswith("driver-")
    assert backend.submit(orders(settings, "another"), OWNER).app_id == submission.app_id, "it is found, not doubled"
    wait_until(lambda: (p := read_progress(control)) and p.app_id == submission.app_id, START_SECONDS, "progress")
    recorded = read_submission(control)
    assert recorded is not None
    watcher = backend_of(recorded, settings)
    assert watcher.is_alive(control, recorded)
    assert backend.state(submission) == "RUNNING"
    ask_stop(control, submission.app_id, reason="test", by="test")
    wait_until(lambda: not watcher.is_alive(control, recorded), START_SECONDS, "its end")
    outcome = read_outcome(control, submission.app_id)
    assert outcome is not None
    assert outcome.verdict == "stopped"
    assert backend.state(submission) == "FINISHED"
    assert "driver-" in watcher.where_log_is(recorded)
    assert KEY not in control.submission.read_text()


def test_a_driver_is_killed_through_the_master(backend: StandaloneBackend, settings: Settings) -> None:
    run_spec = orders(settings)
    submission = backend.submit(run_spec, OWNER)
    wait_until(lambda: read_lease(run_spec.control), START_SECONDS, "a lease")
    assert backend.kill(submission)
    wait_until(lambda: not backend.is_alive(run_spec.control, submission), START_SECONDS, "its end")
    assert backend.state(submission) == "KILLED"
    lease = read_lease(run_spec.control)
    assert lease is not None
    wait_until(lease.holder_is_dead, START_SECONDS, "the end of its Python, which outlives the driver for a moment")


def test_a_request_without_the_masters_key_is_refused_with_a_sentence(
    cluster: SparkCluster, settings: Settings, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_spec, backend = orders(settings), backend_at(cluster, settings)
    other = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    key_file.write_text(other)
    with pytest.raises(
        SubmitFailedError, match=r"refused the signature \(HTTP 403\): the key in the file .*/rest-key"
    ) as wrong:
        backend.submit(run_spec, OWNER)
    monkeypatch.delenv("LAKEBOUND_SPARK_REST_KEY_FILE")
    with pytest.raises(SubmitFailedError, match=r"takes only signed requests \(HTTP 403\): give its key") as missing:
        backend.submit(run_spec, OWNER)
    assert other not in str(wrong.value) + str(missing.value)
    assert read_submission(run_spec.control) is None, "nothing was submitted"


def test_an_open_master_takes_requests_without_a_key_and_those_that_are_signed(
    tmp_path: Path, settings: Settings, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_cluster(tmp_path, workers=0) as cluster:
        signed = backend_at(cluster, settings).submit(orders(settings), OWNER)
        assert backend_at(cluster, settings).kill(signed)
        monkeypatch.delenv("LAKEBOUND_SPARK_REST_KEY_FILE")
        assert backend_at(cluster, settings).state(signed) == "KILLED"
    orders(settings).control.submission.unlink()


def test_a_driver_gets_what_the_pipeline_asks_for_and_its_executors_come_from_the_cluster(
    cluster: SparkCluster, settings: Settings
) -> None:
    installed = replace(settings, spark_settings=json.dumps({"driver_memory": "2g", "driver_cores": 2, "max_cores": 6}))
    request = backend_at(cluster, installed)._request(orders(settings))
    arguments, properties = request["appArgs"], request["sparkProperties"]
    assert arguments[arguments.index("--master") + 1] == cluster.master
    assert "spark.cores.max=6" in arguments
    assert (properties["spark.driver.memory"], properties["spark.driver.cores"]) == ("2g", "2")
    assert "-XX:+ExitOnOutOfMemoryError" in properties["spark.driver.extraJavaOptions"]


def test_a_master_that_does_not_answer_is_said_and_leaves_no_record(settings: Settings) -> None:
    run_spec = orders(settings)
    nobody = StandaloneBackend(
        replace(settings, spark_master="spark://127.0.0.1:1"), rest_url=f"http://127.0.0.1:{free_port()}"
    )
    with pytest.raises(SubmitFailedError, match="no REST server of a Spark master answers"):
        nobody.submit(run_spec, OWNER)
    assert read_submission(run_spec.control) is None
