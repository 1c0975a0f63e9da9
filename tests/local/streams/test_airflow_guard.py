"""The guard of a crash loop, and what an alert does that cannot be sent."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.airflow.task_instances import Alerts, FakeTi, States, context, control_fixture, sent_fixture, states_fixture  # noqa: F401
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401

from lakebound.alerts.store import AlertStore
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder
from lakebound_airflow.notifications import alerts
from lakebound_airflow.operators.guard import CrashLoopGuard, NothingLandedError


def test_the_guard_fails_a_run_that_landed_nothing_and_alerts_at_the_limit(
    control: ControlFolder, states: States, sent: Alerts
) -> None:
    guard = CrashLoopGuard(task_id="guard", pipeline="orders", limit=2, stream_task_id="stream")

    def end_of(run_id: str, *, landed: bool = False) -> dict[str, Any]:
        ti, states[run_id] = FakeTi(run_id, task_id="guard"), "failed"
        ti.pushed["verdict"] = {"end": "failed", "landed": landed}
        return context(ti)

    with pytest.raises(NothingLandedError, match="start 1 of at most 2 ended"):
        guard.execute(end_of("run-1"))
    guard.execute(end_of("run-2", landed=True))
    with pytest.raises(NothingLandedError, match="start 1 of at most 2 ended"):
        guard.execute(end_of("run-3"))
    with pytest.raises(NothingLandedError, match="start 1 of at most 2 ended"):
        guard.execute(end_of("run-3"))
    assert sent == []
    states["run-4"] = "failed"
    with pytest.raises(NothingLandedError, match=r"the last 2 starts ended.*lakebound start orders"):
        guard.execute(context(FakeTi("run-4", task_id="guard")))
    assert [verdict for verdict, _ in sent] == ["crash_loop"]
    change_desired(control, "running", reason="mended", by="ada")
    with pytest.raises(NothingLandedError, match="start 1 of at most 2 ended"):
        guard.execute(end_of("run-5"))
    succeeded = end_of("run-6")
    states["run-6"] = "success"
    guard.execute(succeeded)
    assert read_crash_loop(control).ends == ()


def test_an_alert_without_a_connection_or_with_a_broken_one_is_recorded_and_raises_nothing(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", '{"conn_type": "http", "host": "127.0.0.1", "port": 1}')
    alerts.alert(context(FakeTi()), control, "stalled", "{{ no template }}", "app-1")
    waiting = AlertStore(control.home).read().outbox
    assert [(one.message.alerts[0].cause, one.tries) for one in waiting] == [("stalled", 1)], "it is tried again"
    monkeypatch.delenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK")
    alerts.alert(context(FakeTi()), control, "failed", "why", "app-1")
    lines = (control.folder / "incidents.jsonl").read_text().splitlines()
    assert ["no template" in lines[0], '"failed"' in lines[1], len(lines)] == [True, True, 2]
    monkeypatch.setattr(alerts, "add_event", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    alerts.alert(context(FakeTi()), control, "failed", "why", "app-1")
