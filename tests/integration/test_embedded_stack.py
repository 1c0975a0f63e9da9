"""The embedded services together: up, used, down, and nothing is left.

In the short form a server of files stands in for Airflow's process, and no DAG runs: ``tests/airflow`` starts, uses and ends a
real one in the same way. ``make test-airflow`` starts a real one here, too.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.airflow.run_views import wait_run, xcoms
from tests.support.streams.long_form import LONG_FORM
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control import processes
from lakebound.control.ports import LOOPBACK, free_port, is_open
from lakebound.control.processes import ProcessRecord, members
from lakebound.local import airflow as airflow_process
from lakebound.local import stack
from lakebound.local.airflow import Airflow
from lakebound.local.ports_file import read_ports
from lakebound.settings import Settings, load_settings

pytestmark = pytest.mark.airflow

DAG = """
from airflow.sdk import dag, task

@dag(schedule=None)
def hello():
    @task
    def say(**context):
        print("hello", context["dag_run"].conf["whom"])
        return 7
    say()

hello()
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A home of its own, whose DAG folder holds one DAG."""
    for folder in ("spark_apps", "dags", "plugins"):
        (tmp_path / "repository" / folder).mkdir(parents=True)
    (tmp_path / "repository" / "dags" / "hello.py").write_text(DAG)
    home = tmp_path / "home"
    own = replace(load_settings(), home=home, warehouse=home / "warehouse", apps=tmp_path / "repository" / "spark_apps")
    yield own
    stack.airflow_of(own).kill()
    stack.broker_of(own).kill()


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the short form, what listens on Airflow's port is no Airflow."""
    if LONG_FORM:
        return
    real = processes.start

    def start(name: str, command: Sequence[str], log: Path, *more: Any, **named: Any) -> ProcessRecord:
        if name == "Airflow":
            ports = read_ports(named["folder"] / "ports.json") or pytest.fail("no ports were chosen")
            command = [sys.executable, "-m", "http.server", "--bind", LOOPBACK, str(ports["api"])]
        return real(name, command, log, *more, **named)

    monkeypatch.setattr(airflow_process.processes, "start", start)
    monkeypatch.setattr(Airflow, "wait_ready", lambda found: wait_until(found._accepts, HANGS_SECONDS, "its port"))


def test_up_serves_and_down_leaves_nothing(settings: Settings) -> None:
    said: list[str] = []
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        taken = stranger.getsockname()[1]
        services = stack.up(settings, said.append, kafka_port=taken, airflow_port=free_port())

    assert any(f"port {taken} is used" in line for line in said)
    assert json.loads(settings.services_file.read_text())["kafka"] == services.kafka
    client = AdminClient({"bootstrap.servers": services.kafka})
    topics = client.list_topics(timeout=30).topics
    assert {name: len(topics[name].partitions) for name in stack.EXAMPLE_TOPICS} == dict(stack.EXAMPLE_TOPICS)

    airflow, broker = stack.airflow_of(settings), stack.broker_of(settings)
    assert services.airflow_password_file.stat().st_mode & 0o077 == 0
    assert airflow.password not in airflow.log.read_text()
    if LONG_FORM:
        run_a_dag(airflow)
    assert [(service.name, service.running) for service in stack.status(settings)] == [("kafka", True), ("airflow", True)]
    assert stack.up(settings, said.append) == services, "what runs is left alone"

    stack.down(settings, said.append)

    assert str(settings.warehouse) in said[-1]
    assert not settings.services_file.exists()
    for record, port in ((airflow.record, airflow.ports.api), (broker.record, broker.ports.plaintext)):
        assert record is not None
        assert members(record) == []
        assert not is_open(port)


def run_a_dag(airflow: Airflow) -> None:
    with airflow.client() as client:
        wait_until(lambda: "hello" in client.dags(), 60, "the DAG")
        client.unpause("hello")
        run_id = client.trigger("hello", {"whom": "lake"})
        assert wait_run(client, "hello", run_id, HANGS_SECONDS) == "success", client.log("hello", run_id, "say")
        assert client.task_instances("hello", run_id)[0]["state"] == "success"
        assert xcoms(client, "hello", run_id, "say") == {"return_value": 7}
        assert "hello lake" in client.log("hello", run_id, "say")
        assert client.import_errors() == []
