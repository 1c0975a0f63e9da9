"""What the DAG ``alerts`` takes back that only ``lakebound watch`` wrote: the watch may not run any more."""

from __future__ import annotations

import time

import pytest
from tests.support.streams.stand_ins import ORDERS, settings_fixture  # noqa: F401

from lakebound.alerts.round import watch_folder
from lakebound.control.airflow_health import AirflowHealth
from lakebound.control.findings import Finding, Findings, Severity, read_source
from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from lakebound.tables.declared import owned_pipelines
from lakebound_airflow.notifications import channels
from lakebound_airflow.operators.alerts import AlertsOperator
from lakebound_airflow.watch.looks import look_at_files


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent, and no Airflow is known."""
    monkeypatch.setattr(channels, "send", lambda *_: None)
    monkeypatch.delenv("LAKEBOUND_AIRFLOW_URL", raising=False)


def causes(control: ControlFolder, source: str) -> list[str]:
    found = read_source(control, source)
    assert found is not None, "nothing was ever written"
    return [one.cause for one in found.findings]


def found_by_the_watch(control: ControlFolder, cause: str, *, minutes_ago: float) -> None:
    at = time.time() - 60 * minutes_ago
    finding = Finding(cause=cause, severity=Severity.WARNING, what="it is so", since=at)
    control.findings.mkdir(parents=True, exist_ok=True)
    written = Findings(source="airflow", pipeline=control.pipeline, at=at, findings=(finding,))
    (control.findings / "airflow.json").write_text(written.model_dump_json())


def test_a_pipelines_file_that_was_corrected_after_the_watch_ended_is_no_finding_any_more(settings: Settings) -> None:
    broken = settings.pipelines / "payments.yaml"
    broken.write_text("pipeline: payments\ntopics: [a]\nfreshnes: 5s\n")
    look_at_files(settings, owned_pipelines(settings))
    assert causes(watch_folder(settings), "pipeline_files") == ["payments"]
    AlertsOperator(task_id="round").execute({})
    assert causes(watch_folder(settings), "pipeline_files") == ["payments"], "it is still wrong"
    broken.unlink()
    AlertsOperator(task_id="round").execute({})
    assert causes(watch_folder(settings), "pipeline_files") == []


@pytest.mark.parametrize(("minutes_ago", "stand"), [(5, True), (16, False)])
def test_what_the_watch_found_of_airflow_is_looked_at_again_when_the_watch_is_gone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, minutes_ago: float, stand: bool
) -> None:
    control, everything = ControlFolder(settings.home, ORDERS["pipeline"]), watch_folder(settings)
    found_by_the_watch(control, "dag-paused", minutes_ago=minutes_ago)
    found_by_the_watch(everything, "unreachable", minutes_ago=minutes_ago)
    healthy = AirflowHealth("http://airflow", paused={})
    monkeypatch.setattr("lakebound_airflow.watch.looks.airflow_health", lambda _: healthy)
    AlertsOperator(task_id="round").execute({})
    assert causes(control, "airflow") == ["dag-paused"] * stand
    assert causes(everything, "airflow") == ["unreachable"] * stand


@pytest.mark.parametrize("health", [None, AirflowHealth("http://airflow", problem="no route to host")])
def test_where_airflow_cannot_be_asked_only_what_this_very_task_disproves_is_taken_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, health: AirflowHealth | None
) -> None:
    control, everything = ControlFolder(settings.home, ORDERS["pipeline"]), watch_folder(settings)
    found_by_the_watch(control, "dag-paused", minutes_ago=16)
    found_by_the_watch(everything, "triggerer", minutes_ago=16)
    monkeypatch.setattr("lakebound_airflow.watch.looks.airflow_health", lambda _: health)
    AlertsOperator(task_id="round").execute({})
    assert causes(control, "airflow") == ["dag-paused"] and causes(everything, "airflow") == ["triggerer"]
    found_by_the_watch(everything, "unreachable", minutes_ago=16)
    AlertsOperator(task_id="round").execute({})
    assert causes(everything, "airflow") == []


def test_airflow_is_not_asked_where_the_watch_found_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("lakebound_airflow.watch.looks.airflow_health")
    AlertsOperator(task_id="round").execute({})
    assert read_source(watch_folder(settings), "airflow") is None


def test_a_look_that_failed_names_no_applications_log(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[str]:
        raise KeyError("4711-1111-card")

    monkeypatch.setattr("lakebound_airflow.watch.looks.look_at", fail)
    (problem,) = look_at_files(settings, owned_pipelines(settings))
    assert problem.startswith("orders could not be checked: KeyError; its message is not shown") and "4711" not in problem
