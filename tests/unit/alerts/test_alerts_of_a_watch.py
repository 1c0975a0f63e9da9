"""What a watch finds that no task of Airflow tells it: bad ends, a dead scheduler, paused DAGs, wrong files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lakebound.alerts.airflow_findings import PausedFacts, airflow_findings, paused_findings
from lakebound.alerts.concerns import DEAD, PAUSED, concern_of, follows, is_symptom
from lakebound.alerts.connection_places import as_airflow_reads_it, is_at_hand
from lakebound.alerts.model import Memory, Policy
from lakebound.alerts.pipeline_file_findings import pipeline_file_findings
from lakebound.alerts.reconcile import reconcile
from lakebound.alerts.stream_findings import StreamFacts, ended_event, event
from lakebound.control.airflow_health import COMPONENTS, AirflowHealth, ComponentHealth
from lakebound.control.applications import last_application
from lakebound.control.desired import Desired
from lakebound.control.findings import Findings, Severity
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import acquire, release
from lakebound.control.progress import Outcome, Progress, TableProgress
from lakebound.control.submission import Submission, write_submission
from lakebound.settings import YamlAccess
from lakebound.spec.load import LoadedPipelines

NOW = 10_000.0
DIED = Submission(app_id="app-1", pid=7, pid_started_at=1.0, submitted_at=NOW - 1000)
PROGRESS = Progress(
    pipeline="orders",
    app_id="app-1",
    state="running",
    started_at=NOW - 990,
    updated_at=NOW - 5,
    tables={"t": TableProgress(version="1", committed_at=NOW - 6, rows=1)},
)
ADDRESS = "http://127.0.0.1:8080"


def outcome(verdict: str, **changes: object) -> Outcome:
    body = {"app_id": "app-1", "verdict": verdict, "reason": "because", "started_at": NOW - 990, "ended_at": NOW - 5}
    return Outcome.model_validate({**body, **changes})


def facts(
    found: Outcome | None = None,
    dead: Submission | None = DIED,
    desired: Desired | None = None,
    progress: Progress | None = PROGRESS,
) -> StreamFacts:
    return StreamFacts(desired or Desired(), progress, found, dead)


@pytest.mark.parametrize(
    ("seen", "cause", "runbook"),
    [
        (facts(), "incident", "application-dead"),
        (facts(progress=None), "failed", "application-dead"),
        (facts(outcome("failed")), "incident", "application-dead"),
        (facts(outcome("failed", error_class="BrokerUnavailableError")), "incident", "broker-unavailable"),
        (facts(outcome("refused", page="topic-recreated")), "refused", "topic-recreated"),
    ],
)
def test_a_bad_end_that_no_task_noted_is_an_event(seen: StreamFacts, cause: str, runbook: str) -> None:
    found = ended_event("orders", (), seen, NOW)
    assert found is not None
    assert (found.cause, found.runbook, found.evidence["app_id"]) == (cause, runbook, "app-1")
    assert "ingest__" not in found.done, "nobody is known to start another"
    noted = event("orders", "stalled", "silent", runbook="stall", now=NOW, facts={"app_id": "app-1"})
    assert ended_event("orders", (noted,), seen, NOW) is None, "the task that had it in care was first"


@pytest.mark.parametrize(
    "seen",
    [
        facts(dead=None),
        facts(outcome("stopped")),
        facts(outcome("completed")),
        facts(outcome("superseded")),
        facts(desired=Desired(state="stopped")),
        facts(desired=Desired(state="held")),
        facts(desired=Desired(since=NOW - 1)),
        facts(dead=Submission(app_id="app-2", submitted_at=NOW - 2)),
    ],
    ids=["lives", "stopped", "completed", "superseded", "not wanted", "held", "before the request", "is being started"],
)
def test_no_other_end_is_an_event(seen: StreamFacts) -> None:
    assert ended_event("orders", (), seen, NOW) is None


def health(**changes: object) -> AirflowHealth:
    components = dict.fromkeys(COMPONENTS, ComponentHealth(is_healthy=True, age_seconds=1.0))
    return AirflowHealth(ADDRESS, **{"components": components, "paused": {"ingest__orders": True}, **changes})  # type: ignore[arg-type]


def test_a_dead_component_is_told_with_what_it_means() -> None:
    assert airflow_findings(None, NOW) == airflow_findings(health(), NOW) == ()
    dead = {**health().components, "scheduler": ComponentHealth(False, 95.0), "dag_processor": ComponentHealth(False)}
    scheduler, processor = airflow_findings(health(components=dead), NOW)
    assert (scheduler.cause, scheduler.severity, scheduler.runbook) == ("scheduler", Severity.CRITICAL, "airflow-down")
    assert "scheduler (last sign of life 95 s ago); the streams continue, but no application that ends" in scheduler.what
    assert (processor.cause, processor.severity) == ("dag_processor", Severity.WARNING)
    (away,) = airflow_findings(health(problem=f"{ADDRESS} does not answer\n" + "x" * 5000), NOW)
    assert (away.cause, away.severity) == ("unreachable", Severity.CRITICAL)
    assert "x" not in away.what.replace("Airflow", "")[:40] and len(away.what) < 500


def test_an_airflow_that_is_away_for_a_moment_is_not_told_and_its_end_is() -> None:
    memory, policy, told = Memory(), Policy(), []
    dead = health(components={**health().components, "scheduler": ComponentHealth(False, 40.0)})
    looks = [
        (0, dead),
        (60, health()),
        (120, dead),
        (180, dead),
        (240, dead),
        (300, dead),
        (360, health()),
        (420, health()),
        (480, health()),
    ]
    for seconds, seen in looks:
        now = NOW + seconds
        found = Findings(source="airflow", pipeline="*", at=now, findings=airflow_findings(seen, now))
        memory, messages = reconcile(memory, [found], policy, now)
        told += [(seconds, message.kind.value) for message in messages]
    assert told == [(300, "opened"), (480, "resolved")]


@pytest.mark.parametrize(
    ("is_wanted", "lives", "said"),
    [(True, False, "so nothing starts it"), (True, True, "so nothing starts it again when it ends"), (False, True, None)],
)
def test_a_paused_dag_is_wrong_where_the_pipeline_is_wanted(is_wanted: bool, lives: bool, said: str | None) -> None:
    found = paused_findings("orders", health(), PausedFacts(is_wanted, lives), NOW)
    assert found is not None
    assert [said in one.what and "lakebound start orders" in one.what for one in found if said] == ([True] if said else [])
    assert paused_findings("orders", health(paused={"ingest__orders": False}), PausedFacts(True, lives), NOW) == ()
    assert paused_findings("orders", health(paused=None), PausedFacts(True, lives), NOW) is None, "it is not known"


def test_a_paused_dag_is_no_second_alert_of_a_crash_loop_or_a_dead_application() -> None:
    (found,) = paused_findings("orders", health(), PausedFacts(True, False), NOW) or ()
    assert concern_of("airflow", found) == PAUSED
    assert is_symptom(PAUSED) and follows(PAUSED, DEAD) and follows(PAUSED, "crash-loop") and not follows(DEAD, PAUSED)


def test_a_wrong_file_is_told_without_what_is_in_it() -> None:
    wrong = LoadedPipelines(mistakes={Path("/p/orders.yaml"): ["orders.yaml:3: value: 'secret' is wrong", "another"]})
    (found,) = pipeline_file_findings(wrong, NOW)
    assert found.what.startswith("orders.yaml has mistakes (2)") and "secret" not in found.model_dump_json()


def test_a_connection_is_at_hand_in_a_variable_or_a_file_of_its_name(tmp_path: Path) -> None:
    access = YamlAccess(secrets_folder=tmp_path)
    (tmp_path / "AIRFLOW_CONN_IN_FILE").write_text("http://127.0.0.1")
    assert is_at_hand("ops_hook", {"AIRFLOW_CONN_OPS_HOOK": "http://127.0.0.1"}, access)
    assert is_at_hand("in_file", {}, access)
    assert not is_at_hand("ops_hook", {}, access)
    assert not is_at_hand("../../etc/passwd", {}, access)


@pytest.mark.parametrize(
    "text", ["https://h.example", "https://h.example/", "https://h.example/services/T", "http://h:1/beat?a=b"]
)
def test_an_address_is_kept_as_it_stands(text: str) -> None:
    assert json.loads(as_airflow_reads_it(f" {text}\n")) == {"conn_type": "http", "host": text}


@pytest.mark.parametrize(
    "text", ['{"host": "h"}', "https://h.example/https", "http://h:80", "smtp://h/x", "http://https%3A%2F%2Fh"]
)
def test_a_connection_in_a_form_of_airflow_stays_as_it_is(text: str) -> None:
    assert as_airflow_reads_it(text) == text


def test_an_application_that_only_the_lease_names_is_the_last_one(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert last_application(control) is None
    lease = acquire(control, "app-2", 20.0)
    found = last_application(control)
    assert found is not None and (found.app_id, found.pid) == ("app-2", os.getpid())
    write_submission(control, Submission(app_id="app-1", submitted_at=lease.acquired_at - 10))
    assert (last_application(control) or pytest.fail("none")).app_id == "app-2"
    write_submission(control, Submission(app_id="app-3", submitted_at=lease.acquired_at + 10))
    assert (last_application(control) or pytest.fail("none")).app_id == "app-3"
    write_submission(control, Submission(app_id="app-1", submitted_at=lease.acquired_at - 10))
    release(control, lease)
    assert (last_application(control) or pytest.fail("none")).app_id == "app-1", "a repair may have held it"
