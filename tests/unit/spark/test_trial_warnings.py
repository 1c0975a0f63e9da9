"""What `lakebound try` warns of, by the records alone."""

from __future__ import annotations

from typing import Any

import pytest

from lakebound.landing.direct_read import RecordColumns
from lakebound.landing.sampling import TopicSample
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.check.trial import dropped_fields

pytestmark = pytest.mark.unit


def orders(**value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "topics": ["orders"],
            "freshness": "0ms",
            "value": {"format": "json", "schema": "id BIGINT", **value},
            "tables": [{"format": "delta", "name": "shop.orders"}],
        }
    )


def sample(*values: bytes | None) -> TopicSample:
    return TopicSample(RecordColumns(values=[*values]), {"orders": "id"})


def test_fields_that_the_schema_does_not_name_are_told_with_the_line_to_add() -> None:
    [told] = dropped_fields(orders(), sample(b'{"id": 1, "note": "x"}', b"no json", None))
    assert "`note STRING`" in told and "ignored_fields: [note]" in told


@pytest.mark.parametrize("value", [{"ignored_fields": ["note"]}, {"unknown_fields": "quarantine"}])
def test_fields_that_are_left_out_on_purpose_or_go_to_quarantine_are_not_told(value: dict[str, Any]) -> None:
    assert dropped_fields(orders(**value), sample(b'{"id": 1, "note": "x"}')) == []
