"""``lakebound watch`` as a real process, without any Airflow: from trouble to the message, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs
from tests.support.airflow.alerting import GONE, ROUTES, SECRET, control_fixture, hook_fixture, run  # noqa: F401
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.airflow.watching import RunningWatch, watch_fixture  # noqa: F401
from tests.support.streams.command_line import answer, lakebound
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.stand_ins import ORDERS, settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.alerts.channel_check import channels_with_plain_addresses
from lakebound.alerts.doctor_processes import DoctorProcesses, LookReport, due_looks
from lakebound.alerts.lateness import LATE, write_late
from lakebound.alerts.outbox import NotDeliveredError
from lakebound.alerts.round import message_of_test, run_round
from lakebound.alerts.routes import AlertsSpec, HeartbeatSpec
from lakebound.control.applications import living_submission
from lakebound.control.findings import Finding, Severity, read_source, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import read_progress
from lakebound.settings import Settings
from lakebound.spec.table import TableSpec
from lakebound.tables.declared import owned_pipelines
from lakebound.tables.places import places_of
from lakebound_airflow.notifications.channels import ping, sender
from lakebound_airflow.watch.__main__ import alone
from lakebound_airflow.watch.looks import look_at_files
from lakebound_airflow.watch.sending import sending_from_here
from lakebound_airflow.watch.service import Watch

MESSAGES = 4 if LONG_FORM else 2
PULSE = "canary-7d31f0aa"
WATCHED = {
    "channels": {"hook": {"webhook": {"connection": "ops_hook"}}},
    "routes": [{"to": ["hook"]}],
    "heartbeat": {"connection": "pulse"},
}
ROUNDS_OF_AIRFLOW = """
import sys, time
from lakebound.settings import load_settings
from lakebound_airflow.operators.alerts import AlertsOperator

ends = time.monotonic() + float(sys.argv[1])
while time.monotonic() < ends:
    AlertsOperator(task_id="round").execute({})
    time.sleep(0.1)
"""
StartWatch = Callable[..., RunningWatch]


@pytest.fixture(autouse=True)
def connections(settings: Settings, control: ControlFolder, hook: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the webhook and the heartbeat are; the doctor has just looked."""
    monkeypatch.setenv("AIRFLOW_CONN_PULSE", json.dumps({"conn_type": "http", "host": f"http://127.0.0.1:{hook.port}/{PULSE}"}))
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump(WATCHED))
    write_findings(control, "doctor", [])


def tell_at_once(settings: Settings, **changes: object) -> None:
    """Write routes by which nothing is held back."""
    policy = {"open_after_seconds": 0, "resolve_after_seconds": 0}
    (settings.pipelines.parent / "alerts.yaml").write_text(yaml.safe_dump({**WATCHED, "policy": policy, **changes}))


def running(control: ControlFolder) -> int:
    """Start an application by hand, and return its process when it runs."""
    lakebound("run", "orders", "--detach")
    found = living_submission(control)
    assert found is not None and found.pid is not None
    wait_until(lambda: (p := read_progress(control)) and p.app_id == found.app_id, 30, "progress")
    return found.pid


def test_a_dead_application_is_told_without_any_airflow_and_sigterm_ends_the_watch(
    watch: StartWatch, control: ControlFolder, hook: WebhookEndpoint, record_property: Callable[[str, object], None]
) -> None:
    pid = running(control)
    watching = watch("--interval", "1")
    wait_until(lambda: hook.heartbeats, 60, "a heartbeat")
    assert hook.bodies == [], "nothing is wrong yet"

    os.killpg(pid, signal.SIGKILL)
    killed_at = time.time()
    wait_until(lambda: hook.bodies, 30, "the message")
    ((at, body),) = hook.received
    record_property("seconds from trouble to message", round(at - killed_at, 2))
    assert at - killed_at < 10
    assert (body["pipeline"], body["kind"], body["runbook"]) == ("orders", "opened", "application-dead")
    assert "died without an outcome" in body["reason"]
    assert body["app_id"] == (read_progress(control) or pytest.fail("no progress")).app_id
    beats = len(hook.heartbeats)
    wait_until(lambda: len(hook.heartbeats) > beats + 1, 30, "heartbeats of the rounds after the message")
    assert len(hook.bodies) == 1, "it is told once"

    second = watch("--once")
    assert second.ended() == 1
    assert f"process {watching.process.pid} (" in second.said and "already runs the watch" in second.said

    asked_at = time.monotonic()
    assert watching.stop() == 0, watching.said
    record_property("seconds from SIGTERM to the end", round(time.monotonic() - asked_at, 2))
    assert "Traceback" not in watching.said
    assert SECRET not in watching.said and PULSE not in watching.said
    assert {path for _, path in hook.heartbeats} == {f"/{PULSE}"}


