"""The rows of the page: which pipeline needs a person, in which order they come, and what one pipeline's view leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts.model import Alert, Memory
from lakebound.control.crash_loop import CrashLoop
from lakebound.control.desired import Desired
from lakebound.control.findings import Finding, Findings, Severity
from lakebound.control.progress import Progress, RecentRecords
from lakebound.control.schemas_in_use import ColumnOrigin, SchemasInUse, SubjectInUse, VersionInUse
from lakebound.control.status import StatusFacts, situation_of, status_of
from lakebound.control.submission import Submission
from lakebound.spec.pipeline import PipelineSpec
from lakebound_airflow.page.overview import Need, need_of, overview_of, row_of
from lakebound_airflow.page.pipeline_view import dags_of, pipeline_view
from lakebound_airflow.page.runbook import rendered, rendered_runbook
from lakebound_airflow.page.state import PipelineState

NOW = 1_000_000.0
SPEC = PipelineSpec.model_validate(ORDERS)
APP = Submission(app_id="a-1", submitted_at=NOW - 100)
PROGRESS = Progress(
    pipeline="orders",
    app_id="a-1",
    state="running",
    started_at=NOW - 90,
    updated_at=NOW - 1,
    high_water_marks={"orders": {0: 40, 1: 60}},
    latest_offsets={"orders": {0: 45, 2: 9}},
    lag_records=5,
    newest_record_ms=int((NOW - 2.4) * 1000),
    last_commit_at=NOW - 2.0,
    freshness_p99_seconds=0.7,
    recent=RecentRecords(over_seconds=300, newest_at=NOW, records=200, quarantined=5),
)
RUNNING = StatusFacts("orders", SPEC, "new", Desired(), living=APP, last=APP, progress=PROGRESS)


def state(facts: StatusFacts, *severities: Severity) -> PipelineState:
    """A pipeline's state with open alerts."""
    alerts = tuple(
        Alert(
            pipeline=facts.pipeline,
            concern=severity,
            lead="doctor:lag",
            severity=severity,
            what=f"an alert: {severity}",
            since=NOW,
            first_seen=NOW,
            evidence={"value": "SECRET-ROW"},
        )
        for severity in severities
    )
    return PipelineState(facts, status_of(facts, NOW), situation_of(facts, NOW), alerts)


def test_a_row_says_what_status_says() -> None:
    found = state(RUNNING)
    row = row_of(found)
    assert (row.need, row.why) == (Need.NONE, "")
    for name in ("pipeline", "desired", "app", "alive", "outdated", "situation", "lag_records", "freshness_seconds", "is_idle"):
        assert getattr(row, name) == getattr(found.status, name)
    assert (row.freshness_p99_seconds, row.bad_share, row.alerts, row.worst_alert) == (0.7, 0.025, 0, None)


@pytest.mark.parametrize(
    ("found", "need", "why"),
    [
        (state(RUNNING, Severity.CRITICAL, Severity.WARNING), Need.NOW, "an alert: critical"),
        (state(RUNNING, Severity.WARNING), Need.TODAY, "an alert: warning"),
        (state(RUNNING, Severity.INFO), Need.NONE, "an alert: info"),
        (state(replace(RUNNING, living=None, is_paused=True)), Need.NOW, "ingest__orders is paused"),
        (state(replace(RUNNING, living=None, crash_loop=CrashLoop(ends=tuple("abcdefgh")))), Need.NOW, "starts ended without"),
        (state(replace(RUNNING, spec=None)), Need.TODAY, "no valid YAML"),
        (state(replace(RUNNING, unreadable=("lease.json cannot be read",))), Need.TODAY, "lease.json"),
        (state(StatusFacts("orders", SPEC)), Need.STOPPED, "never started; start it: lakebound start orders"),
        (state(StatusFacts("orders", SPEC, desired=Desired(since=NOW - 600))), Need.TODAY, "never started"),
        (state(StatusFacts("orders", SPEC, is_paused=False)), Need.TODAY, "never started"),
        (state(replace(RUNNING, progress=PROGRESS.model_copy(update={"updated_at": NOW - 60}))), Need.TODAY, "silent for 60 s"),
        (state(replace(RUNNING, progress=PROGRESS.model_copy(update={"state": "waiting"}))), Need.WAITS, "waiting"),
        (state(replace(RUNNING, living=None)), Need.WAITS, "died without an outcome"),
        (state(replace(RUNNING, living=None, desired=Desired(state="stopped", reason="holiday"))), Need.STOPPED, "holiday"),
    ],
)
def test_what_needs_a_person(found: PipelineState, need: Need, why: str) -> None:
    said = need_of(found)
    assert said[0] is need and why in said[1]


