"""Which offsets make up a sample."""

from __future__ import annotations

import pytest

from lakebound.landing.direct_read import RecordColumns
from lakebound.landing.sampling import Range, choose_ranges, read_of
from lakebound.ledger.topics import PartitionId


@pytest.mark.parametrize(
    ("known", "count", "newest", "expected"),
    [
        ({("t", 0): (0, 100)}, 10, True, {("t", 0): (90, 100)}),
        ({("t", 0): (5, 100)}, 10, False, {("t", 0): (5, 15)}),
        ({("t", 0): (0, 3), ("t", 1): (0, 100)}, 10, True, {("t", 0): (0, 3), ("t", 1): (93, 100)}),
        ({("t", 0): (7, 7), ("u", 0): (0, 100)}, 10, True, {("u", 0): (90, 100)}),
        ({("t", 0): (0, 9), ("t", 1): (0, 9), ("t", 2): (0, 9)}, 2, True, {("t", 0): (8, 9), ("t", 1): (8, 9)}),
        ({("t", 0): (0, 2)}, 1000, True, {("t", 0): (0, 2)}),
        ({("t", 0): (4, 4)}, 10, True, {}),
    ],
)
def test_each_partition_gives_its_share(
    known: dict[PartitionId, Range], count: int, newest: bool, expected: dict[PartitionId, Range]
) -> None:
    assert choose_ranges(known, count, newest=newest) == expected


def test_of_what_was_not_read_any_more_nothing_is_said() -> None:
    read = RecordColumns(topics=["t", "u", "t"], partitions=[0, 1, 0], offsets=[5, 2, 8])
    ranges = {("t", 0): (5, 20), ("t", 1): (5, 20), ("u", 1): (0, 3)}
    assert read_of(ranges, read) == {("t", 0): (5, 9), ("u", 1): (0, 3)}