def test_a_round_that_reached_nobody_is_not_good_and_gives_no_heartbeat(
    control: ControlFolder, hook: WebhookEndpoint, settings: Settings
) -> None:
    tell_at_once(settings)
    write_findings(control, "nightly_load", [GONE])
    hook.status = 503
    assert not Watch(settings, threading.Event()).once()
    assert not Watch(settings, threading.Event()).once(), "the message waits for its next try"
    assert hook.heartbeats == []
    hook.status = 200
    assert run(settings, 20).delivered.left == 0
    assert Watch(settings, threading.Event()).once()
    assert [path for _, path in hook.heartbeats] == [f"/{PULSE}"]


def test_a_watch_without_its_pipelines_is_not_good(settings: Settings, hook: WebhookEndpoint) -> None:
    assert not Watch(replace(settings, pipelines=settings.pipelines.with_name("nowhere")), threading.Event()).once()
    assert hook.heartbeats == []


def test_one_round_tells_before_a_look_that_hangs(
    control: ControlFolder, hook: WebhookEndpoint, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_at_once(settings)
    write_findings(control, "nightly_load", [GONE])
    stopping = threading.Event()
    monkeypatch.setattr(DoctorProcesses, "begin", lambda *_: None)
    monkeypatch.setattr(DoctorProcesses, "is_idle", property(lambda _: False))
    monkeypatch.setattr(DoctorProcesses, "reap", lambda _: (stopping.set(), [])[1])
    assert not Watch(settings, stopping).once(), "it was ended while the look hung"
    assert [body["runbook"] for body in hook.bodies] == ["table-dropped"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_a_round_of_another_user_is_refused(watch: StartWatch, settings: Settings) -> None:
    os.chown(settings.home, 60011, 60011)
    refused = watch("--once")
    assert refused.ended() == 1
    assert "is state of user 60011" in refused.said and "sudo -u 60011 lakebound watch" in refused.said


def test_a_watch_that_is_asked_to_end_sends_nothing_more(
    control: ControlFolder, hook: WebhookEndpoint, settings: Settings
) -> None:
    tell_at_once(settings)
    write_findings(control, "nightly_load", [GONE])
    stopping = threading.Event()
    send = sending_from_here(sender(None), stopping.is_set)
    stopping.set()
    assert run_round(settings, send).delivered.sent == ()
    assert hook.bodies == []
    stopping.clear()
    assert len(run_round(settings, send).delivered.sent) == 1, "and who comes next sends it at once"


def test_where_airflow_sends_too_each_message_comes_once(
    watch: StartWatch, control: ControlFolder, hook: WebhookEndpoint, settings: Settings
) -> None:
    tell_at_once(settings)
    watching = watch("--interval", "1")
    command = [sys.executable, "-c", ROUNDS_OF_AIRFLOW, "60"]
    airflow = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: hook.heartbeats, 60, "a round of the watch")
        for number in range(MESSAGES):
            found = Finding(cause=f"cause-{number}", severity=Severity.WARNING, what="w", since=time.time())
            write_findings(control, "my_check", [found])
            told = lambda number=number: any(a["cause"] == f"cause-{number}" for b in hook.bodies for a in b["alerts"])  # noqa: E731
            wait_until(told, 30, "a message")
    finally:
        airflow.kill()
        airflow.wait()
    assert watching.stop() == 0
    ids = [body["id"] for body in hook.bodies]
    assert len(ids) == len(set(ids)) >= MESSAGES
    opened = [one["cause"] for body in hook.bodies if body["kind"] == "opened" for one in body["alerts"]]
    assert opened == [f"cause-{number}" for number in range(MESSAGES)]


def test_a_connection_may_be_in_a_file_and_what_only_airflow_can_send_is_left_to_it(
    control: ControlFolder,
    hook: WebhookEndpoint,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "AIRFLOW_CONN_OPS_HOOK").write_text(os.environ["AIRFLOW_CONN_OPS_HOOK"] + "\n")
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(secrets))
    in_airflow = os.environ.pop("AIRFLOW_CONN_OPS_HOOK")
    channels = {**WATCHED["channels"], "other": {"webhook": {"connection": "in_airflow_only"}}}  # type: ignore[dict-item]
    tell_at_once(settings, channels=channels, routes=[{"to": ["hook", "other"]}])
    write_findings(control, "nightly_load", [GONE])
    capsys.readouterr()
    with capture_logs() as logged:  # a test before it in this process may have Airflow's logging configured
        assert not Watch(settings, threading.Event()).once(), "it could not tell everybody"
    said = str(logged) + capsys.readouterr().out
    assert "connection not found" in said and "in_airflow_only" in said and SECRET not in said
    assert [body["runbook"] for body in hook.bodies] == ["table-dropped"]
    (waiting,) = answer("alerts")["waiting"]
    assert "does not ask Airflow's database" in waiting["problem"]
    assert (waiting["channel"], waiting["tries"]) == ("other", 0), "the next process that can send it need not wait"
    monkeypatch.setenv("AIRFLOW_CONN_OPS_HOOK", in_airflow)
    monkeypatch.setenv("AIRFLOW_CONN_IN_AIRFLOW_ONLY", in_airflow)
    assert run(settings).delivered.left == 0
    assert len(hook.bodies) == 2


