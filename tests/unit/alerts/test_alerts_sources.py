"""What doctor, streams, incidents, maintenance and objectives give to the alerts."""

from __future__ import annotations

import pytest

from lakebound.alerts.doctor_findings import doctor_findings
from lakebound.alerts.incident_findings import incident_findings
from lakebound.alerts.maintenance_findings import maintenance_findings
from lakebound.alerts.objectives import ObjectiveFacts, objective_findings
from lakebound.alerts.stream_findings import StreamFacts, event, still_wrong, waiting, with_event
from lakebound.control.desired import Desired
from lakebound.control.findings import Finding, Severity
from lakebound.control.incidents import Incident
from lakebound.control.progress import Outcome, Progress
from lakebound.control.summaries import ProofSummary, ValidationSummary
from lakebound.inspection.doctor.diagnosis import Diagnosis, DoctorVerdict, RuleFinding
from lakebound.landing.landed_freshness import LandedFreshness
from lakebound.operations.maintenance.steps import CheckpointLog, RunReport, StepReport
from lakebound.spec.objectives import ObjectivesSpec

NOW = 10_000.0
PROGRESS = Progress(pipeline="orders", app_id="app-2", state="running", started_at=NOW - 60, updated_at=NOW)
SAME = PROGRESS.model_copy(update={"app_id": "app-1"})
"""Of the application whose end was noted."""
ANOTHER = PROGRESS
"""Of one that ran already when the end was noted, such as after an outage of Airflow."""
DEAD_ONE = PROGRESS.model_copy(update={"updated_at": NOW - 100})
"""Of one before it, which was killed."""


def rule(name: str, verdict: DoctorVerdict, **evidence: object) -> RuleFinding:
    return RuleFinding(rule=name, verdict=verdict, sentence=f"{name}!", runbook="lag", evidence=dict(evidence))


@pytest.mark.parametrize(
    ("found", "severity"),
    [
        (rule("retention-passed", "needs_approval"), Severity.CRITICAL),
        (rule("table-dropped", "needs_person"), Severity.CRITICAL),
        (rule("broker-unavailable", "starting"), Severity.CRITICAL),
        (rule("application-dead", "repairable"), Severity.WARNING),
        (rule("application-dead", "starting"), None),
        (rule("lag", "healthy"), Severity.WARNING),
        (rule("checkpoint-grows", "healthy"), Severity.INFO),
        (rule("never-started", "starting"), None),
        (rule("not-wanted", "healthy").model_copy(update={"runbook": None}), None),
    ],
)
def test_the_doctor_wakes_people_where_a_person_is_needed(found: RuleFinding, severity: Severity | None) -> None:
    findings = doctor_findings(Diagnosis(subject="orders", findings=(found,)), NOW)
    assert [one.severity for one in findings] == ([severity] if severity else [])


def test_the_doctors_evidence_is_short_and_two_tables_are_two_causes() -> None:
    found = [rule("table-dropped", "needs_person", table=name, offsets=list(range(500))) for name in ("delta:a", "delta:b")]
    first, second = doctor_findings(Diagnosis(subject="orders", findings=tuple(found)), NOW)
    assert (first.cause, second.cause) == ("table-dropped:delta:a", "table-dropped:delta:b")
    assert len(str(first.evidence["offsets"])) == 200


def stalled(now: float = NOW - 300) -> Finding:
    return event("orders", "stalled", "silent", runbook="stall", now=now, facts={"app_id": "app-1", "run_id": None})


def test_an_event_names_what_is_done_already_and_keeps_its_first_time() -> None:
    first, again = stalled(), stalled(NOW)
    assert first.evidence == {"app_id": "app-1", "event_at": NOW - 300}
    assert "ingest__orders" in first.done
    failed = event("orders", "failed", "why", runbook="application-dead", now=NOW)
    found = with_event(with_event((first,), failed), again)
    assert [(one.cause, one.since, one.evidence["event_at"]) for one in found] == [
        ("failed", NOW, NOW),
        ("stalled", NOW - 300, NOW),
    ]
    assert [one.severity for one in found] == [Severity.WARNING, Severity.CRITICAL]


