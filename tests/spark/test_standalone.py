"""The standalone backend against a real master and worker, started from the pip package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401

from lakebound.control import processes
from lakebound.control.applications import ask_stop
from lakebound.control.lease import read_lease
from lakebound.control.ports import free_port, is_open
from lakebound.control.processes import wait_until
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import BackendName, read_submission
from lakebound.errors import SubmitFailedError
from lakebound.settings import Settings
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.standalone import StandaloneBackend
from lakebound_airflow.backends.target import Target

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

START_SECONDS = 90.0


@dataclass(frozen=True)
class Cluster:
    """A master's two addresses."""

    master: str
    rest_url: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One master and one worker with three cores to give, on the loopback interface."""
    home = tmp_path_factory.mktemp("cluster")
    port, rest_port = free_port(), free_port()
    conf = {"spark.master.rest.enabled": "true", "spark.master.rest.port": rest_port, "spark.master.rest.host": "127.0.0.1"}
    (home / "spark.conf").write_text("".join(f"{key} {value}\n" for key, value in conf.items()))
    spark_class = Path(_find_spark_home()) / "bin" / "spark-class"
    deploy = "org.apache.spark.deploy"
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1", "HOME": str(home)}
    options = ["--host", "127.0.0.1", "--webui-port", "0", "--properties-file", str(home / "spark.conf")]
    started: list[processes.ProcessRecord] = []

    def run(name: str, *arguments: str) -> None:
        command = ["/bin/bash", str(spark_class), f"{deploy}.{name.lower()}.{name}", *options, *arguments]
        started.append(processes.start(name, command, home / f"{name}.log", environment, folder=home))

    try:
        run("Master", "--port", str(port))
        wait_until(lambda: is_open(port) and is_open(rest_port), START_SECONDS, f"the master ({home}/Master.log)")
        run("Worker", "--cores", "3", "--memory", "3g", "--work-dir", str(home / "work"), f"spark://127.0.0.1:{port}")
        log = home / "Worker.log"
        registered = lambda: "Successfully registered" in log.read_text(errors="replace")  # noqa: E731
        wait_until(registered, START_SECONDS, f"the worker ({log})")
        yield Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{rest_port}")
    finally:
        for record in reversed(started):
            processes.kill(record)


@pytest.fixture
def backend(cluster: Cluster, settings: Settings) -> StandaloneBackend:
    found = backend_for(Target(BackendName.STANDALONE, cluster.master, cluster.rest_url), settings)
    assert isinstance(found, StandaloneBackend)
    return found


def test_an_application_runs_as_a_driver_on_the_cluster_is_found_again_and_stops_when_asked(
    backend: StandaloneBackend, cluster: Cluster, settings: Settings
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


def test_executors_come_from_the_cluster_and_not_from_the_driver(
    backend: StandaloneBackend, cluster: Cluster, settings: Settings
) -> None:
    request = backend._request(orders(settings))
    arguments = request["appArgs"]
    assert arguments[arguments.index("--master") + 1] == cluster.master


def test_a_master_that_does_not_answer_is_said_and_leaves_no_record(settings: Settings) -> None:
    run_spec = orders(settings)
    nobody = StandaloneBackend(
        replace(settings, spark_master="spark://127.0.0.1:1"), rest_url=f"http://127.0.0.1:{free_port()}"
    )
    with pytest.raises(SubmitFailedError, match="no REST server of a Spark master answers"):
        nobody.submit(run_spec, OWNER)
    assert read_submission(run_spec.control) is None
