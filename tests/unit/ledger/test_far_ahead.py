"""Records that are far ahead are so again at each start, whatever clock and ``max_ahead`` are then."""

from __future__ import annotations

import random

import pytest

from lakebound.ledger.far_ahead import FarAhead, FarAheadRanges, limit_ms, since, with_batch


def is_ahead(known: FarAheadRanges, partition: int, offset: int, event_ms: int, sent_ms: int) -> bool:
    ranges = [one for one in known.get(partition, ()) if one.start <= offset < one.end]
    assert len(ranges) <= 1, "ranges overlap"
    return any(event_ms > min(one.limit_ms, sent_ms + one.max_ahead_ms) for one in ranges)


@pytest.mark.parametrize("seed", range(30))
def test_each_record_is_judged_again_as_it_was(seed: int) -> None:
    dice = random.Random(seed)
    known: dict[int, tuple[FarAhead, ...]] = {}
    truth: dict[tuple[int, int], tuple[int, int, bool]] = {}
    ends, clock_ms, max_ahead_ms = [0, 0], 10_000_000, 90_000
    for _ in range(60):
        clock_ms += dice.choice([500, 500, 40_000])
        if dice.random() < 0.1:
            max_ahead_ms = dice.choice([30_000, 90_000, 600_000])
        limit = limit_ms(clock_ms, max_ahead_ms)
        batch, found = {}, set()
        for partition in range(2):
            start = ends[partition]
            ends[partition] += dice.randrange(4)
            for offset in range(start, ends[partition]):
                sent_ms = clock_ms + dice.choice([0, 0, 10**9])
                event_ms = sent_ms + dice.choice([0, -50, 60_000, 10**7])
                ahead = event_ms > min(limit, sent_ms + max_ahead_ms)
                truth[partition, offset] = (event_ms, sent_ms, ahead)
                found |= {partition} if ahead else set()
            if ends[partition] > start:
                batch[partition] = FarAhead(start=start, end=ends[partition], limit_ms=limit, max_ahead_ms=max_ahead_ms)
        known = with_batch(known, batch, found)
    assert any(ahead for *_, ahead in truth.values()) and not all(ahead for *_, ahead in truth.values())
    for (partition, offset), (event_ms, sent_ms, ahead) in truth.items():
        assert is_ahead(known, partition, offset, event_ms, sent_ms) == ahead
    horizon = {0: ends[0] // 2, 1: ends[1] // 2}
    left = since(known, horizon)
    for (partition, offset), (event_ms, sent_ms, ahead) in truth.items():
        if offset >= horizon[partition]:
            assert is_ahead(left, partition, offset, event_ms, sent_ms) == ahead
    assert sum(map(len, left.values())) < sum(map(len, known.values()))


def test_a_producer_that_is_ahead_all_day_needs_one_range_for_each_step_of_the_limit() -> None:
    known: dict[int, tuple[FarAhead, ...]] = {}
    for second in range(7200):
        limit = limit_ms(second * 1000, 300_000)
        known = with_batch(known, {0: FarAhead(start=second, end=second + 1, limit_ms=limit, max_ahead_ms=300_000)}, {0})
    assert 24 <= len(known[0]) <= 26


@pytest.mark.parametrize("max_ahead_ms", [1, 15_000, 60_000, 3_600_000, 7_777_777])
def test_the_limit_is_after_what_the_clocks_may_be_apart_and_not_far_after(max_ahead_ms: int) -> None:
    for clock_ms in range(0, 10**8, 999_983):
        ahead_ms = limit_ms(clock_ms, max_ahead_ms) - clock_ms
        assert max_ahead_ms + 60_000 < ahead_ms <= max_ahead_ms + 60_000 + max(max_ahead_ms, 60_000)