@pytest.mark.parametrize(
    ("facts", "is_over"),
    [
        (StreamFacts(Desired()), False),
        (StreamFacts(Desired(), PROGRESS), False),
        (StreamFacts(Desired(), PROGRESS.model_copy(update={"last_commit_at": NOW - 1})), True),
        (StreamFacts(Desired(), PROGRESS.model_copy(update={"started_at": NOW - 200})), True),
        (StreamFacts(Desired(), PROGRESS.model_copy(update={"started_at": NOW - 200, "updated_at": NOW - 100})), False),
        (StreamFacts(Desired(), SAME.model_copy(update={"started_at": NOW - 400, "last_commit_at": NOW - 1})), False),
        (StreamFacts(Desired(), ANOTHER.model_copy(update={"started_at": NOW - 400, "last_commit_at": NOW - 1})), True),
        (StreamFacts(Desired(), DEAD_ONE.model_copy(update={"started_at": NOW - 400, "last_commit_at": NOW - 99})), False),
        (StreamFacts(Desired(), PROGRESS.model_copy(update={"state": "waiting", "last_commit_at": NOW - 1})), False),
        (StreamFacts(Desired(state="stopped")), True),
        (StreamFacts(Desired(), None, Outcome(app_id="a", verdict="completed", reason="", started_at=0, ended_at=NOW)), True),
        (StreamFacts(Desired(), None, Outcome(app_id="a", verdict="completed", reason="", started_at=0, ended_at=1)), False),
        (StreamFacts(Desired(), None, Outcome(app_id="a", verdict="failed", reason="", started_at=0, ended_at=NOW)), False),
    ],
)
def test_an_event_is_over_when_a_later_application_lands_or_nobody_wants_one(facts: StreamFacts, is_over: bool) -> None:
    assert still_wrong((stalled(),), facts, NOW) == (() if is_over else (stalled(),))


def test_an_application_that_waits_is_an_outage_while_it_says_so() -> None:
    waits = PROGRESS.model_copy(update={"state": "waiting", "waiting_for": "no answer from Kafka"})
    (found,) = waiting("orders", waits, NOW)
    assert (found.runbook, found.severity) == ("broker-unavailable", Severity.CRITICAL)
    assert "no answer from Kafka" in found.what
    assert waiting("orders", waits, NOW + 60) == ()
    assert waiting("orders", PROGRESS, NOW) == ()
    assert waiting("orders", None, NOW) == ()


def test_each_incident_is_named_by_at_least_one_look_and_not_for_long() -> None:
    def incident(at: float, **changes: object) -> Incident:
        return Incident.model_validate(
            {"id": str(at), "pipeline": "orders", "kind": "unclean_end", "at": at, "what": "w", **changes}
        )

    incidents = [incident(NOW - 5000), incident(NOW - 10)]
    assert [one.cause for one in incident_findings(incidents, None, NOW)] == [str(NOW - 10)]
    looked, seen = None, []
    for now in (NOW, NOW + 60, NOW + 120, NOW + 3000):
        seen.append(len(incident_findings([incident(NOW - 10)], looked, now)))
        looked = now
    assert seen == [1, 1, 1, 0]
    assert len(incident_findings([incident(NOW + 100)], NOW, NOW + 90_000)) == 1, "nobody looked for a day"
    (approved,) = incident_findings([incident(NOW, approved_by="ada", kind="rewind")], None, NOW)
    (refused,) = incident_findings([incident(NOW, kind="refused", runbook="topic-recreated")], None, NOW)
    assert (approved.severity, refused.severity) == (Severity.INFO, Severity.CRITICAL)


def run(number: int, **outcomes: str) -> RunReport:
    steps = tuple(
        StepReport.model_validate({"step": CheckpointLog(table=table, reason="r"), "outcome": outcome, "problem": "disk full"})
        for table, outcome in outcomes.items()
    )
    at = int(NOW * 1000) + number * 60_000
    return RunReport(pipeline="orders", run_id=f"run-{number}", started_at_ms=at, ended_at_ms=at, steps=steps)


def test_a_step_of_maintenance_that_failed_stands_until_it_was_tried_again_with_success() -> None:
    runs = [run(0, a="failed", b="failed"), run(1, a="failed"), run(2, b="done"), run(3, a="skipped")]
    (found,) = maintenance_findings(runs, NOW + 300)
    assert (found.cause, found.since, found.evidence["tries"]) == ("a:checkpoint_log", NOW, 2)
    assert "disk full" in found.what
    assert maintenance_findings([*runs, run(4, a="nothing")], NOW + 300) == ()
    assert maintenance_findings(runs, NOW + 2 * 86_400) == (), "long ago, and never due again"


