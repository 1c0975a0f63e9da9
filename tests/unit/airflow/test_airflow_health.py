from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

import pytest
import yaml
from airflow.sdk.module_loading import import_string
from tests.support.streams.stand_ins import ORDERS, orders, settings_fixture  # noqa: F401

import lakebound.inspection.doctor.examine
from lakebound.alerts.lateness import LATE, look_whether_health_is_late
from lakebound.alerts.round import watch_folder
from lakebound.alerts.wording import body_of
from lakebound.control.findings import read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import Submission, write_submission
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.settings import Settings
from lakebound_airflow.notifications import alerts, channels
from lakebound_airflow.operators.alerts import AlertsOperator
from lakebound_airflow.operators.health import DIAGNOSIS_KEY, HealthOperator, PipelineUnwellError

LOST = RuleFinding(rule="retention-passed", verdict="needs_approval", sentence="7 offsets are gone", runbook="retention-passed")
DEAD = RuleFinding(rule="application-dead", verdict="repairable", sentence="no application runs", runbook="application-dead")


class FakeTi:
    def __init__(self) -> None:
        self.dag_id, self.run_id, self.pushed = "checkpoint_health", "run-1", dict[str, Any]()

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def context() -> dict[str, Any]:
    return {"ti": FakeTi()}


def saying(monkeypatch: pytest.MonkeyPatch, *findings: RuleFinding) -> None:
    diagnosis = Diagnosis(subject="orders", findings=findings, numbers={"lag_records": 7})
    monkeypatch.setattr(lakebound.inspection.doctor.examine, "examine_pipeline", lambda spec, settings: diagnosis)


def found_by_doctor(settings: Settings) -> list[tuple[str, str]]:
    found = read_source(orders(settings).control, "doctor")
    assert found is not None
    return [(one.cause, one.severity.value) for one in found.findings]


def test_what_repairs_itself_passes_and_what_asks_for_a_person_fails_with_sentence_and_runbook(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = HealthOperator(task_id="examine", pipeline="orders")
    saying(monkeypatch, DEAD)
    assert operator.execute(context()) == "repairable"
    assert found_by_doctor(settings) == [("application-dead", "warning")]
    first = read_source(orders(settings).control, "doctor")
    saying(monkeypatch, DEAD, LOST)
    asked = context()
    with pytest.raises(PipelineUnwellError, match=r"needs approval\n7 offsets are gone \(runbook .*retention-passed\.md\)"):
        operator.execute(asked)
    diagnosis = asked["ti"].pushed[DIAGNOSIS_KEY]
    assert (diagnosis["verdict"], diagnosis["numbers"], len(diagnosis["findings"])) == (
        "needs_approval",
        {"lag_records": 7},
        2,
    )
    assert found_by_doctor(settings) == [("application-dead", "warning"), ("retention-passed", "critical")]
    second = read_source(orders(settings).control, "doctor")
    assert first is not None
    assert second is not None
    assert second.findings[0].since == first.findings[0].since, "since it was first found"


def test_the_real_doctor_looks_and_a_broker_that_is_away_fails_no_task(settings: Settings) -> None:
    control = ControlFolder(settings.home, "orders")
    write_submission(control, Submission(app_id="orders-g0-1", submitted_at=1.0))
    assert HealthOperator(task_id="examine", pipeline="orders").execute(context()) == "starting"
    assert ("broker-unavailable", "critical") in found_by_doctor(settings)
    control.submission.unlink()
    written = [path for path in (settings.home / "pipelines").rglob("*") if path.is_file()]
    assert [path.name for path in written] == ["doctor.json"], "it wrote something else"


def test_a_late_run_is_told_and_taken_back_when_the_doctor_has_looked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(channels, "send", lambda channel, message, links: told.append(body_of(message, links)))
    asyncio.run(alerts.health_is_late(minutes=10, context={"dag_run": {"run_id": "run-7"}}))
    (body,) = told
    assert (body["pipeline"], body["verdict"], body["kind"]) == ("*", "health_late", "opened")
    assert "within 10 minutes" in body["reason"]
    look_whether_health_is_late(settings)
    (found,) = read_source(watch_folder(settings), "watch").findings  # type: ignore[union-attr]
    assert found.cause == "health-late"
    saying(monkeypatch)
    HealthOperator(task_id="examine", pipeline="orders").execute(context())
    look_whether_health_is_late(settings)
    assert read_source(watch_folder(settings), "watch").findings == ()  # type: ignore[union-attr]


def test_a_run_that_failed_is_not_late_where_another_has_looked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(channels, "send", lambda channel, message, links: told.append(message))
    saying(monkeypatch)
    HealthOperator(task_id="examine", pipeline="orders").execute(context())
    asyncio.run(alerts.health_is_late(minutes=10))
    assert read_source(watch_folder(settings), "watch") is None
    assert not [message for message in told if "checkpoint_health" in str(message)]


def declared_long_ago(settings: Settings, pipeline: str) -> ControlFolder:
    file = settings.pipelines / f"{pipeline}.yaml"
    tables = [{"format": "delta", "name": f"lake.{pipeline}"}]
    file.write_text(yaml.safe_dump({**ORDERS, "pipeline": pipeline, "tables": tables}))
    os.utime(file, (time.time() - 3600, time.time() - 3600))
    return ControlFolder(settings.home, pipeline)


def late(control: ControlFolder) -> list[str]:
    found = read_source(control, LATE)
    return [] if found is None else [one.what for one in found.findings]


def test_a_pipeline_that_was_not_checked_is_told_though_another_one_was(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "send", lambda *_: None)
    never, long_ago = declared_long_ago(settings, "payments"), declared_long_ago(settings, "returns")
    saying(monkeypatch)
    for pipeline in ("orders", "returns"):
        HealthOperator(task_id="examine", pipeline=pipeline).execute(context())
    file = long_ago.findings / "doctor.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "at": time.time() - 601}))
    asyncio.run(alerts.health_is_late(minutes=10))
    assert read_source(watch_folder(settings), "watch") is None, "not all pipelines are late"
    assert late(ControlFolder(settings.home, "orders")) == []
    for control in (never, long_ago):
        (what,) = late(control)
        assert what.startswith(f"the doctor did not finish checking {control.pipeline} within the last 10 minutes")
    AlertsOperator(task_id="round").execute({})
    assert late(never) and late(long_ago), "nobody has looked since"
    HealthOperator(task_id="examine", pipeline="returns").execute(context())
    AlertsOperator(task_id="round").execute({})
    assert late(never) and late(long_ago) == []


def test_a_new_pipeline_is_not_late_before_the_doctor_could_look(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "send", lambda *_: None)
    new = declared_long_ago(settings, "payments")
    os.utime(settings.pipelines / "payments.yaml")
    saying(monkeypatch)
    HealthOperator(task_id="examine", pipeline="orders").execute(context())
    asyncio.run(alerts.health_is_late(minutes=10))
    assert late(new) == []


def test_a_late_run_raises_nothing_where_nothing_can_be_written(settings: Settings) -> None:
    settings.home.parent.mkdir(exist_ok=True)
    settings.home.write_text("a file, where a folder should be")
    asyncio.run(alerts.health_is_late(minutes=10))


def test_a_pipeline_nobody_has_looked_at_is_no_late_run(settings: Settings) -> None:
    look_whether_health_is_late(settings)
    assert not (settings.home / "alerts").exists()


def test_a_deadline_that_was_set_before_an_upgrade_finds_its_function() -> None:
    """Airflow's database names it by its path (``AsyncCallback``)."""
    assert import_string("lakebound_airflow.alerts.health_is_late") is alerts.health_is_late
