"""Alerts from a finding to people: by Airflow's notifiers, to a real HTTP endpoint and a real SMTP server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from tests.support.airflow.alerting import GONE, ROUTES, SECRET, control_fixture, hook_fixture, mailbox_fixture, run  # noqa: F401
from tests.support.airflow.receivers import Mailbox, WebhookEndpoint
from tests.support.streams.command_line import answer, lakebound
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401
from tests.support.waiting import HANGS_SECONDS

from lakebound.alerts.store import AlertState, AlertStore
from lakebound.alerts.wording import ID_HEADER
from lakebound.control.findings import write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.rollup_book import RollupBook
from lakebound.control.rollups import Bucket, Figures
from lakebound.report.daily import due_day
from lakebound.report.model import start_of
from lakebound.settings import Settings
from lakebound_airflow.operators.alerts import AlertsOperator

IN_A_PROCESS = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
from lakebound.settings import load_settings
from lakebound_airflow.notifications.alerts import tell
report = tell(load_settings())
print("REPORT", len(report.delivered.sent), report.delivered.failed)
"""


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
    assert (
        "undelivered messages for channel hook: 2; reason: connection ops_hook: ConnectionError" in lakebound("alerts").stdout
    )
    again = WebhookEndpoint(hook.port)
    try:
        assert run(settings, 25).delivered.sent == (), "not before its time"
        run(settings, 60)
        assert [body["kind"] for body in again.bodies] == ["opened", "resolved"]
    finally:
        again.close()
    assert answer("alerts")["waiting"] == []


@pytest.mark.parametrize("is_down", [pytest.param(False, marks=only_in_long_form), True])
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
        [sys.executable, "-c", IN_A_PROCESS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_SECONDS,
        check=False,
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
    assert (channel, "the service did not accept the message" in problem) == ("pager", True), problem
    hook.status = 200
    assert run(settings, 16).delivered.left == 0
    (body,) = hook.bodies
    assert body["title"] == "[lakebound] critical: orders: table delta:lake.orders is gone ‹script›"
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


def test_the_report_of_yesterday_is_sent_once_to_those_whose_route_names_it(
    settings: Settings, control: ControlFolder, hook: WebhookEndpoint, mailbox: Mailbox
) -> None:
    routes = [*ROUTES["routes"], {"severity": "info", "sources": ["report"], "to": ["mail"]}]
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump({**ROUTES, "routes": routes}))
    day = due_day(AlertState(), time.time())
    assert day is not None
    noon = int(start_of(day)) + 43_200
    RollupBook(control, noon).write([Bucket(noon, Figures(read=12, quarantined=3))], noon + 10)
    for _ in range(2):
        AlertsOperator(task_id="round").execute({})
    (mail,) = mailbox.mails
    assert (hook.bodies, mail["Subject"][:45]) == ([], "[lakebound] info: all pipelines: daily report")
    assert "12 records read" in mail.get_body(("html",)).get_content()
    assert (settings.home / "reports" / f"{day}.md").exists()


def test_a_test_goes_the_real_way_and_says_how_it_went(
    settings: Settings,
    control: ControlFolder,
    hook: WebhookEndpoint,
    mailbox: Mailbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    # The connection is in a file, as an address with a path.
    monkeypatch.delenv("AIRFLOW_CONN_OPS_HOOK")
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(tmp_path))
    (tmp_path / "AIRFLOW_CONN_OPS_HOOK").write_text(f"http://127.0.0.1:{hook.port}/{SECRET}/T\n")
    assert lakebound("alerts", "--test").stdout.splitlines()[:2] == ["hook: delivered", "mail: delivered"]
    assert (hook.bodies[0]["kind"], hook.bodies[0]["pipeline"]) == ("test", "orders")
    assert hook.paths == [f"/{SECRET}/T"]
    assert "test" in str(mailbox.mails[0]["Subject"])
    monkeypatch.delenv("AIRFLOW_CONN_OPS_MAIL")
    # What Airflow logs around the answer is not taken for it.
    monkeypatch.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "DEBUG")
    hook.status = 404
    body = answer("alerts", "orders", "--test", code=1)["channels"]
    assert body["hook"] == "connection ops_hook: the answer was 404"
    assert body["mail"] == "connection ops_mail: there is no such Airflow connection"
    assert "alerts.yaml has no channel 'pager'" in lakebound("alerts", "--test", "--channel", "pager", code=1).stderr
