"""Reference data that is not refreshed is told by status, doctor and alerts in the same words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakebound.alerts.doctor_findings import doctor_findings
from lakebound.control.findings import Severity
from lakebound.control.progress import Progress, ReferenceProgress
from lakebound.control.status import StatusFacts, status_of
from lakebound.control.submission import Submission
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.warning_rules import reference_stale
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_000_000.0
APP = Submission(app_id="orders-g0-1", submitted_at=NOW - 700)
SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "transform": "transforms.orders.enrich",
        "reference": {"customers": {"format": "delta", "name": "crm.customers", "key": ["id"], "refresh": "1m"}},
        "tables": [{"format": "delta", "name": "orders"}],
    }
)
WELL = ReferenceProgress(version="12", rows=7, loaded_at=NOW - 600, checked_at=NOW - 30)
DOUBLED = WELL.model_copy(update={"problem": "2 rows have the key (id) of another row", "problem_since": NOW - 60})


def progress(one: ReferenceProgress) -> Progress:
    body = {"pipeline": "orders", "app_id": APP.app_id, "state": "running", "started_at": NOW - 700, "updated_at": NOW}
    return Progress.model_validate({**body, "references": {"customers": one}})


def running(one: ReferenceProgress) -> StatusFacts:
    return StatusFacts("orders", SPEC, living=APP, last=APP, progress=progress(one))


def facts(one: ReferenceProgress) -> PipelineFacts:
    return PipelineFacts(spec=SPEC, now=NOW, tables=(), living=APP.app_id, progress=progress(one))


def test_status_shows_the_version_its_age_and_what_is_wrong() -> None:
    well = status_of(running(WELL), NOW)
    assert well.notes == ()
    assert well.references["customers"].model_dump() == {
        "version": "12",
        "rows": 7,
        "loaded_seconds_ago": 600.0,
        "checked_seconds_ago": 30.0,
        "problem": None,
    }
    stale = status_of(running(DOUBLED), NOW)
    assert [("2 rows have the key" in note, "continues with version 12" in note) for note in stale.notes] == [(True, True)]
    assert status_of(replace(running(DOUBLED), living=None), NOW).references == {}


def test_the_doctor_and_the_alerts_name_it() -> None:
    assert not [*reference_stale(facts(WELL))]
    (found,) = reference_stale(facts(DOUBLED))
    (alert,) = doctor_findings(Diagnosis(subject="orders", findings=(found,)), NOW)
    assert (found.runbook, alert.cause, alert.severity) == ("reference-stale", "reference-stale:customers", Severity.WARNING)
    assert "2 rows have the key (id)" in alert.what


@pytest.mark.parametrize(("unseen_seconds", "told"), [(400.0, False), (600.0, True)])
def test_a_source_that_never_answers_is_told(unseen_seconds: float, told: bool) -> None:
    silent = WELL.model_copy(update={"checked_at": NOW - unseen_seconds})
    assert ["has not answered for" in found.sentence for found in reference_stale(facts(silent))] == [True] * told