def test_a_maintenance_run_that_died_stands_until_one_reports_again() -> None:
    died = run(0).model_copy(update={"problem": "it ended with exit code 137"})
    (found,) = maintenance_findings([run(-1), died], NOW + 60)
    assert (found.cause, found.runbook) == ("run", "maintenance-failed")
    assert died.run_id in found.what and "exit code 137" in found.what
    assert maintenance_findings([died, run(1, a="skipped")], NOW + 60) == ()


def judged(spec: ObjectivesSpec, **facts: object) -> list[tuple[str, str]]:
    found = objective_findings(spec, ObjectiveFacts(**facts), NOW)  # type: ignore[arg-type]
    return [(one.cause, one.severity.value) for one in found]


def test_what_is_not_promised_is_not_judged_and_a_failed_proof_always_is() -> None:
    late = PROGRESS.model_copy(
        update={"freshness_p99_seconds": 900.0, "last_commit_at": NOW, "lag_records": 5, "newest_record_ms": 1}
    )
    assert judged(ObjectivesSpec(), progress=late, validation=ValidationSummary(evaluated=10, passed=1, at=NOW)) == []
    proof = ProofSummary(ok=False, sentence="3 offsets are missing", missing=3, at=NOW)
    assert judged(ObjectivesSpec(), proof=proof) == [("completeness", "critical")]
    assert judged(ObjectivesSpec(completeness=False), proof=proof) == []


def test_freshness_and_lag_are_judged_by_the_applications_own_figures_while_it_is_wanted() -> None:
    spec = ObjectivesSpec(freshness_p99_seconds=5, lag_seconds=60)
    late = PROGRESS.model_copy(
        update={
            "freshness_p99_seconds": 5.1,
            "last_commit_at": NOW - 1,
            "lag_records": 5,
            "newest_record_ms": (NOW - 61) * 1000,
        }
    )
    assert judged(spec, progress=late) == [("freshness", "warning"), ("lag", "warning")]
    assert judged(spec, progress=late, desired=Desired(state="stopped")) == []
    assert judged(spec, progress=late.model_copy(update={"freshness_p99_seconds": 5.0, "lag_records": 0})) == []
    assert judged(spec, progress=late.model_copy(update={"last_commit_at": NOW - 400, "lag_records": None})) == [], "long ago"


@pytest.mark.parametrize(("passed", "found"), [(989, [("quality", "warning")]), (990, [])])
def test_the_pass_rate_is_that_of_the_last_validation(passed: int, found: list[tuple[str, str]]) -> None:
    spec = ObjectivesSpec(quality_pass_rate=0.99)
    assert judged(spec, validation=ValidationSummary(evaluated=1000, passed=passed, at=NOW)) == found
    assert judged(spec, validation=ValidationSummary(evaluated=0, passed=0, at=NOW)) == []


def test_p99_weighs_batches_by_their_records_and_forgets_what_is_old() -> None:
    freshness = LandedFreshness()
    assert freshness.p99_seconds(NOW) is None
    freshness.add(NOW - 301, 0, 1_000_000)
    for number in range(99):
        freshness.add(NOW, int((NOW - 0.5) * 1000) + number, 10)
    freshness.add(NOW, int((NOW - 30) * 1000), 10)
    assert freshness.p99_seconds(NOW) == pytest.approx(0.5, abs=0.001), "10 of 1000 are older: one in a hundred"
    freshness.add(NOW, int((NOW - 20) * 1000), 1)
    assert freshness.p99_seconds(NOW) == pytest.approx(20.0, abs=0.001)
    freshness.add(NOW, 0, 0)
    assert freshness.p99_seconds(NOW) == pytest.approx(20.0, abs=0.001), "an empty batch has no age"
    assert freshness.p99_seconds(NOW + 400) is None


def test_p99_is_over_five_minutes_however_many_batches_there_are() -> None:
    freshness = LandedFreshness()
    for number in range(60):
        freshness.add(NOW + number * 0.01, int((NOW - 30) * 1000), 200)
    for number in range(20_000):
        freshness.add(NOW + 1 + number * 0.01, int((NOW + 1 + number * 0.01 - 0.05) * 1000), 10)
    assert freshness.p99_seconds(NOW + 201) == pytest.approx(30, abs=1), "200 seconds ago"
    assert freshness.p99_seconds(NOW + 302) == pytest.approx(0.05, abs=0.002)
