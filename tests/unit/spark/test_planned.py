"""What Spark says of the batch that it runs, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakebound_spark.stream.planned import PlannedOffsetsError, planned_ends


def query(batch: int, *offsets: str) -> Any:
    """Return a query that is at a batch with so many sources."""
    first = SimpleNamespace(json=lambda: offsets[0])
    ends = SimpleNamespace(size=lambda: len(offsets), values=lambda: SimpleNamespace(head=lambda: first))
    context = SimpleNamespace(batchId=lambda: batch, endOffsets=lambda: ends)
    return SimpleNamespace(
        _jsq=SimpleNamespace(streamingQuery=lambda: SimpleNamespace(getLatestExecutionContext=lambda: context))
    )


def test_the_ends_of_the_running_batch() -> None:
    assert planned_ends(query(7, '{"orders":{"0":25361,"1":25565}}'), 7) == {"orders": {0: 25361, 1: 25565}}


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (query(8, "{}"), "it is at batch 8"),
        (query(7), "it names 0 sources"),
        (query(7, "{}", "{}"), "it names 2 sources"),
        (query(7, "3"), "its answer is '3'"),
        (query(7, '{"orders":'), "its answer is"),
    ],
)
def test_another_batch_or_another_form_is_refused(running: Any, said: str) -> None:
    with pytest.raises(PlannedOffsetsError, match=rf"batch 7: Spark does not report the offsets of the batch: {said}"):
        planned_ends(running, 7)
