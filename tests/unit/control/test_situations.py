"""One text for one situation: status, doctor, alerts, refusals and runbooks say the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts.doctor_findings import doctor_findings
from lakebound.alerts.stream_findings import waiting
from lakebound.control import situations
from lakebound.control.crash_loop import CrashLoop
from lakebound.control.desired import Desired
from lakebound.control.progress import Outcome, Progress
from lakebound.control.status import StatusFacts, status_of
from lakebound.control.submission import Submission
from lakebound.control.supervision import stall
from lakebound.errors import CrashLoopError
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.pipeline.facts import KafkaLook
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts as DoctorFacts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.spec.pipeline import PipelineSpec

RUNBOOKS = Path(__file__).parents[3] / "include" / "runbooks"
NOW = 1_700_000_000.0
SPEC = PipelineSpec.model_validate(ORDERS)
APP = Submission(app_id="orders-g0-1", submitted_at=NOW - 1000)
MISSING = str(situations.topic_missing(["orders"], "127.0.0.1:1", "orders"))
LOOP = CrashLoop(ends=("a", "b", "c"), at=NOW - 60, reason="a full disk")


def progress(**changes: object) -> Progress:
    found = Progress(pipeline="orders", app_id=APP.app_id, started_at=NOW - 900, updated_at=NOW - 1, state="running")
    return found.model_copy(update=changes)


def waits(since: float) -> Progress:
    return progress(state="waiting", waiting_for=MISSING, waiting_error="MissingTopicError", waiting_since=since)


def status(**changes: object) -> tuple[str | None, tuple[str, ...]]:
    found = status_of(replace(StatusFacts("orders", SPEC), **changes), NOW)  # type: ignore[arg-type]
    return found.situation, found.notes


def diagnosis(**changes: object) -> Diagnosis:
    facts = DoctorFacts(SPEC, NOW, (), KafkaLook(topics={"orders": None}), desired=Desired())
    return diagnose(replace(facts, **changes))  # type: ignore[arg-type]


def sentences(found: Diagnosis) -> list[str]:
    return [finding.sentence for finding in found.findings]


def test_a_pipeline_that_nobody_has_started_has_no_alert() -> None:
    assert status() == ("never-started", ("it was never started; start it: lakebound start orders",))
    found = diagnosis()
    assert found.verdict == "starting"
    assert {MISSING, str(situations.never_started("orders"))} <= set(sentences(found))
    assert doctor_findings(found, NOW) == ()


def test_a_pipeline_whose_start_was_asked_for_and_that_nobody_starts_is_an_alert_and_hides_no_outage() -> None:
    asked = Desired(by="ada", since=NOW - 600)
    found = doctor_findings(
        diagnosis(desired=asked, kafka=KafkaLook(problem="unavailable", sentence="no answer from Kafka")), NOW
    )
    assert {one.cause: one.severity for one in found} == {"broker-unavailable": "critical", "start-missing": "warning"}
    (missing,) = (one for one in found if one.cause == "start-missing")
    assert "by ada" in missing.what and "lakebound run orders --detach" in missing.what
    just_asked = diagnosis(
        desired=Desired(by="ada", since=NOW - 10), kafka=KafkaLook(problem="unavailable", sentence="no answer from Kafka")
    )
    assert doctor_findings(just_asked, NOW) == (), "Airflow is given the time to start it"


@pytest.mark.parametrize(("waited", "is_told"), [(10.0, False), (299.0, False), (301.0, True)])
def test_a_topic_is_awaited_for_five_minutes_before_anybody_is_told(waited: float, is_told: bool) -> None:
    own = waits(NOW - waited)
    assert status(living=APP, last=APP, progress=own) == ("waiting", (f"waiting: {MISSING} (runbook topic-missing)",))
    found = diagnosis(submission=APP, living=APP.app_id, progress=own)
    assert (MISSING in sentences(found), found.verdict) == (is_told, "needs_person" if is_told else "starting")
    assert [(one.runbook, one.severity.value) for one in waiting("orders", own, NOW)] == (
        [("topic-missing", "critical")] if is_told else []
    )
    assert bool(doctor_findings(found, NOW)) is is_told
    assert stall(SPEC.thresholds, SPEC.freshness, APP, own, None, NOW) is None  # type: ignore[arg-type]


def test_a_topic_that_was_deleted_is_told_otherwise() -> None:
    found = situations.topic_missing(["orders"], "127.0.0.1:1", "orders", ["orders"])
    assert "the topic was deleted" in str(found) and "create-topic" not in str(found)


def test_a_start_after_a_long_wait_has_its_time() -> None:
    own = progress(state="starting", state_since=NOW - 5)
    assert stall(SPEC.thresholds, SPEC.freshness, APP, own, None, NOW) is None  # type: ignore[arg-type]
    verdict = stall(SPEC.thresholds, SPEC.freshness, APP, progress(state="starting"), None, NOW)  # type: ignore[arg-type]
    assert verdict is not None and verdict.kind == "never_started"


def test_a_crash_loop_is_told_alike_everywhere() -> None:
    sentence = str(situations.crash_looping("orders", LOOP))
    assert "the last one at 2023-11-14 22:12:20 UTC: a full disk" in sentence
    assert status(last=APP, crash_loop=LOOP)[1][0] == f"{sentence} (runbook crash-loop)"
    assert sentence in sentences(diagnosis(submission=APP, crash_loop=LOOP))
    assert sentence in str(CrashLoopError("orders", sentence))
    assert status(last=APP, crash_loop=LOOP, desired=Desired(since=NOW))[0] is None, "a person has said that it may go on"


def test_the_pause_after_failed_starts_grows() -> None:
    once, twice = CrashLoop(ends=("a",), at=NOW), CrashLoop(ends=("a", "b"), at=NOW)
    assert [loop.not_before(15) - NOW for loop in (once, twice)] == [15, 60]
    assert CrashLoop().not_before(15) == 0
    assert CrashLoop(ends=("a",) * 40, at=NOW).not_before(15) - NOW == 600
    assert status(last=APP, crash_loop=once)[0] == "start-paused"
    assert status(last=APP, crash_loop=replace_at(once, NOW - 16))[0] is None


def replace_at(loop: CrashLoop, at: float) -> CrashLoop:
    return loop.model_copy(update={"at": at})


def test_a_paused_dag_is_told_where_a_stream_is_wanted() -> None:
    assert status(last=APP, is_paused=True)[0] == "dag-paused"
    assert status(last=APP, is_paused=True, desired=Desired(state="stopped"))[0] is None
    assert status(last=APP, is_paused=False)[0] is None
    assert status(living=APP, last=APP, progress=progress(), is_paused=True)[0] is None


def test_commits_that_fail_are_told() -> None:
    own = progress(failures=3, failing_since=NOW - 60, failing_error="CommitUnknownError", last_failure="no space left")
    name, notes = status(living=APP, last=APP, progress=own)
    assert name == "failing"
    assert notes == ("failing since 2023-11-14 22:12:20 UTC, 3 times in a row: no space left (runbook commit-failed)",)
    (finding,) = waiting("orders", own, NOW)
    assert finding.what.endswith("no space left") and finding.runbook == "commit-failed"


@pytest.mark.parametrize(
    "found",
    [
        situations.crash_looping("P", LOOP),
        situations.topic_missing(["t"], "b", "P"),
        situations.dag_paused("P"),
    ],
    ids=lambda found: found.name,
)
def test_the_page_names_the_same_command(found: situations.Situation) -> None:
    command = found.command.rpartition(": ")[2]
    assert f"`{command}`" in (RUNBOOKS / f"{found.runbook}.md").read_text()


def test_how_the_last_start_ended() -> None:
    outcome = Outcome(
        app_id=APP.app_id, verdict="refused", reason="no", error_class="SchemaChangedError", started_at=NOW, ended_at=NOW
    )
    once = CrashLoop(ends=(APP.app_id,), at=NOW - 5, reason="no")
    for paused, loop, expected in (
        (True, once, "remove the cause, then start it: lakebound start orders"),
        (None, once, "the next start is at 2023-11-14 22:13:30 UTC or later; to start it at once: lakebound start orders"),
        (False, CrashLoop(), "Airflow starts it again by itself"),
    ):
        name, (note,) = status(last=APP, outcome=outcome, crash_loop=loop, is_paused=paused)
        assert name == "last-start-refused" and note.endswith("(runbook schema-changed)")
        assert "the last application refused at 2023-11-14 22:13:20 UTC: no; remove the cause" in note and expected in note


def test_the_doctor_says_of_a_refusal_what_status_says() -> None:
    outcome = Outcome(
        app_id=APP.app_id, verdict="refused", reason="no", error_class="TransformFailsError", started_at=NOW, ended_at=NOW
    )
    once = CrashLoop(ends=(APP.app_id,), at=NOW - 5, reason="no")
    found = [one.sentence for one in diagnosis(outcome=outcome, crash_loop=once).findings if one.rule == "start-refused"]
    assert found == [
        f"{APP.app_id} refused: no; remove the cause: the next start is at 2023-11-14 22:13:30 UTC or later; to start it at "
        "once: lakebound start orders"
    ]
