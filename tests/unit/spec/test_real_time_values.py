"""Of a pipeline in real time it is said which values Spark's reader takes otherwise."""

from __future__ import annotations

from typing import Any

from tests.support.streams.stand_ins import ORDERS

from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time_values import real_time_value_warnings


def warnings(schema: str, **changes: Any) -> list[str]:
    body = {key: value for key, value in ORDERS.items() if key != "tables"}
    body |= {"value": {"format": "json", "schema": schema}, "freshness": "real_time", "to_topics": [{"topic": "sent"}]}
    return real_time_value_warnings(PipelineSpec.model_validate(body | changes))


def test_texts_and_times_are_named_with_their_paths() -> None:
    texts, times, sizes = warnings("id STRING, n INT, place STRUCT<at: ARRAY<TIMESTAMP>, tags: MAP<STRING, STRING>>")
    assert "(id, place.tags)" in texts and "(place.at)" in times and "50,000" in sizes
    assert "(a, b, c and 1 more)" in warnings("a STRING, b STRING, c STRING, d STRING")[0]


def test_of_batches_and_of_bytes_there_is_nothing_to_say() -> None:
    assert warnings("id STRING", freshness="1s") == []
    assert warnings("id STRING", value={"format": "bytes"}) == []
    assert len(warnings("n INT")) == 1