def test_what_keeps_it_from_landing_now_comes_before_a_kill_that_is_repaired() -> None:
    waits = state(
        replace(RUNNING, progress=PROGRESS.model_copy(update={"state": "waiting", "waiting_for": "no answer from Kafka"}))
    )
    kill = Alert(
        pipeline="orders", concern="application-dead", lead="incidents:i-1", severity=Severity.WARNING, what="killed",
        since=NOW - 900, first_seen=NOW - 900,
    )  # fmt: skip
    outage = kill.model_copy(update={"lead": "doctor:broker-unavailable", "what": "Kafka does not answer", "since": NOW})
    assert need_of(replace(waits, alerts=(kill,))) == (Need.TODAY, "waiting: no answer from Kafka")
    assert need_of(replace(waits, alerts=(kill, outage))) == (Need.TODAY, "Kafka does not answer")
    assert need_of(replace(state(RUNNING), alerts=(kill,))) == (Need.TODAY, "killed")


def test_an_alert_that_pipelines_share_names_no_other_pipeline_to_who_may_not_see_it() -> None:
    shared = Alert(
        pipeline="*", concern="shared:broker-unavailable:Kafka at k:9092", lead="shared:x", severity=Severity.CRITICAL,
        what="2 pipelines (orders, secret)", since=NOW, first_seen=NOW, opened_at=NOW, told_at=NOW,
        shared="broker-unavailable", pipelines=("orders", "secret"),
    )  # fmt: skip
    part = Alert(
        pipeline="orders", concern="broker-unavailable", lead="application:waiting", severity=Severity.CRITICAL,
        what="orders waits", since=NOW, first_seen=NOW,
    )  # fmt: skip
    told = Memory(alerts=(shared, part)).parts_of(shared)
    assert [(one.pipeline, one.what, one.told_at) for one in told] == [("orders", "orders waits", NOW)]
    assert Memory(alerts=(part,)).parts_of(part) == (part,)


def test_what_needs_a_person_comes_first() -> None:
    def named(name: str, *severities: Severity, lag: int = 0) -> PipelineState:
        progress = PROGRESS.model_copy(update={"high_water_marks": {"t": {0: 0}}, "latest_offsets": {"t": {0: lag}}})
        return state(replace(RUNNING, pipeline=name, progress=progress), *severities)

    told = [named("d"), named("c", lag=9), named("b", Severity.WARNING), named("a"), named("z", Severity.CRITICAL)]
    found = overview_of(told, ["a file is wrong"], NOW)
    assert [row.pipeline for row in found.pipelines] == ["z", "b", "c", "a", "d"]
    assert found.problems == ("a file is wrong",)


def test_a_view_offers_only_what_the_viewer_may_start_and_shows_no_evidence() -> None:
    finding = Finding(
        cause="c", severity=Severity.WARNING, what="w", since=NOW, evidence={"value": "SECRET-ROW"}, runbook="lag"
    )
    found = replace(
        state(RUNNING, Severity.WARNING), findings=(Findings(source="doctor", pipeline="orders", at=NOW, findings=(finding,)),)
    )
    view = pipeline_view(found, [], [], ["control__orders"], NOW)
    assert {action["dag_id"] for action in view["actions"]} == {"control__orders"}
    assert [one["what"] for one in view["findings"]] == ["w"]
    assert "SECRET-ROW" not in json.dumps(view)
    assert {action["dag_id"] for action in pipeline_view(found, [], [], dags_of("orders"), NOW)["actions"]} == set(
        dags_of("orders")
    )


def test_markup_in_a_runbook_is_shown_as_text_and_links_lead_to_pages(tmp_path: Path) -> None:
    links = "[lag](lag.md) [far](https://example.org) [code](../lakebound) [bad](javascript:alert(1)) ![i](a.png)"
    shown = rendered(f"<script>x</script> {links}")
    assert "<script" not in shown and "&lt;script&gt;" in shown and "<img" not in shown and 'href="javascript' not in shown
    assert 'href="lag"' in shown and 'rel="noopener noreferrer"' in shown and "../lakebound" not in shown
    (tmp_path / "lag.md").write_text("# The stream is behind")
    assert rendered_runbook("lag", tmp_path) == "<h1>The stream is behind</h1>\n"
    for name in ("../lag", "lag.md", "", ".", "missing", "README"):
        assert rendered_runbook(name, tmp_path) is None


def test_every_runbook_of_the_repository_is_rendered() -> None:
    assert "<h1>" in (rendered_runbook("lag") or "")


def test_the_view_says_what_the_stream_reads_with_and_what_a_column_comes_from() -> None:
    subject = SubjectInUse(subject="orders-value", compatibility="FULL", versions=(VersionInUse(number=2, ids=(7,)),))
    column = ColumnOrigin(name="id", type="BIGINT", subject="orders-value", since=1)
    schemas = SchemasInUse(format="avro", registry="shop", subjects=(subject,), columns=(column,))
    shown = pipeline_view(state(replace(RUNNING, schemas=(schemas,))), [], [], [], NOW)["schemas"]
    assert shown["lines"] == ["avro of the subject orders-value in the registry shop, version 2 (id 7); compatibility FULL"]
    assert [(one["name"], one["since"], one["until"], one["part"]) for one in shown["columns"]] == [("id", 1, None, "value")]
    assert pipeline_view(state(RUNNING), [], [], [], NOW)["schemas"] == {"lines": [], "columns": []}
