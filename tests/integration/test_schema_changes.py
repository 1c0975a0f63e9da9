"""A pipeline whose schema changes between two starts: columns come, and a type that does not fit is refused, not looped.

In the long form alone: in the short one columns come while an application runs (test_registered_schemas.py), and what a start
makes of each edit is in tests/spark/test_edits.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import EVENT_SCHEMA, JournalingProducer, as_json, event
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.worlds.said_findings import read_findings

from lakebound.cli.plan_check import check_plans
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.integration, only_in_long_form]

NOTED = f"{EVENT_SCHEMA}, note STRING"


def with_schema(pipeline: Pipeline, schema: str, **changes: Any) -> Pipeline:
    value = pipeline.spec.value.model_copy(update={"value_schema": schema})
    return replace(pipeline, spec=pipeline.spec.model_copy(update={"value": value, **changes}))


def send(producer: JournalingProducer, topic: str, numbers: range, row: Mapping[str, Any] | None = None) -> None:
    """Send events with a note; ``row`` is what becomes of the note in the tables."""
    for number in numbers:
        columns = event(number)
        producer.send(topic, as_json({**columns, "note": f"n{number}"}), rows=[{**columns, **(row or {"note": f"n{number}"})}])
    producer.flush()


def test_columns_come_and_a_type_that_does_not_fit_is_refused(broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    name, journal = topic("schema"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    before = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, freshness="200ms")
    with applications() as starter:
        first = starter.start(before)
        send(producer, name, range(200), {"note": None})
        first.wait_landed(journal.ends())
        assert first.stop().verdict == "stopped"

        after = with_schema(before, NOTED, schema_evolution="add_columns")
        (plan,) = check_plans([after.spec], after.settings)
        assert "column note (STRING) is added" in plan.changes["delta:events"]
        second = starter.start(after)
        send(producer, name, range(200, 400))
        second.wait_landed(journal.ends())
        send(producer, name, range(400, 600))
        second.wait_landed(journal.ends())
        assert second.stop().verdict == "stopped"
        assert "driver" in after.lanes()
        assert_exactly_once(after, journal)

        other = with_schema(before, NOTED.replace("amount DOUBLE", "amount STRING"), schema_evolution="add_columns")
        third = starter.start(other).ended()
        assert (third.verdict, third.error_class) == ("refused", "SchemaChangedError")
        assert "column amount is DOUBLE in the table, STRING in the pipeline" in third.reason
        findings = [finding for said in read_findings(other.control) if said.source == "schema" for finding in said.findings]
        assert {finding.cause for finding in findings} == {"schema of delta:events", "schema of iceberg:events"}
        assert not other.lease_is_live
    assert_exactly_once(after, journal)
