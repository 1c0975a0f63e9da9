"""When a rehearsal is held."""

from __future__ import annotations

import pytest

from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound_spark.batch.rehearsal import nothing_waits

EMPTY = TopicFacts("id", {0: 0, 1: 0}, {0: 0, 1: 0})
USED = TopicFacts("id", {0: 3, 1: 0}, {0: 7, 1: 2})


@pytest.mark.parametrize(
    ("start", "facts", "expected"),
    [
        ({}, {}, True),
        ({"orders": {0: 0, 1: 0}}, {"orders": EMPTY}, True),
        ({"orders": {0: 7, 1: 2}}, {"orders": USED}, True),
        ({"orders": {0: 7, 1: 1}}, {"orders": USED}, False),
        ({"orders": {0: 7}}, {"orders": USED}, False),  # a new partition is read from its beginning
        ({"orders": {0: 7, 1: 2}}, {"orders": USED, "returns": USED}, False),
    ],
)
def test_a_rehearsal_is_held_where_no_record_waits(start: NextOffsets, facts: dict[str, TopicFacts], expected: bool) -> None:
    assert nothing_waits(start, facts) is expected
