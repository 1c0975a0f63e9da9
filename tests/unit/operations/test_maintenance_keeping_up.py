from __future__ import annotations

import pytest

from lakebound.operations.maintenance.health_history import HealthReading
from lakebound.operations.maintenance.keeping_up import MANY_SMALL_FILES, not_keeping_up

MINUTE_MS = 60_000


def readings(*small_files: int, table: str = "delta:shop.orders") -> list[HealthReading]:
    return [
        HealthReading(at_ms=MINUTE_MS * 10 * number, table=table, score=50, files=files, small_files=files, size_bytes=1)
        for number, files in enumerate(small_files)
    ]


@pytest.mark.parametrize(
    ("small_files", "is_told"),
    [
        pytest.param((5_000, 3_000, 9_000, 6_000), True, id="more after each run"),
        pytest.param((5_000, 3_000, 9_000, 2_900), False, id="each run gets to where the one before got"),
        pytest.param((900, 100, 1_900, 1_000), False, id="few"),
        pytest.param((3_000, 9_000, 20_000), False, id="one run says nothing"),
        pytest.param((30_000, 20_000, 9_000, 5_000, 4_000, 3_000), False, id="an old table that is being compacted"),
        pytest.param((10, 10, 10, 5_000, 3_000, 9_000, 6_000), True, id="only the newest count"),
    ],
)
def test_compaction_keeps_up_if_its_runs_get_as_far_as_before(small_files: tuple[int, ...], is_told: bool) -> None:
    assert bool(not_keeping_up(readings(*small_files))) == is_told


def test_each_table_is_told_by_itself_with_both_numbers() -> None:
    grown = readings(5_000, 3_000, 9_000, 29_871, table="iceberg:shop.orders")
    told = not_keeping_up([*reversed(grown), *readings(*([MANY_SMALL_FILES] * 4))])
    assert len(told) == 1
    assert "iceberg:shop.orders: 29,871 small files, 30 minutes earlier 5,000" in told[0]
