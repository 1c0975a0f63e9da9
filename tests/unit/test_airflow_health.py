from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.streams import orders, settings_fixture  # noqa: F401

import lakebound.doctor.examine
from lakebound.control import read_json
from lakebound.doctor.diagnosis import Diagnosis, Finding
from lakebound.incidents import record_incident
from lakebound.settings import Settings
from lakebound_airflow import alerts
from lakebound_airflow.operators import health
from lakebound_airflow.operators.health import DIAGNOSIS_KEY, HEALTH_INTERVAL, HealthOperator, PipelineUnwellError

LOST = Finding(rule="retention-passed", verdict="needs_approval", sentence="7 offsets are gone", runbook="retention-passed")
DEAD = Finding(rule="application-dead", verdict="repairable", sentence="no application lives", runbook="application-dead")


class FakeTi:
    def __init__(self) -> None:
        self.dag_id, self.run_id, self.pushed = "checkpoint_health", "run-1", dict[str, Any]()

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(
        health, "alert", lambda _, __, verdict, reason, runbook: found.append((verdict, f"{reason} ({runbook})"))
    )
    return found


def context(*, at: float = 0.0, run_type: str = "scheduled") -> dict[str, Any]:
    logical_date = datetime.fromtimestamp(at, UTC)
    return {"ti": FakeTi(), "dag_run": SimpleNamespace(logical_date=logical_date, run_type=run_type)}


def saying(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    diagnosis = Diagnosis(subject="orders", findings=findings, numbers={"lag_records": 7})
    monkeypatch.setattr(lakebound.doctor.examine, "examine_pipeline", lambda spec, settings: diagnosis)


def test_what_repairs_itself_passes_and_what_asks_for_a_person_fails_with_sentence_and_runbook(
    settings: Settings, sent: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = HealthOperator(task_id="examine", pipeline="orders")
    saying(monkeypatch, DEAD)
    assert operator.execute(context()) == "repairable"
    assert sent == []
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
    ((verdict, reason),) = sent
    assert (verdict, reason.endswith("(retention-passed)")) == ("unwell", True)


def test_the_real_doctor_looks_and_a_broker_that_is_away_wakes_nobody(settings: Settings, sent: list[tuple[str, str]]) -> None:
    assert HealthOperator(task_id="examine", pipeline="orders").execute(context()) == "starting"
    assert not (settings.home / "pipelines").exists(), "it wrote something"


def test_each_incident_is_told_by_one_scheduled_run(
    settings: Settings, sent: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    saying(monkeypatch)
    operator = HealthOperator(task_id="examine", pipeline="orders")
    record_incident(orders(settings).control, "unclean_end", "it died", runbook="application-dead")
    first = time.time() - 60
    for number in range(4):
        operator.execute(context(at=first + number * HEALTH_INTERVAL.total_seconds()))
    operator.execute(context(at=first + HEALTH_INTERVAL.total_seconds(), run_type="manual"))
    assert sent == [("incident", "unclean_end: it died (application-dead)")]


def test_a_late_run_is_told_to_the_webhook_and_a_webhook_that_is_not_there_raises_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, Any]] = []

    class Notifier:
        def __init__(self, *, http_conn_id: str, json: dict[str, Any]) -> None:
            self.json = json

        async def async_notify(self, _: Any) -> None:
            told.append(self.json)

    monkeypatch.setattr("airflow.providers.http.notifications.http.HttpNotifier", Notifier)
    asyncio.run(alerts.health_is_late(minutes=10, context={"dag_run": {"run_id": "run-7"}}))
    assert (told[0]["verdict"], told[0]["run_id"]) == ("health_late", "run-7")
    monkeypatch.undo()
    monkeypatch.delenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", raising=False)
    asyncio.run(alerts.health_is_late(minutes=10))


def test_alerts_are_recorded_under_the_verdict_unwell(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", raising=False)
    control = orders(settings).control
    alerts.alert(context(), control, "unwell", "why")
    assert read_json(control.folder / "incidents.jsonl")["verdict"] == "unwell"
