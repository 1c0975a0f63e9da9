"""Alerts from a finding to people: by Airflow's notifiers, to a real HTTP endpoint and a real SMTP server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.command_line import answer, lakebound
from tests.receivers import Mailbox, WebhookEndpoint
from tests.streams import orders, settings_fixture  # noqa: F401

from lakebound.alerts.outbox import KEPT_SECONDS
from lakebound.alerts.round import RoundReport, run_round
from lakebound.alerts.store import AlertStore
from lakebound.control import ControlFolder
from lakebound.embedded.ports import free_port
from lakebound.findings import Finding, Severity, write_findings
from lakebound.settings import Settings
from lakebound_airflow import alerts
from lakebound_airflow.channels import ID_HEADER, sender
from lakebound_airflow.operators.alerts import AlertsOperator

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
IN_A_PROCESS = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
from lakebound.settings import load_settings
from lakebound_airflow.alerts import tell
report = tell(load_settings())
print("REPORT", len(report.delivered.sent), report.delivered.failed)
"""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookEndpoint]:
    """The endpoint behind the connection ``ops_hook``; its path is the secret."""
    endpoint = WebhookEndpoint()
    connection = {"conn_type": "http", "host": f"http://127.0.0.1:{endpoint.port}/{SECRET}"}
    monkeypatch.setenv("AIRFLOW_CONN_OPS_HOOK", json.dumps(connection))
    yield endpoint
    endpoint.close()


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """The server behind the connection ``ops_mail``."""
    box = Mailbox()
    extra = {"disable_ssl": True, "disable_tls": True, "from_email": "lakebound@example.org", "retry_limit": 0}
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_OPS_MAIL", json.dumps(connection))
    yield box
    box.close()


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    """The folder of the pipeline ``orders``, with routes to both receivers."""
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump(ROUTES))
    return orders(settings).control


def run(settings: Settings, later_seconds: float = 0.0) -> RoundReport:
    """Run a round as if so much time had gone by."""
    return run_round(settings, sender(None), lambda: time.time() + later_seconds)


