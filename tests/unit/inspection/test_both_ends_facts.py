"""What the doctor says of a pipeline whose topics get rows in real time, and whose tables get batches beside them."""

from __future__ import annotations

from typing import Any

import pytest

from lakebound.inspection.doctor.pipeline.facts import LedgerFacts, PipelineFacts
from lakebound.inspection.doctor.pipeline.numbers import seconds_since_commit
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_000_000.0
BODY: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "bytes"},
    "freshness": "real_time",
    "real_time": {"tables": "1s"},
    "to_topics": [{"topic": "clean"}],
    "tables": [{"format": "delta", "name": "orders"}, {"format": "iceberg", "name": "orders"}],
}


def facts(freshness: str, **ago_seconds: float | None) -> PipelineFacts:
    """Return the facts of targets that got their newest rows so long ago."""
    ids = {"delta": "delta:orders", "iceberg": "iceberg:orders", "topic": "topic:clean"}
    tables = [
        LedgerFacts(ids[name], "target", "entry", committed_at_ms=None if ago is None else int((NOW - ago) * 1000))
        for name, ago in ago_seconds.items()
    ]
    return PipelineFacts(spec=PipelineSpec.model_validate({**BODY, "freshness": freshness}), now=NOW, tables=tuple(tables))


@pytest.mark.parametrize(
    ("freshness", "delta", "iceberg", "topic", "expected"),
    [
        ("real_time", 1, 2, 900, 900),
        ("real_time", 800, 700, 3, 700),
        ("real_time", 1, 2, None, None),
        ("250ms", 1, 2, 900, 1),
    ],
)
def test_the_query_that_has_stopped_landing_is_seen(
    freshness: str, delta: float, iceberg: float, topic: float | None, expected: float | None
) -> None:
    assert seconds_since_commit(facts(freshness, delta=delta, iceberg=iceberg, topic=topic)) == expected
