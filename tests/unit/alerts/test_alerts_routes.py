"""``alerts.yaml``: what is wrong with it, with file, line and field; and who is told what."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.streams.command_line import answer, lakebound, settings

from lakebound.alerts.channel import channel_kinds
from lakebound.alerts.load import InvalidAlertsError, load_alerts
from lakebound.alerts.model import Message, MessageKind, ToldAlert
from lakebound.alerts.routes import DEFAULT_ALERTS, by_channel, connections_of
from lakebound.alerts.wording import Links, body_of, html_of, text_of, title_of
from lakebound.control.findings import Severity
from lakebound.settings import Settings

__all__ = ["settings"]

RIGHT = """
channels:
  ops: {webhook: {connection: ops_hook, endpoint: alerts}}
  mail: {email: {to: [ada@example.org], from: lakebound@example.org}}
  pager: {apprise: {env: PAGER_URL}}
routes:
  - {severity: critical, to: [pager, ops]}
  - {severity: warning, pipelines: ["orders*"], to: [mail]}
  - {severity: info, sources: [validation], to: [mail, ops]}
policy: {open_after_seconds: 30, remind_after_seconds: {warning: null}}
runbooks: https://wiki.example.org/{runbook}
heartbeat: {connection: pulse}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "alerts.yaml"
    path.write_text(text.lstrip())
    return path


def told(severity: Severity, source: str = "doctor", what: str = "it is broken") -> ToldAlert:
    return ToldAlert(
        id=f"{severity}-{source}", source=source, cause="c", severity=severity, what=what, since=0.0, runbook="lag"
    )


def test_every_route_that_fits_counts_and_each_channel_gets_what_is_routed_to_it(tmp_path: Path) -> None:
    alerts = load_alerts(write(tmp_path, RIGHT))
    assert (alerts.policy.open_after_seconds, alerts.policy.remind_after_seconds.warning) == (30, None)
    assert connections_of(alerts) == ("ops_hook", "smtp_default", "pulse")
    found = [told(Severity.CRITICAL), told(Severity.WARNING), told(Severity.INFO), told(Severity.INFO, "validation")]
    message = Message(id="m", kind=MessageKind.OPENED, pipeline="orders_eu", at=0.0, alerts=tuple(found))
    ways = {name: [one.id for one in own.alerts] for name, own in by_channel(message, alerts).items()}
    assert ways == {
        "pager": ["critical-doctor"],
        "ops": ["critical-doctor", "info-validation"],
        "mail": ["critical-doctor", "warning-doctor", "info-validation"],
    }
    other = message.model_copy(update={"pipeline": "readings"})
    assert [one.id for one in by_channel(other, alerts)["mail"].alerts] == ["info-validation"]
    test = message.model_copy(update={"kind": MessageKind.TEST})
    assert set(by_channel(test, alerts)) == {"ops", "mail", "pager"}


def test_the_source_that_told_an_alert_first_decides_its_way_and_is_not_shown(tmp_path: Path) -> None:
    alerts = load_alerts(write(tmp_path, RIGHT))
    alert = told(Severity.INFO).model_copy(update={"told_by": "validation"})
    message = Message(id="m", kind=MessageKind.RESOLVED, pipeline="readings", at=0.0, alerts=(alert,))
    assert set(by_channel(message, alerts)) == {"mail", "ops"}
    (shown,) = body_of(message, Links())["alerts"]
    assert (shown["source"], "told_by" in shown) == ("doctor", False)


