"""A feature that a start would refuse is a finding of its own, with the page of the refusal; a start need not be tried."""

from __future__ import annotations

from lakebound.control.progress import Outcome
from lakebound.errors import NameMappingError, TableFeatureError
from lakebound.inspection.doctor.pipeline.facts import FeatureRefusal, LedgerFacts, PipelineFacts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_000_000.0
TABLE = "delta:sales.orders"
SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "sales.orders"}],
    }
)
REFUSAL = TableFeatureError(TABLE, "columnMapping", "rows cannot be appended")


def facts(refusal: TableFeatureError | None, outcome: TableFeatureError | None = None) -> PipelineFacts:
    found = None if refusal is None else FeatureRefusal(str(refusal), refusal.runbook)
    ended = None
    if outcome is not None:
        ended = Outcome(
            app_id="orders-g0-1",
            verdict="refused",
            reason=str(outcome),
            error_class=type(outcome).__name__,
            started_at=NOW - 20,
            ended_at=NOW - 10,
        )
    return PipelineFacts(spec=SPEC, now=NOW, tables=(LedgerFacts(TABLE, "target", "entry", refusal=found),), outcome=ended)


def test_a_person_is_asked_and_the_page_is_that_of_the_refusal() -> None:
    mapping = NameMappingError(TABLE, "city", "[]")
    for refusal, runbook in ((REFUSAL, "table-feature"), (mapping, "schema-changed")):
        found = diagnose(facts(refusal))
        assert found.verdict == "needs_person"
        assert [(one.rule, one.runbook, one.evidence) for one in found.findings if one.verdict == "needs_person"] == [
            ("table-feature", runbook, {"table": TABLE})
        ]


def test_without_a_refusal_there_is_no_finding() -> None:
    assert "table-feature" not in {one.rule for one in diagnose(facts(None)).findings}


def test_the_refused_start_is_not_told_a_second_time_while_the_table_shows_its_cause() -> None:
    both = {one.rule for one in diagnose(facts(REFUSAL, outcome=REFUSAL)).findings}
    assert "table-feature" in both and not {"start-refused", "application-dead"} & both
    ended = {one.rule for one in diagnose(facts(None, outcome=REFUSAL)).findings}
    assert "start-refused" in ended and "table-feature" not in ended
