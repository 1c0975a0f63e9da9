"""The recorder counts every batch once, never raises, and writes at most every ten seconds."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, TableProgress
from lakebound.control.rollup_book import sum_of
from lakebound.control.rollup_files import read_buckets, read_totals, rollup_file
from lakebound.control.rollups import HOUR, MINUTE, TEN_SECONDS, Figures
from lakebound.landing.cpu_seconds import CpuClock
from lakebound.landing.rollup_recorder import RollupRecorder, figures_of_batch

NOW = 1_700_006_400.0
TABLE = "delta:lake.orders"


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def tables(rows: int) -> dict[str, TableProgress]:
    return {TABLE: TableProgress(version="1", committed_at=NOW, commits=rows // 10, rows=rows)}


def progress(rows: int = 0, lag_records: int | None = None) -> Progress:
    found = tables(rows) if rows else {}
    return Progress(pipeline="orders", app_id="a", started_at=NOW, updated_at=NOW, tables=found, lag_records=lag_records)


def batch(read: int = 10) -> Figures:
    return figures_of_batch(
        read=read,
        filtered=1,
        quarantined=1,
        lane="direct",
        seconds=0.04,
        durations_ms={"direct_write": 30.0},
        oldest_age_seconds=0.2,
    )


def test_batches_of_applications_that_follow_each_other_add_up(control: ControlFolder) -> None:
    clock, landed = Clock(), 0
    for _ in range(3):
        recorder, rows = RollupRecorder(control, clock), 0
        for _ in range(500):
            rows, landed, clock.now = rows + 10, landed + 10, clock.now + 0.3
            recorder.add(batch(), tables(rows))
            recorder.tick(progress(rows, lag_records=4))
        recorder.end(progress(rows, lag_records=3))
        for resolution in (TEN_SECONDS, MINUTE, HOUR):
            assert sum_of(read_buckets(control, resolution, NOW)).rows == landed
    totals = read_totals(control)
    assert totals is not None
    assert (totals.figures.rows, totals.figures.read, totals.figures.quarantined) == (landed, landed, 1500)
    assert totals.figures.freshness.count == landed and totals.figures.batches["direct"].count == 1500
    assert totals.figures.steps["direct"]["direct_write"] == pytest.approx(45.0)
    assert read_buckets(control, MINUTE, NOW)[0].figures.lag_records == 4


def test_each_bucket_has_the_cpu_seconds_of_its_time(control: ControlFolder) -> None:
    clock, used = Clock(), [5.0]
    recorder = RollupRecorder(control, clock, lambda: used[0])
    for second in range(25):
        clock.now, used[0] = NOW + second, 5.0 + second / 2
        recorder.add(batch(), tables(10))
        recorder.tick(progress(10))
    used[0] = 4.0  # what cannot be counted once takes nothing away
    recorder.end(progress(10))
    assert [bucket.figures.cpu_seconds for bucket in read_buckets(control, TEN_SECONDS, NOW)] == [10.0, 5.0, 0.0]
    used[0] = 7.0
    recorder = RollupRecorder(control, clock, lambda: used[0])
    recorder.end(progress())
    totals = read_totals(control)
    assert totals is not None and totals.figures.cpu_seconds == 22.0, "an application begins at nought, its start counts"


def test_the_cpu_seconds_of_children_count_also_when_they_have_ended() -> None:
    burn = "import time; [0 for _ in iter(lambda: time.process_time() < {}, False)]"
    # More than is waited for: the kernel tells hundredths of a second, and rounds down user and system time of both processes.
    grandchild = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn.format(0.25)!r}]); input()"
    with subprocess.Popen([sys.executable, "-c", grandchild], stdin=subprocess.PIPE) as child:
        clock = CpuClock(child.pid)
        wait_until(lambda: clock() >= 0.15, 30, "its CPU seconds")
        assert child.stdin is not None
        child.stdin.close()
        child.wait(HANGS_SECONDS)
        before = clock()
        assert before >= 0.15 and clock() == before, "of a process that is gone, what was known last"


def test_it_writes_only_when_ten_seconds_are_over(control: ControlFolder) -> None:
    clock = Clock()
    recorder = RollupRecorder(control, clock)
    for second in range(10):
        clock.now = NOW + second
        recorder.tick(progress())
        assert not rollup_file(control, TEN_SECONDS).exists()
    clock.now = NOW + 10
    recorder.tick(progress())
    assert len(rollup_file(control, TEN_SECONDS).read_text().splitlines()) == 1


def test_a_disk_that_takes_nothing_fails_no_batch_and_loses_no_count(
    control: ControlFolder, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    recorder = RollupRecorder(control, clock)
    control.folder.mkdir(parents=True)
    control.rollups.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        for second in range(0, 5000, 10):
            clock.now = NOW + second
            recorder.add(batch(), tables(second + 10))
            recorder.tick(progress(second + 10))
    assert caplog.text.count("rollups cannot be written") == 1
    control.rollups.unlink()
    recorder.end(progress(5000))
    totals = read_totals(control)
    assert totals is not None and totals.figures.rows == 5000 and totals.figures.read == 5000
    assert sum_of(read_buckets(control, TEN_SECONDS, NOW)).rows == 5000


def test_who_lost_the_lease_writes_nothing_more(control: ControlFolder) -> None:
    recorder = RollupRecorder(control, Clock())
    recorder.add(batch(), tables(10))
    recorder.close()
    recorder.end(progress(10))
    assert not control.rollups.exists()


def test_a_clock_that_goes_back_loses_nothing(control: ControlFolder) -> None:
    clock = Clock()
    recorder = RollupRecorder(control, clock)
    for number, ahead in enumerate((0, 30, 5, 40, -7200, -7190, 50), start=1):
        clock.now = NOW + ahead
        recorder.add(batch(), tables(10 * number))
        recorder.tick(progress(10 * number))
    recorder.end(progress(70))
    totals = read_totals(control)
    assert totals is not None and totals.figures.rows == 70


def test_a_batch_costs_next_to_nothing(control: ControlFolder) -> None:
    recorder = RollupRecorder(control)
    began = time.process_time()
    for number in range(1000):
        recorder.add(batch(), tables(10 * number))
    assert time.process_time() - began < 0.5, "half a millisecond per batch would be ten times too much"


def test_nothing_that_is_told_wrongly_reaches_the_stream(control: ControlFolder, caplog: pytest.LogCaptureFixture) -> None:
    RollupRecorder(control).add(None, {})  # type: ignore[arg-type]
    assert "a batch is missing in the rollups" in caplog.text