def test_without_a_file_one_webhook_is_told_what_is_worth_it(tmp_path: Path) -> None:
    alerts = load_alerts(tmp_path / "alerts.yaml")
    assert alerts == DEFAULT_ALERTS
    (channel,) = alerts.channels.values()
    assert (channel.kind.connection, channel.is_optional) == ("lakebound_webhook", True)
    assert type(channel.kind) is channel_kinds()["webhook"]
    message = Message(
        id="m", kind=MessageKind.OPENED, pipeline="p", at=0.0, alerts=(told(Severity.WARNING), told(Severity.INFO))
    )
    assert [len(own.alerts) for own in by_channel(message, alerts).values()] == [1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("channels: [a", "alerts.yaml:1: YAML cannot be read here"),
        ("- a", "alerts.yaml:1: must be keys and values: channels, routes, policy, disks, runbooks, heartbeat"),
        (RIGHT.replace("routes:", "rotues:"), "alerts.yaml:5: rotues: unknown key; did you mean 'routes'?"),
        (
            RIGHT.replace("connection: ops_hook", "conection: ops_hook"),
            "alerts.yaml:2: channels.ops.webhook.conection: unknown",
        ),
        (RIGHT.replace("endpoint: alerts", "connection: x"), "alerts.yaml:2: channels.ops.webhook.connection: is given twice"),
        (
            RIGHT.replace("to: [pager, ops]", "to: [pagr]"),
            "routes[0].to: there is no channel 'pagr'; known channels: mail, ops, pager",
        ),
        (
            RIGHT.replace("severity: critical", "severity: loud"),
            "alerts.yaml:6: routes[0].severity: must be 'info', 'warning' or 'critical'",
        ),
        (RIGHT.replace("ada@example.org", "ada"), "alerts.yaml:3: channels.mail.email.to: 'ada' is not an address"),
        (RIGHT.replace("{env: PAGER_URL}", "{}"), "alerts.yaml:4: channels.pager.apprise: give either connection or env"),
        (
            RIGHT.replace("{apprise: {env: PAGER_URL}}", "{}"),
            "alerts.yaml:4: channels.pager: give one of apprise, ",
        ),
        (RIGHT.replace("connection: pulse", "url: https://x/secret"), "alerts.yaml:11: heartbeat.url: unknown key"),
        (RIGHT.replace("/{runbook}", "/"), "alerts.yaml:10: runbooks: must hold {runbook}"),
        (
            RIGHT.replace("open_after_seconds: 30", "open_after_seconds: -1"),
            "alerts.yaml:9: policy.open_after_seconds: must be",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_field(settings: Settings, text: str, problem: str) -> None:
    path = write(settings.pipelines.parent, text)
    with pytest.raises(InvalidAlertsError) as caught:
        load_alerts(path)
    assert problem in str(caught.value)
    found = answer("check", "--static", code=1)["problems"]
    assert found == caught.value.problems
    assert answer("check", "orders", "--static")["ok"], "not this file's"
    assert problem in lakebound("check", str(path), "--static", code=1).stdout


def test_check_says_that_it_is_right(settings: Settings) -> None:
    path = write(settings.pipelines.parent, RIGHT)
    assert lakebound("check", str(path)).stdout == f"{path}: valid\n"
    assert answer("check", "--static")["ok"]


def test_a_message_says_all_that_a_person_needs_and_escapes_what_comes_from_outside() -> None:
    lead = ToldAlert(
        id="orders/stall/1",
        source="stream",
        cause="stalled",
        severity=Severity.CRITICAL,
        what="<b>app-1</b> has been silent for 61 s",
        since=1_700_000_000.0,
        evidence={"app_id": "app-1", "log_url": "https://airflow/log", "run_id": None},
        runbook="stall",
        done="the next run starts another",
        also=("far behind",),
    )
    message = Message(id="m-1", kind=MessageKind.REMINDER, pipeline="orders", at=1.0, alerts=(lead, told(Severity.WARNING)))
    links = Links(airflow="http://127.0.0.1:8080/", runbooks="https://wiki/{runbook}")
    body = body_of(message, links)
    expected = {
        "id": "m-1",
        "kind": "reminder",
        "pipeline": "orders",
        "verdict": "stalled",
        "severity": "critical",
        "reason": lead.what,
        "runbook": "stall",
        "runbook_link": "https://wiki/stall",
        "page": "http://127.0.0.1:8080/lakebound/pipelines/orders",
        "dag": "http://127.0.0.1:8080/dags/ingest__orders",
        "app_id": "app-1",
        "dag_id": None,
        "log_url": "https://airflow/log",
        "done": "the next run starts another",
        "since": 1_700_000_000.0,
    }
    assert {key: body[key] for key in expected} == expected
    assert [one["dag"] for one in body["alerts"]] == [body["dag"], "http://127.0.0.1:8080/dags/checkpoint_health"]
    assert Links(airflow="http://127.0.0.1:8080").runbook("stall") == "http://127.0.0.1:8080/lakebound/runbooks/stall"
    assert body_of(message.model_copy(update={"kind": MessageKind.RESOLVED}), links)["verdict"] == "resolved"
    assert title_of(message) == "[lakebound] critical: orders: still: <b>app-1</b> has been silent for 61 s (and 1 more)"
    text, page = text_of(message, Links()), html_of(message, links)
    for part in (
        "2023-11-14 22:13:20 UTC",
        "app_id=app-1",
        "far behind",
        "include/runbooks/stall.md",
        "the next run starts another",
    ):
        assert part in text
    assert "&lt;b&gt;app-1&lt;/b&gt;" in page
    assert "<b>app-1" not in page
    assert '<a href="https://wiki/stall">' in page
