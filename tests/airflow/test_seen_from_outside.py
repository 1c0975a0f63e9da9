"""What can be seen of a running Airflow from outside: paused DAGs, and connections that only its database has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakebound.alerts.channel_check import channels_that_need_airflow
from lakebound.alerts.routes import AlertsSpec
from lakebound.control.findings import Finding, read_source
from lakebound_airflow.pipelines import spec_of
from lakebound_airflow.watch.looks import look_at_airflow
from tests.support.airflow.real_stack import Stack

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(420)]


def found(stack: Stack, pipeline: str) -> tuple[Finding, ...]:
    """Look at Airflow, and return what is wrong with the pipeline's DAG."""
    assert look_at_airflow(stack.settings, [spec_of(pipeline, stack.settings)]) == []
    seen = read_source(stack.control(pipeline), "airflow")
    return seen.findings if seen is not None else ()


def test_a_dag_that_is_paused_and_should_run_is_found_and_taken_back(stack: Stack) -> None:
    stack.running("survives")
    assert found(stack, "survives") == ()
    stack.client.pause("ingest__survives")
    try:
        (paused,) = found(stack, "survives")
        assert (paused.cause, paused.runbook) == ("dag-paused", "application-dead")
        assert "it runs, but its DAG ingest__survives is paused" in paused.what
    finally:
        stack.client.unpause("ingest__survives")
    assert found(stack, "survives") == ()


def test_a_connection_that_only_the_database_has_is_named(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW_HOME", "AIRFLOW_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("in_database", "in_backend"):
        connection = {"connection_id": name, "conn_type": "http", "host": "http://127.0.0.1:1"}
        stack.client._send("POST", "/api/v2/connections", json=connection)
    file = tmp_path / "connections.json"
    file.write_text(json.dumps({"in_backend": "http://127.0.0.1:1"}))
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "airflow.secrets.local_filesystem.LocalFilesystemBackend")
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", json.dumps({"connections_file_path": str(file)}))
    monkeypatch.setenv("AIRFLOW_CONN_AT_HAND", "http://127.0.0.1:1")
    hooks = {name: {"webhook": {"connection": name}} for name in ("in_database", "in_backend", "at_hand", "nowhere")}
    body = {"channels": hooks, "routes": [{"to": list(hooks)}], "heartbeat": {"connection": "in_database"}}
    channel, heartbeat = channels_that_need_airflow(AlertsSpec.model_validate(body), stack.settings)
    assert channel.startswith("alerts.yaml: channel in_database: the connection in_database is in Airflow's database only")
    assert "AIRFLOW_CONN_IN_DATABASE" in channel
    assert heartbeat.startswith("alerts.yaml: heartbeat: ")
