"""Which closed windows can be computed again, judged by records whose windows are known."""

from __future__ import annotations

import random

import pytest

from lakebound.ledger.closed_windows import closed_windows
from lakebound.ledger.windows import OpenRanges, ReadRange, WindowPosition, WindowState

SIZE, DELAY = 50, 30


def landed(dice: random.Random) -> tuple[list[WindowState], dict[int, list[int]]]:
    """Return entries of a made-up stream, newest first, and the end of the window of each record, by partition; -1: late."""
    ranges, watermark, newest, now = OpenRanges(WindowPosition(ends={})), 0, 0, 0
    ends: dict[int, list[int]] = {0: [], 1: []}
    states: list[WindowState] = []
    before = WindowPosition(ends={0: 0, 1: 0})
    for serial in range(1, 30):
        closed, read = watermark, dict[int, ReadRange]()
        for partition, records in ends.items():
            start, until = len(records), 0
            for _ in range(dice.randrange(6)):
                now += dice.randrange(20)
                event = max(0, now - dice.choice([0, 0, 10, 60, 150]))
                newest = max(newest, event)
                end = event // SIZE * SIZE + SIZE
                records.append(end if end > closed else -1)
                until = max(until, end, event + 1)
            if until:
                read[partition] = ReadRange(start, until)
        ranges.read(read)
        ranges.close(watermark)
        after = ranges.position({p: len(records) for p, records in ends.items()}, watermark, newest)
        states.insert(0, WindowState(id="w", serial=serial, before=before, after=after))
        before, watermark = after, max(watermark, newest - DELAY)
    return states, ends


def test_each_window_that_is_compared_has_all_of_its_records() -> None:
    told, whole = 0, 0
    for seed in range(300):
        dice = random.Random(seed)
        states, ends = landed(dice)
        earliest = {p: dice.randrange(len(records) + 1) if dice.random() < 0.8 else 0 for p, records in ends.items()}
        which = closed_windows({0: 0, 1: 0}, states, earliest)
        if which is None:
            continue
        assert which.until_ms == states[0].after.watermark_ms and which.ends == states[0].after.ends
        after_ms = -1 if which.after_ms is None else which.after_ms
        assert all(begin >= earliest[partition] for partition, begin in which.begins.items())
        told += which.after_ms is not None
        whole += which.after_ms is None
        for partition, records in ends.items():
            compared = [offset for offset, end in enumerate(records) if after_ms < end <= which.until_ms and end > 0]
            assert all(offset >= which.begins[partition] for offset in compared), (seed, partition)
    assert told > 30 and whole > 5


def test_nothing_is_compared_where_no_window_is_whole() -> None:
    states, ends = landed(random.Random(1))
    assert closed_windows({0: 0, 1: 0}, states, {p: len(records) for p, records in ends.items()}) is None


def test_what_was_deleted_before_the_first_landed_record_is_missed_by_nobody() -> None:
    states, _ = landed(random.Random(1))
    which = closed_windows({0: 7, 1: 3}, states, {0: 7, 1: 2})
    assert which is not None and which.after_ms is None and which.begins == {0: 7, 1: 3}


@pytest.mark.parametrize("first", [{}, {0: 0}])
def test_a_partition_without_a_covered_record_begins_where_it_ends(first: dict[int, int]) -> None:
    states, _ = landed(random.Random(1))
    which = closed_windows(first, states, {0: 0, 1: 0})
    assert which is not None and which.begins[1] == which.ends[1]


def test_windows_whose_rows_other_code_has_made_are_not_compared() -> None:
    for seed in range(20):
        states, _ = landed(random.Random(seed))
        newest_ms = states[0].after.watermark_ms
        assert newest_ms > 10
        for since_ms, after_ms in ((newest_ms - 10, newest_ms - 10), (0, 0)):
            which = closed_windows({0: 0, 1: 0}, [states[0].model_copy(update={"rows_since_ms": since_ms})], {0: 0, 1: 0})
            assert which is not None and (which.after_ms, which.until_ms) == (after_ms, newest_ms)
        assert closed_windows({}, [states[0].model_copy(update={"rows_since_ms": newest_ms})], {}) is None
