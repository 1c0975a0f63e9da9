"""A proof may be asked for of a topic; what only tables have may not."""

from __future__ import annotations

import pytest

from lakebound.errors import UnknownTableError
from lakebound.inspection.proof.collect import table_id
from lakebound.spec.pipeline import PipelineSpec

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "nowhere:9092"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "orders"}],
        "to_topics": [{"topic": "clean"}],
    }
)


def test_a_topic_is_named_where_topics_may_be_meant_alone() -> None:
    assert table_id(SPEC, "clean", with_topics=True) == table_id(SPEC, "topic:clean", with_topics=True) == "topic:clean"
    for name in ("clean", "topic:clean"):
        with pytest.raises(UnknownTableError):
            table_id(SPEC, name)
