"""When a share of bad records is a flood, what ends an application for it, and what status, alert and doctor say of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts.objectives import ObjectiveFacts, objective_findings
from lakebound.control.desired import Desired
from lakebound.control.findings import Severity
from lakebound.control.progress import Outcome, Progress, RecentRecords
from lakebound.control.quarantine_rate import flood_of, recent_records, stop_error, told_share, window_seconds
from lakebound.control.status import StatusFacts, status_of
from lakebound.control.submission import Submission
from lakebound.errors import error_named
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.warning_rules import quarantine_flood
from lakebound.spec.objectives import ObjectivesSpec
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_700_000_000.0
APP = "orders-1"
HELD = Desired(state="held", by=APP, reason="a flood")
ENDED = Outcome(
    app_id=APP, verdict="refused", reason="r", error_class="QuarantineFloodError", started_at=NOW - 60, ended_at=NOW
)
DEFAULT = ObjectivesSpec()


def recent(records: int, quarantined: int, **changes: Any) -> RecentRecords:
    reasons = {"does_not_fit: amount": quarantined} if quarantined else {}
    found = {"over_seconds": 300, "newest_at": NOW, "records": records, "quarantined": quarantined, "reasons": reasons}
    return RecentRecords.model_validate({**found, **changes})


def progress(found: RecentRecords | None, **changes: Any) -> Progress:
    body = {"pipeline": "orders", "app_id": APP, "state": "running", "started_at": NOW - 60, "updated_at": NOW}
    return Progress.model_validate({**body, "recent": found, **changes})


def spec(**rate: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, "objectives": {"quarantine_rate": rate}})


@pytest.mark.parametrize(
    ("records", "quarantined", "is_flood"),
    [
        (0, 0, False),
        (1000, 50, False),  # exactly what is allowed
        (1000, 51, True),
        (9, 9, False),  # too few to say
        (10, 10, True),
        (180, 9, False),
    ],
)
def test_more_than_the_objective_allows_is_a_flood_and_few_records_are_none(
    records: int, quarantined: int, is_flood: bool
) -> None:
    found = flood_of(DEFAULT, Desired(), progress(recent(records, quarantined)), None, NOW)
    assert (found is not None) is is_flood
    one_is_enough = ObjectivesSpec.model_validate({"quarantine_rate": {"min_quarantined": 1}})
    is_over = records > 0 and quarantined / records > 0.05
    assert (flood_of(one_is_enough, Desired(), progress(recent(records, quarantined)), None, NOW) is not None) is is_over


def test_it_is_on_by_default_and_can_be_switched_off() -> None:
    off = ObjectivesSpec.model_validate({"quarantine_rate": None})
    bad = progress(recent(100, 100))
    assert flood_of(DEFAULT, Desired(), bad, None, NOW) is not None
    assert flood_of(off, Desired(), bad, None, NOW) is None
    assert (window_seconds(DEFAULT), window_seconds(off)) == (300, 300), "status shows the share all the same"
    assert stop_error(spec(), recent(100, 100)) is None, "it ends nothing unless that is asked for"


def test_what_is_no_longer_recent_is_not_judged_and_what_a_run_ended_with_stands() -> None:
    old = recent(100, 100, newest_at=NOW - 301)
    assert recent_records(progress(old), NOW) is None
    assert recent_records(progress(old, state="ended"), NOW) == old, "a pipeline on a schedule rests until its next run"
    assert recent_records(progress(None), NOW) is None and recent_records(None, NOW) is None
    assert flood_of(DEFAULT, Desired(), progress(old), None, NOW) is None


@pytest.mark.parametrize(
    ("rate", "found", "ends"),
    [
        ({"stop_at": 0.5}, recent(100, 50), True),
        ({"stop_at": 0.5}, recent(100, 49), False),
        ({"stop_at": 0.5}, recent(9, 9), False),
        ({"stop_at": 0.5, "min_quarantined": 9}, recent(9, 9), True),
        ({"stop_at": 1.0}, recent(100, 100), True),
        ({"stop_at": 0.5}, None, False),
    ],
)
def test_an_application_ends_at_the_share_that_was_written(
    rate: dict[str, Any], found: RecentRecords | None, ends: bool
) -> None:
    error = stop_error(spec(**rate), found)
    assert (error is not None) is ends
    if error is not None:
        assert (error.runbook, error.is_refusal) == ("quarantine-flood", True)
        assert "of the records of the application's last 300 s went to quarantine" in str(error)
        assert error_named(type(error).__name__) is type(error)


def test_a_pipeline_that_ended_itself_is_told_until_a_person_acts() -> None:
    own = progress(recent(100, 100), state="ended")
    found = flood_of(DEFAULT, HELD, own, ENDED, NOW + 86_400)
    assert found is not None and found.has_stopped and "held until a person starts it" in str(found)
    assert flood_of(DEFAULT, HELD.model_copy(update={"by": "ada"}), own, ENDED, NOW) is None, "a person holds it"
    assert flood_of(DEFAULT, HELD, own, ENDED.model_copy(update={"app_id": "orders-0"}), NOW) is None
    assert flood_of(DEFAULT, HELD, own, None, NOW) is None
    assert flood_of(DEFAULT, Desired(state="stopped"), own, ENDED, NOW) is None


def test_the_words_name_share_and_reasons() -> None:
    reasons = {"malformed_json": 400, "does_not_fit: amount": 90, "not_utf8": 9, "null_value": 1}
    assert told_share(recent(1000, 500, reasons=reasons)) == (
        "50.0% of the records of the application's last 300 s went to quarantine (500 of 1000), most often "
        "malformed_json (400), does_not_fit: amount (90), not_utf8 (9)"
    )
    assert told_share(recent(100_000, 1)).startswith("less than 0.1% of")


def test_alert_doctor_and_status_say_the_same() -> None:
    own, declared = progress(recent(100, 40)), spec()
    flood = flood_of(declared.objectives, Desired(), own, None, NOW)
    (alert,) = objective_findings(declared.objectives, ObjectiveFacts(progress=own), NOW)
    facts = PipelineFacts(spec=declared, now=NOW, tables=(), progress=own, desired=Desired())
    (doctor,) = quarantine_flood(facts)
    assert alert.what == doctor.sentence == str(flood)
    assert alert.runbook == doctor.runbook == "quarantine-flood"
    assert (alert.severity, doctor.verdict) == (Severity.WARNING, "healthy")
    assert alert.evidence["reason does_not_fit: amount"] == 40 and alert.evidence["share"] == 0.4

    ended = progress(recent(100, 40), state="ended")
    (alert,) = objective_findings(declared.objectives, ObjectiveFacts(HELD, ended, ENDED), NOW)
    (doctor,) = quarantine_flood(replace(facts, progress=ended, desired=HELD, outcome=ENDED))
    assert (alert.severity, doctor.verdict) == (Severity.CRITICAL, "needs_person")

    app = Submission(app_id=APP, submitted_at=NOW - 60)
    status = status_of(StatusFacts("orders", declared, living=app, last=app, progress=own), NOW)
    assert status.recent == own.recent
    assert status.notes == (f"{told_share(recent(100, 40))} (lakebound quarantine orders)",)
    clean = replace(StatusFacts("orders", declared, living=app, last=app), progress=progress(recent(100, 0)))
    assert status_of(clean, NOW).notes == ()