@pytest.mark.parametrize("in_file", [True, False])
def test_a_connection_may_be_an_address(
    in_file: bool, hook: WebhookEndpoint, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"http://127.0.0.1:{hook.port}/{PULSE}/now?a=b"
    if in_file:
        monkeypatch.delenv("AIRFLOW_CONN_PULSE")
        monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(tmp_path))
        (tmp_path / "AIRFLOW_CONN_PULSE").write_text(address + "\n")
    else:
        monkeypatch.setenv("AIRFLOW_CONN_PULSE", address)
    assert Watch(settings, threading.Event()).once()
    assert [path for _, path in hook.heartbeats] == [f"/{PULSE}/now?a=b"]


@pytest.mark.parametrize(
    "text", ["https://127.0.0.1:{port}", "http://127.0.0.1:{port}/" + SECRET, "http://https://127.0.0.1/x"]
)
def test_an_address_of_which_airflow_makes_another_one_is_refused(
    text: str, hook: WebhookEndpoint, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = AlertsSpec.model_validate(WATCHED)
    message = message_of_test("orders", time.time())
    for variable in ("AIRFLOW_CONN_OPS_HOOK", "AIRFLOW_CONN_PULSE"):
        monkeypatch.setenv(variable, text.format(port=hook.port))
    refused = (
        r"connection (ops_hook|pulse): its address cannot be used; write it as JSON \(docs/how-to/alerts.md#connections\)$"
    )
    with pytest.raises(NotDeliveredError, match=refused):
        sender(None)(alerts.channels["hook"], message)
    with pytest.raises(NotDeliveredError, match=refused):
        ping(HeartbeatSpec(connection="pulse"))
    assert hook.bodies == [] and hook.heartbeats == []
    monkeypatch.setenv("AIRFLOW_CONN_OPS_HOOK", json.dumps({"conn_type": "https", "host": f"http://127.0.0.1:{hook.port}/x"}))
    sender(None)(alerts.channels["hook"], message)


def test_check_names_an_address_that_airflow_cannot_use(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PULSE", f"https://h.example/{PULSE}")
    (named,) = channels_with_plain_addresses(AlertsSpec.model_validate(WATCHED))
    assert "heartbeat" in named and "AIRFLOW_CONN_PULSE" in named and PULSE not in named


def test_a_pipeline_that_hangs_or_is_wrong_keeps_no_other_from_being_looked_at(settings: Settings) -> None:
    # Kafka is not asked, as its password is missing: asking one that is away takes seconds.
    sasl = {"username": "app", "password": {"env": "LAKEBOUND_SECRET_NOT_SET"}}
    logs: dict[str, Path] = {}
    for name in ("hangs", "unreadable", "well"):
        tables = [{"format": "delta", "name": f"lake.{name}"}]
        logs[name] = places_of(settings, "default").delta_path(TableSpec.model_validate(tables[0])) / "_delta_log"
        connection = {"bootstrap_servers": "127.0.0.1:1", "sasl": sasl}
        spec = {**ORDERS, "pipeline": name, "connection": connection, "tables": tables}
        (settings.pipelines / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    (settings.pipelines / "broken.yaml").write_text("pipeline: broken\n")
    for name in ("hangs", "unreadable"):
        logs[name].mkdir(parents=True)
        (logs[name] / f"{0:020}.json").write_text("{torn")
    # A file that is opened and never answers, as on a disk of the network that is away.
    os.mkfifo(logs["hangs"] / "_last_checkpoint")
    names = ["hangs", "broken", "unreadable", "well"]
    processes, reports = DoctorProcesses(settings, look_seconds=5.0), dict[str, LookReport]()
    processes.begin(names)
    try:

        def all_reported() -> bool:
            reports.update({report.pipeline: report for report in processes.reap()})
            return processes.is_idle

        wait_until(all_reported, 60, "the looks")
    finally:
        processes.end()
    assert set(reports) == set(names)
    assert reports["hangs"] == LookReport("hangs", is_late=True)
    assert "topics: is missing" in (reports["broken"].problem or "")
    looked = [name for name in names if read_source(ControlFolder(settings.home, name), "doctor") is not None]
    assert looked == ["unreadable", "well"]
    assert due_looks(settings, names, time.time()) == ["hangs", "broken"]


def test_a_late_look_is_told_until_anybody_has_looked(settings: Settings, control: ControlFolder) -> None:
    spec = owned_pipelines(settings)
    write_late(settings, "orders", "a broker does not answer")
    assert look_at_files(settings, spec) == []
    (late,) = (read_source(control, LATE) or pytest.fail("nothing is written")).findings
    assert late.runbook == "health-late"
    write_findings(control, "doctor", [])
    assert look_at_files(settings, spec) == []
    assert (read_source(control, LATE) or pytest.fail("nothing is written")).findings == ()


class FailingDoctor(DoctorProcesses):
    """Every look that begins fails at once."""

    reports: tuple[LookReport, ...] = ()

    @property
    def is_idle(self) -> bool:
        return not self.reports

    def begin(self, pipelines: Iterable[str]) -> None:
        self.reports = tuple(LookReport(name, problem="the library broke") for name in pipelines)

    def reap(self) -> list[LookReport]:
        reports, self.reports = list(self.reports), ()
        return reports


@pytest.mark.parametrize(("minutes", "told"), [(6, 0), (11, 1)])
def test_a_pipeline_whose_looks_fail_is_told_when_it_was_not_checked_for_two_looks(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch, minutes: float, told: int
) -> None:
    file = control.findings / "doctor.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "at": time.time() - 60 * minutes}))
    monkeypatch.setattr("lakebound_airflow.watch.service.DoctorProcesses", FailingDoctor)
    assert not Watch(settings, threading.Event()).once()
    late = read_source(control, LATE)
    said = [one.what for one in late.findings] if late is not None else []
    assert [what.startswith("the doctor cannot check orders: the library broke") for what in said] == [True] * told


def test_the_watch_goes_on_where_nothing_can_be_locked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of the lock cannot be made: no mode keeps root from that, but a folder of its name does."""
    (tmp_path / "watch.lock").mkdir()
    with alone(tmp_path / "watch"):
        assert "a second watch would not be noticed" in capsys.readouterr().err
