"""The history of tables' health: bounded, safe with two writers, and the trend that it shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.health_history import (
    DAY_SECONDS,
    HealthReading,
    Trend,
    read_health_history,
    record_health,
    trend,
)

DAY_MS = int(DAY_SECONDS * 1000)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def reading(at_ms: int, table: str = "delta:a", score: float = 90, files: int = 10) -> HealthReading:
    return HealthReading(at_ms=at_ms, table=table, score=score, files=files, small_files=1, size_bytes=2)


def test_no_history_yet(control: ControlFolder) -> None:
    assert read_health_history(control) == []
    assert not control.folder.exists(), "looking makes nothing"


def test_what_is_recorded_is_read_again_in_order(control: ControlFolder) -> None:
    readings = [reading(1), reading(1, "iceberg:a"), reading(2)]
    record_health(control, readings[:1])
    record_health(control, readings[1:])
    assert read_health_history(control) == readings
    assert control.health_history == control.home / "pipelines" / "orders" / "health.jsonl"
    assert len(control.health_history.read_text().splitlines()) == 3


def test_each_table_keeps_its_newest_readings(control: ControlFolder) -> None:
    record_health(control, [reading(0, "iceberg:rare")])
    for start in range(0, 12, 4):
        record_health(control, [reading(ms) for ms in range(start, start + 4)], kept_per_table=5)
    kept = read_health_history(control)
    assert [one.at_ms for one in kept if one.table == "delta:a"] == [7, 8, 9, 10, 11]
    assert [one.at_ms for one in kept if one.table == "iceberg:rare"] == [0]


def test_two_writers_lose_nothing(control: ControlFolder) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda ms: record_health(control, [reading(ms)]), range(40)))
    assert [one.at_ms for one in read_health_history(control)] == list(range(40))


def test_a_line_that_cannot_be_read_is_left_out(control: ControlFolder) -> None:
    record_health(control, [reading(1)])
    with control.health_history.open("a") as file:
        file.write('{"at_ms": 2\n\n' + reading(3).model_dump_json()[:-1] + ', "of_a_newer_version": 1}\n')
    assert [one.at_ms for one in read_health_history(control)] == [1, 3]
    record_health(control, [reading(4)])
    assert [one.at_ms for one in read_health_history(control)] == [1, 3, 4]


def test_a_trend_needs_an_earlier_reading_of_the_table() -> None:
    assert trend([], reading(5)) is None
    assert trend([reading(5), reading(6), reading(1, "iceberg:a")], reading(5)) is None


def test_a_trend_looks_back_a_day_or_to_the_oldest() -> None:
    now = 10 * DAY_MS
    history = [
        reading(now - 3 * DAY_MS, files=1, score=10),
        reading(now - DAY_MS - 5, files=2, score=20),
        reading(now - DAY_MS + 5, files=3, score=30),
        reading(now - 5, files=4, score=40),
    ]
    current = reading(now, files=100, score=50.5)
    assert trend(history[::-1], current) == Trend(since_ms=now - DAY_MS - 5, files=98, score=30.5)
    assert trend(history[2:], current) == Trend(since_ms=now - DAY_MS + 5, files=97, score=20.5)
    assert trend(history, current, window_seconds=0.001) == Trend(since_ms=now - 5, files=96, score=10.5)
