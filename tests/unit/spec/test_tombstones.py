"""Which pipelines may delete keys of their stores by records without a value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakebound.spec.pipeline import PipelineSpec

REDIS = {"host": "cache"}
COUNTERS = {"time": "paid_at", "windows": {"1m": "5s"}}
ROWS = {"name": "cards", "key": "card", "redis": REDIS}


def pipeline(*stores: dict[str, Any], **more: Any) -> PipelineSpec:
    body = {
        "pipeline": "payments",
        "topics": ["payments"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {"format": "json", "schema": "card STRING"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "payments"}],
        "null_values": "delete",
        "to_stores": stores,
        **more,
    }
    return PipelineSpec.model_validate(body)


def test_stores_of_rows_with_one_key_may_delete_beside_tables_and_topics() -> None:
    found = pipeline(ROWS, {**ROWS, "name": "more"}, to_topics=[{"topic": "sent"}])
    assert found.null_values == "delete"
    assert pipeline({**ROWS, "key": "key"}, value={"format": "bytes"}).null_values == "delete"
    named = {"format": "string", "as": "card"}
    assert all(pipeline(ROWS, value={"format": kind}, key=named).null_values == "delete" for kind in ("bytes", "string"))


def test_what_was_there_before_is_as_it_was() -> None:
    for null_values in ("quarantine", "skip", "row"):
        assert pipeline(null_values=null_values).null_values == null_values
        assert pipeline({**ROWS, "counters": COUNTERS}, null_values=null_values).null_values == null_values


@pytest.mark.parametrize(
    ("stores", "more", "what"),
    [
        ([], {}, "null_values: delete removes .* there are none"),
        (
            [ROWS, {**ROWS, "name": "sums", "counters": COUNTERS}],
            {},
            r"delete .* to_stores\[1\] \(sums\): it keeps",
        ),
        ([ROWS, {**ROWS, "name": "users", "key": "user"}], {}, "needs one key for all of to_stores, and theirs are card, user"),
        ([ROWS], {"value": {"format": "bytes"}}, "needs to_stores with 'key: key' where values are bytes"),
        ([ROWS], {"null_values": "rows"}, "null_values"),
        ([ROWS], {"value": {"format": "string"}}, "needs a column with the key of the record where values are texts"),
        ([ROWS], {"value": {"format": "bytes"}, "key": {"format": "string"}}, "'key: key' where values are bytes"),
        ([ROWS], {"null_values": "row", "value": {"format": "json", "schema": "card STRING NOT NULL"}}, "card of value.schema"),
    ],
)
def test_a_pipeline_whose_tombstones_name_no_row_is_refused(
    stores: list[dict[str, Any]], more: dict[str, Any], what: str
) -> None:
    with pytest.raises(ValidationError, match=what):
        pipeline(*stores, **more)
