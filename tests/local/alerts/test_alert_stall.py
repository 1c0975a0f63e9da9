"""A stall from the task that saw it to people: at once, once, and until another application lands."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace

import pytest
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

from lakebound.alerts.look import look_at
from lakebound.alerts.round import run_round
from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, write_progress
from lakebound.settings import Settings
from lakebound_airflow.notifications import alerts, channels
from lakebound_airflow.pipelines import spec_of

CONTEXT = {"ti": SimpleNamespace(dag_id="ingest__orders", run_id="run-1", log_url="http://airflow/log")}


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    return orders(settings).control


def test_a_stall_is_told_at_once_and_once_whoever_sees_it(
    control: ControlFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = WebhookEndpoint()
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", f"http://127.0.0.1:{endpoint.port}/")
    try:
        alerts.alert(CONTEXT, control, "stalled", "silent for 61 s", "app-1")
        assert [(body["verdict"], body["app_id"], body["dag_id"]) for body in endpoint.bodies] == [
            ("stalled", "app-1", "ingest__orders")
        ]
        write_findings(
            control, "doctor", [Finding(cause="stalled", severity=Severity.WARNING, what="w", since=0, runbook="stall")]
        )
        alerts.alert(CONTEXT, control, "stalled", "silent for 65 s", "app-1")
        alerts.tell(settings)
        assert len(endpoint.bodies) == 1
        # Another application lands: it is over, and that is told, too.
        write_findings(control, "doctor", [])
        now = time.time()
        progress = Progress(
            pipeline="orders", app_id="app-2", state="running", started_at=now, updated_at=now, last_commit_at=now + 1
        )
        write_progress(control, progress)
        assert look_at(spec_of("orders", settings), settings) == []
        for later in (now + 10, now + 131):
            run_round(settings, channels.sender(None), partial(float, later))
        assert [body["kind"] for body in endpoint.bodies] == ["opened", "resolved"]
    finally:
        endpoint.close()
