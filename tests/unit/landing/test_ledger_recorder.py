"""The newest batches are noted, bounded and written seldom; an application continues the list of the one before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.control import recent_ledger
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import TableProgress
from lakebound.control.recent_ledger import LandedBatch, RecentLedger, read_recent_ledger, write_recent_ledger
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.ledger.entry import Offsets, TopicOffsets

NOW = 1_700_000_000.0
BATCH = LandedBatch(at=NOW, epoch=3, batch=0, ranges={}, partitions=0, read=10, quarantined=1, reasons={"not_json": 1})


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def offsets(*intervals: tuple[int, int]) -> Offsets:
    return {"orders": TopicOffsets(topic_id="t", partitions={0: intervals})}


def land(recorder: LedgerRecorder, number: int) -> None:
    """Note a batch of ten offsets; a second table lacks some of them."""
    start, end = 10 * number, 10 * number + 10
    tables = {"delta:lake.orders": TableProgress(version=str(number), committed_at=NOW, commits=number, rows=9 * (number + 1))}
    held = [offsets((0, end)), offsets((0, 4), (6, end))]
    recorder.add(replace(BATCH, batch=number), offsets((start, end)), held, tables)


def test_it_writes_every_ten_seconds_what_all_tables_hold(control: ControlFolder) -> None:
    clock = Clock()
    recorder = LedgerRecorder(control, clock, clock)
    land(recorder, 0)
    clock.now += 9
    recorder.tick()
    assert read_recent_ledger(control) is None
    land(recorder, 1)
    clock.now += 1
    recorder.tick()
    found = read_recent_ledger(control)
    assert found is not None
    assert found.coverage == {"orders": {0: ((0, 4), (6, 20))}}
    assert [batch.ranges["orders"][0] for batch in found.batches] == [((0, 10),), ((10, 20),)]
    assert [(batch.partitions, batch.tables["delta:lake.orders"].rows) for batch in found.batches] == [(1, 9), (1, 9)]
    written = control.recent_ledger.stat().st_mtime_ns
    clock.now += 60
    recorder.tick()
    assert control.recent_ledger.stat().st_mtime_ns == written


def test_what_tables_hold_is_written_before_the_first_batch(control: ControlFolder) -> None:
    clock = Clock()
    recorder = LedgerRecorder(control, clock, clock)
    recorder.hold([offsets((0, 7)), offsets((2, 9))])
    clock.now += 10
    recorder.tick()
    found = read_recent_ledger(control)
    assert found is not None and found.coverage == {"orders": {0: ((2, 7),)}} and found.batches == ()


def test_the_next_application_continues_the_list_which_stays_bounded(control: ControlFolder) -> None:
    for first in (0, 150):
        recorder = LedgerRecorder(control)
        for number in range(first, first + 150):
            land(recorder, number)
        recorder.end()
        land(recorder, 999)
        recorder.end()
    found = read_recent_ledger(control)
    assert found is not None
    assert [batch.batch for batch in found.batches] == list(range(100, 300))


def test_nothing_is_written_once_another_application_has_the_lease(control: ControlFolder) -> None:
    recorder = LedgerRecorder(control)
    land(recorder, 0)
    recorder.close()
    recorder.end()
    assert not control.recent_ledger.exists()


def test_many_partitions_make_no_large_file(control: ControlFolder) -> None:
    many = {"orders": TopicOffsets(topic_id="t", partitions=dict.fromkeys(range(3000), ((0, 10**9),)))}
    recorder = LedgerRecorder(control)
    for number in range(200):
        recorder.add(replace(BATCH, batch=number), many, [many], {})
    recorder.end()
    found = read_recent_ledger(control)
    assert found is not None and found.batches[-1].batch == 199
    assert found.batches[-1].partitions == 3000 and len(found.batches[-1].ranges["orders"]) == 64
    assert control.recent_ledger.stat().st_size < 2 * recent_ledger.MAX_BYTES


def test_a_failure_is_told_once_and_tried_again(control: ControlFolder, caplog: pytest.LogCaptureFixture) -> None:
    control.folder.parent.mkdir(parents=True)
    control.folder.write_text("in the way")
    clock = Clock()
    recorder = LedgerRecorder(control, clock, clock)
    land(recorder, 0)
    for _ in range(3):
        clock.now += 10
        recorder.tick()
    assert len([record for record in caplog.records if "newest batches" in record.message]) == 1
    control.folder.unlink()
    clock.now += 10
    recorder.tick()
    assert read_recent_ledger(control) is not None


def test_a_torn_file_is_replaced(control: ControlFolder) -> None:
    write_recent_ledger(control, RecentLedger(NOW, {}, (BATCH,)))
    control.recent_ledger.write_text(control.recent_ledger.read_text()[:40])
    recorder = LedgerRecorder(control)
    land(recorder, 7)
    recorder.end()
    found = read_recent_ledger(control)
    assert found is not None and [batch.batch for batch in found.batches] == [7]


def test_a_clock_set_back_does_not_stop_the_writing(control: ControlFolder) -> None:
    clock, seconds = Clock(), Clock()
    recorder = LedgerRecorder(control, clock, seconds)
    land(recorder, 0)
    clock.now, seconds.now = NOW - 3600, seconds.now + 10
    recorder.tick()
    found = read_recent_ledger(control)
    assert found is not None and found.written_at == NOW - 3600
