"""Alerts whose routes, connections or receivers are wrong or not there: they wait, and somebody hears of it."""

from __future__ import annotations

import json

import pytest
import yaml
from tests.support.airflow.alerting import GONE, ROUTES, SECRET, control_fixture, hook_fixture, mailbox_fixture, run  # noqa: F401
from tests.support.airflow.receivers import Mailbox, WebhookEndpoint
from tests.support.streams.command_line import answer, lakebound
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401

from lakebound.alerts.outbox import KEPT_SECONDS
from lakebound.control.findings import write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.settings import Settings
from lakebound_airflow.notifications import alerts


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
    assert "no channel is set up, so 1 message reaches nobody: see docs/how-to/alerts.md" in shown
    assert "undelivered" not in shown
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
    problem = "connection pager: its URL names 2 services: give each service its own channel"
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
