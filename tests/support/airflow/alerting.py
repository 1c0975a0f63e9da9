"""Alerts of one pipeline that go to a real HTTP endpoint and a real SMTP server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import yaml

from lakebound.alerts.round import RoundReport, run_round
from lakebound.control.findings import Finding, Severity
from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from lakebound_airflow.notifications.channels import sender
from tests.support.airflow.receivers import Mailbox, WebhookEndpoint
from tests.support.streams.stand_ins import orders

SECRET = "canary-5a0c9d21"
GONE = Finding(
    cause="table-dropped:delta:lake.orders",
    severity=Severity.CRITICAL,
    what="table delta:lake.orders is gone <script>",
    since=1_700_000_000.0,
    evidence={"table": "delta:lake.orders"},
    runbook="table-dropped",
)
ROUTES = {
    "channels": {
        "hook": {"webhook": {"connection": "ops_hook"}},
        "mail": {"email": {"connection": "ops_mail", "to": ["ada@example.org", "bob@example.org"]}},
    },
    "routes": [{"severity": "warning", "to": ["hook", "mail"]}],
    "policy": {"open_after_seconds": 0, "resolve_after_seconds": 0, "remind_after_seconds": {"critical": 60}},
}


@pytest.fixture(name="hook")
def hook_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookEndpoint]:
    """The endpoint behind the connection ``ops_hook``; its path is the secret."""
    endpoint = WebhookEndpoint()
    connection = {"conn_type": "http", "host": f"http://127.0.0.1:{endpoint.port}/{SECRET}"}
    monkeypatch.setenv("AIRFLOW_CONN_OPS_HOOK", json.dumps(connection))
    yield endpoint
    endpoint.close()


@pytest.fixture(name="mailbox")
def mailbox_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """The server behind the connection ``ops_mail``."""
    box = Mailbox()
    extra = {"disable_ssl": True, "disable_tls": True, "from_email": "lakebound@example.org", "retry_limit": 0}
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_OPS_MAIL", json.dumps(connection))
    yield box
    box.close()


@pytest.fixture(name="control")
def control_fixture(settings: Settings) -> ControlFolder:
    """The folder of the pipeline ``orders``, with routes to both receivers."""
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump(ROUTES))
    return orders(settings).control


def run(settings: Settings, later_seconds: float = 0.0) -> RoundReport:
    """Run a round as if so much time had gone by."""
    return run_round(settings, sender(None), lambda: time.time() + later_seconds)