def test_alert_reminder_and_resolution_reach_an_endpoint_and_a_mailbox(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    write_findings(control, "doctor", [GONE])
    run(settings)
    run(settings, 30)
    run(settings, 61)
    run(settings, 70)
    write_findings(control, "doctor", [])
    run(settings, 80)
    run(settings, 90)
    assert [body["kind"] for body in hook.bodies] == ["opened", "reminder", "resolved"]
    assert [body["verdict"] for body in hook.bodies] == ["unwell", "unwell", "resolved"]
    assert set(hook.paths) == {f"/{SECRET}"}
    first = hook.bodies[0]
    assert (first["pipeline"], first["severity"], first["runbook"]) == ("orders", "critical", "table-dropped")
    assert first["alerts"][0]["evidence"] == {"table": "delta:lake.orders"}
    subjects = [str(mail["Subject"]) for mail in mailbox.mails]
    assert subjects == [
        "[lakebound] critical: orders: table delta:lake.orders is gone <script>",
        "[lakebound] critical: orders: still: table delta:lake.orders is gone <script>",
        "[lakebound] critical: orders: resolved: table delta:lake.orders is gone <script>",
    ]
    assert mailbox.recipients[0] == ["ada@example.org", "bob@example.org"]
    assert [mail[ID_HEADER] for mail in mailbox.mails] == [body["id"] for body in hook.bodies]
    page = mailbox.mails[0].get_body(("html",))
    assert page is not None
    assert "include/runbooks/table-dropped.md" in page.get_content()
    assert "is gone &lt;script&gt;" in page.get_content()
    assert AlertStore(settings.home).read().outbox == ()


def test_an_endpoint_that_is_down_for_a_while_loses_no_alert_and_gets_them_in_order(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    hook.status = 503
    write_findings(control, "doctor", [GONE])
    report = run(settings)
    assert report.delivered.failed == (("hook", "connection ops_hook: the answer was 503"),)
    assert len(mailbox.mails) == 1, "the other channel does not wait"
    hook.close()
    write_findings(control, "doctor", [])
    assert run(settings, 20).delivered.failed == (("hook", "connection ops_hook: ConnectionError"),)
    assert [one["kind"] for one in answer("alerts")["waiting"]] == ["opened", "resolved"]
    assert "2 messages wait for channel hook: connection ops_hook: ConnectionError" in lakebound("alerts").stdout
    again = WebhookEndpoint(hook.port)
    try:
        assert run(settings, 25).delivered.sent == (), "not before its time"
        run(settings, 60)
        assert [body["kind"] for body in again.bodies] == ["opened", "resolved"]
    finally:
        again.close()
    assert answer("alerts")["waiting"] == []


@pytest.mark.parametrize("is_down", [False, True])
def test_the_secret_in_the_address_is_in_no_log(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox, tmp_path: Path, is_down: bool
) -> None:
    """In a process that logs everything that anybody has to say."""
    write_findings(control, "doctor", [GONE])
    if is_down:
        hook.close()
    environment = {
        **os.environ,
        **settings.environment(),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
    }
    answered = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert answered.returncode == 0, answered.stderr[-3000:]
    # Airflow logs to the standard output, too, and not only before.
    (report,) = (line for line in answered.stdout.splitlines() if line.startswith("REPORT "))
    if is_down:
        assert report == "REPORT 1 (('hook', 'connection ops_hook: ConnectionError'),)"
    else:
        assert report == "REPORT 2 ()"
        assert hook.paths == [f"/{SECRET}"], "the secret was used"
    assert SECRET not in answered.stdout
    assert SECRET not in answered.stderr
    files = [Path(folder, name) for folder, _, names in os.walk(tmp_path) for name in names]
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("by", ["connection", "environment"])
def test_apprise_delivers_and_what_it_does_not_deliver_is_tried_again(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Apprise's service ``json`` is a plain POST: a real endpoint stands for a hundred of them."""
    url = f"json://127.0.0.1:{hook.port}/{SECRET}"
    monkeypatch.setenv("PAGER_URL", url)
    connection = {"conn_type": "apprise", "extra": {"config": {"path": url, "tag": "all"}}}
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    apprise = {"connection": "pager"} if by == "connection" else {"env": "PAGER_URL"}
    routes = {**ROUTES, "channels": {"pager": {"apprise": apprise}}, "routes": [{"to": ["pager"]}]}
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump(routes))
    write_findings(control, "doctor", [GONE])
    hook.status = 500
    ((channel, problem),) = run(settings).delivered.failed
    assert (channel, "no service took it" in problem) == ("pager", True), problem
    hook.status = 200
    assert run(settings, 16).delivered.left == 0
    (body,) = hook.bodies
    assert body["title"] == "[lakebound] critical: orders: table delta:lake.orders is gone <script>"
    assert "include/runbooks/table-dropped.md" in body["message"]
    monkeypatch.delenv("PAGER_URL")
    monkeypatch.delenv("AIRFLOW_CONN_PAGER")
    write_findings(control, "doctor", [])
    assert run(settings, 20).delivered.left == 1, "nothing is lost without its connection"


def test_the_operator_looks_tells_and_says_what_waits(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    write_findings(control, "doctor", [GONE])
    hook.status = 500
    result = AlertsOperator(task_id="round").execute({})
    assert ([one["kind"] for one in result["said"]], result["waiting"]) == (["opened"], 1)
    assert answer("alerts")["alerts"][0]["what"] == GONE.what
    assert AlertsOperator(task_id="round").execute({})["said"] == []


def test_a_test_goes_the_real_way_and_says_how_it_went(
    settings: Settings,
    control: ControlFolder,
    hook: WebhookEndpoint,
    mailbox: Mailbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    assert lakebound("alerts", "--test").stdout.splitlines()[:2] == ["hook: delivered", "mail: delivered"]
    assert (hook.bodies[0]["kind"], hook.bodies[0]["pipeline"]) == ("test", "orders")
    assert "test" in str(mailbox.mails[0]["Subject"])
    monkeypatch.delenv("AIRFLOW_CONN_OPS_MAIL")
    # What Airflow logs around the answer is not taken for it.
    monkeypatch.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "DEBUG")
    hook.status = 404
    body = answer("alerts", "orders", "--test", code=1)["channels"]
    assert body["hook"] == "connection ops_hook: the answer was 404"
    assert body["mail"] == "connection ops_mail: there is no such Airflow connection"
    assert "there is no channel 'pager'" in lakebound("alerts", "--test", "--channel", "pager", code=1).stderr


def test_a_mistake_in_the_routes_is_told_by_the_default_webhook(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.pipelines.parent / "alerts.yaml").write_text("channels: {}\n")
    endpoint = WebhookEndpoint()
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", f"http://127.0.0.1:{endpoint.port}/")
    try:
        run(settings)
        report = run(settings, 61)
        assert [(body["pipeline"], body["runbook"]) for body in endpoint.bodies] == [("*", "alerts-file")]
        assert "alerts.yaml:1: routes: is missing" in "\n".join(report.problems)
    finally:
        endpoint.close()


def test_while_the_routes_are_wrong_what_waits_for_their_channels_stays(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    hook.status = 503
    write_findings(control, "doctor", [GONE])
    run(settings)
    routes = settings.pipelines.parent / "alerts.yaml"
    right = routes.read_text()
    routes.write_text("channels: {}\n")
    hook.status = 200
    run(settings, 20)
    assert hook.bodies == []
    assert [one["channel"] for one in answer("alerts")["waiting"]] == ["hook"]
    routes.write_text(right)
    run(settings, 21)
    assert [body["kind"] for body in hook.bodies] == ["opened"]
    renamed = {**ROUTES, "channels": {"other": {"webhook": {"connection": "ops_hook"}}}, "routes": [{"to": ["other"]}]}
    routes.write_text(yaml.safe_dump(renamed))
    hook.status = 503
    write_findings(control, "doctor", [])
    run(settings, 22)
    run(settings, 23)
    assert [one["channel"] for one in answer("alerts")["waiting"]] == ["other"]
    routes.write_text(right)
    run(settings, 50)
    assert [one["channel"] for one in answer("alerts")["waiting"]] == ["other"], "the file may be away for a moment"
    run(settings, 60 + KEPT_SECONDS)
    assert answer("alerts")["waiting"] == [], "a channel that was taken out gets nothing any more"


def test_without_a_file_and_without_its_connection_messages_wait_and_nothing_is_wrong(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.pipelines.parent / "alerts.yaml").unlink()
    write_findings(control, "doctor", [GONE])
    run(settings)
    delivered = run(settings, 61).delivered
    assert (delivered.failed, delivered.left) == ((), 0)
    shown = lakebound("alerts").stdout
    assert "1 messages wait for channel lakebound_webhook: connection lakebound_webhook: there is no such" in shown
    assert "and there need not be one" in shown
    endpoint = WebhookEndpoint()
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", f"http://127.0.0.1:{endpoint.port}/")
    try:
        run(settings, 90)
        assert [body["kind"] for body in endpoint.bodies] == ["opened"]
    finally:
        endpoint.close()


def test_a_connection_with_two_services_is_refused_and_neither_gets_a_message(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"json://127.0.0.1:{port}/{SECRET}" for port in (hook.port, free_port())]
    connection = {"conn_type": "apprise", "extra": {"config": [{"path": url, "tag": "all"} for url in urls]}}
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    routes = {**ROUTES, "channels": {"pager": {"apprise": {"connection": "pager"}}}, "routes": [{"to": ["pager"]}]}
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump(routes))
    write_findings(control, "doctor", [GONE])
    problem = "connection pager: it names 2 services: give each service a channel of its own"
    assert run(settings).delivered.failed == (("pager", problem),)
    assert hook.bodies == []


def test_a_port_without_a_listener_delays_an_alert_and_hides_nothing(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.pipelines.parent / "alerts.yaml").unlink()
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", f"http://127.0.0.1:{free_port()}/")
    write_findings(control, "doctor", [GONE])
    run(settings)
    assert run(settings, 61).delivered.left == 1
    assert alerts.tell(settings).delivered.left == 1
