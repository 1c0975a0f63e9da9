"""While an application searches for records on which its transform raises, status and doctor say so."""

from __future__ import annotations

from lakebound.control.progress import Progress, SearchProgress
from lakebound.control.status import StatusFacts, status_of
from lakebound.control.submission import Submission
from lakebound.inspection.doctor.pipeline.application_rules import stalled
from lakebound.inspection.doctor.pipeline.facts import KafkaLook, LedgerFacts, PipelineFacts, Waiting
from lakebound.inspection.doctor.pipeline.warning_rules import transform_raises
from lakebound.ledger.entry import Entry, TopicOffsets
from lakebound.ledger.topics import TopicFacts
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
        "transform": "transforms.orders.clean",
        "tables": [{"format": "delta", "name": "orders"}],
    }
)


def progress(*, is_over: bool) -> Progress:
    search = SearchProgress(since=NOW - 90, changed_at=NOW - 1, records=4096, tried=700, found=31, is_over=is_over)
    body = {"pipeline": "orders", "app_id": APP.app_id, "state": "running", "started_at": NOW - 700, "updated_at": NOW}
    return Progress.model_validate({**body, "search": search})


def test_a_search_is_told_until_it_is_over() -> None:
    for is_over in (False, True):
        found = progress(is_over=is_over)
        status = status_of(StatusFacts("orders", SPEC, living=APP, last=APP, progress=found), NOW)
        assert status.situation == (None if is_over else "searching")
        findings = [*transform_raises(PipelineFacts(spec=SPEC, now=NOW, tables=(), living=APP.app_id, progress=found))]
        assert [one.rule for one in findings] == ([] if is_over else ["transform-raises"])
        assert [(one.runbook, one.evidence["found"]) for one in findings] == ([] if is_over else [("quarantine-flood", 31)])


def test_a_progress_of_an_older_version_has_no_search() -> None:
    body = progress(is_over=True).model_dump(mode="json")
    del body["search"]
    assert Progress.model_validate(body).search is None


def test_the_doctor_calls_a_search_no_stall_as_long_as_it_goes_on() -> None:
    coverage = {"orders": TopicOffsets(topic_id="t", partitions={0: [(0, 10)]})}
    entry = Entry(kind="land", pipeline="orders", epoch=1, commit="c", coverage=coverage)
    table = LedgerFacts("delta:orders", "target", "entry", entry=entry, committed_at_ms=int((NOW - 600) * 1000))
    look = KafkaLook(
        topics={"orders": TopicFacts("t", {0: 0}, {0: 99})},
        waiting={("orders", 0): Waiting(timestamp_ms=int((NOW - 600) * 1000))},
    )
    for seconds, expected in ((1, []), (SPEC.thresholds.stall_seconds + 10, ["stalled"])):
        found = progress(is_over=False)
        assert found.search is not None
        found = found.model_copy(update={"search": found.search.model_copy(update={"changed_at": NOW - seconds})})
        facts = PipelineFacts(SPEC, NOW, (table,), look, submission=APP, living=APP.app_id, progress=found)
        assert [one.rule for one in stalled(facts)] == expected
