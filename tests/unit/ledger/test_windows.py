"""From where a stream with state goes on, and which offsets its open windows may hold."""

from __future__ import annotations

import random

import pytest

from lakebound.errors import WindowsMismatchError
from lakebound.ledger import windows as ledger
from lakebound.ledger.windows import (
    OpenRanges,
    ReadRange,
    WindowPosition,
    WindowStart,
    WindowState,
    gone_before,
    plan_windows,
    start_with,
)

AT = [WindowPosition(ends={0: 10 * n, 1: 9 * n}, watermark_ms=100 * n, newest_ms=100 * n + 50) for n in range(5)]


def state(serial: int, **changes: object) -> WindowState:
    before, after = AT[serial - 1], AT[serial]
    return WindowState.model_validate({"id": "w", "serial": serial, "before": before, "after": after, **changes})


def plan(
    *tables: WindowState | None,
    quarantine: WindowState | None = None,
    window_id: str = "w",
    rows_id: str = "",
    marks: dict[int, int] | None = None,
) -> WindowStart:
    told = [one.after.ends for one in tables if one is not None]
    lowest = marks or min(told, key=lambda ends: ends[0], default={0: 3, 1: 4})
    return plan_windows("p", window_id, rows_id, {str(n): one for n, one in enumerate(tables)}, quarantine, lowest)


def test_a_first_start_begins_at_the_marks_without_state() -> None:
    start = plan(None, None)
    assert start == WindowStart(WindowPosition(ends={0: 3, 1: 4}, horizon={0: 3, 1: 4}), 0)
    assert not start.position.has_state


def test_tables_at_one_batch_go_on_after_it() -> None:
    assert plan(state(3), state(3)) == WindowStart(AT[3], 3, newest=state(3))
    assert plan(state(3), state(3), quarantine=state(2)) == WindowStart(AT[3], 3, newest=state(3))


@pytest.mark.parametrize(
    ("tables", "quarantine"),
    [((state(3), state(2)), None), ((state(2), state(2)), state(3)), ((state(2), state(3)), state(3))],
)
def test_a_batch_that_some_lack_is_repeated_from_where_it_began(
    tables: tuple[WindowState, ...], quarantine: WindowState | None
) -> None:
    assert plan(*tables, quarantine=quarantine) == WindowStart(AT[2], 2, state(3), state(3))


def test_the_first_batch_is_repeated_where_a_table_has_nothing() -> None:
    assert plan(state(1), None) == WindowStart(AT[0], 0, state(1), state(1))
    assert plan(None, None, quarantine=state(1)) == WindowStart(AT[0], 0, state(1), state(1))


@pytest.mark.parametrize(
    ("tables", "quarantine", "window_id"),
    [
        ((state(3), state(1)), None, "w"),
        ((state(3), None), None, "w"),
        ((None, None), state(2), "w"),
        ((state(2), state(2)), None, "other"),
        ((state(2), state(2, after=AT[3])), None, "w"),
    ],
    ids=["two apart", "one made anew", "both rewound", "another transform", "different ends"],
)
def test_what_does_not_fit_together_is_refused(
    tables: tuple[WindowState | None, ...], quarantine: WindowState | None, window_id: str
) -> None:
    with pytest.raises(WindowsMismatchError):
        plan(*tables, quarantine=quarantine, window_id=window_id)


def test_marks_that_a_person_has_moved_are_refused() -> None:
    with pytest.raises(WindowsMismatchError, match="next offsets of the tables"):
        plan(state(2), state(2), marks={0: 25, 1: 18})


def test_code_that_was_changed_while_a_batch_was_landed_in_part_is_refused_until_it_has_landed() -> None:
    old = {"rows_id": "old", "rows_since_ms": 7}
    with pytest.raises(WindowsMismatchError, match="put the code back"):
        plan(state(3, **old), state(2, **old), rows_id="new")
    assert plan(state(3, **old), state(2, **old), rows_id="old").rows_since_ms("old") == 7
    whole = plan(state(3, **old), state(3, **old), rows_id="new")
    assert (whole.rows_since_ms("new"), whole.rows_since_ms("old")) == (AT[3].watermark_ms, 7)
    # The quarantine alone has the batch: no table has rows of it.
    assert plan(state(2, **old), state(2, **old), quarantine=state(3, **old), rows_id="new").repeated is not None
    assert plan(None, None, rows_id="new").rows_since_ms("new") is None


def test_horizons_of_one_batch_may_differ() -> None:
    other = state(2, after=AT[2].model_copy(update={"horizon": {0: 1}}))
    assert plan(state(2), other).serial == 2


def test_a_partition_that_came_since_begins_at_its_first_offset_also_in_a_repeated_batch() -> None:
    start = start_with(plan(state(3), state(2)), {0: 0, 1: 0, 2: 7})
    assert start.position.ends == {**AT[2].ends, 2: 7} and start.position.horizon[2] == 7
    assert start.repeated is not None and start.repeated.after.ends == {**AT[3].ends, 2: 7}
    assert ledger.is_same_batch(start.repeated, state(3))


def test_records_of_open_windows_that_kafka_has_deleted_are_named() -> None:
    position = WindowPosition(ends={0: 10, 1: 10, 2: 10}, horizon={0: 4, 1: 8, 2: 10})
    assert gone_before(position, {0: 6, 1: 8, 2: 12}) == {0: (4, 6)}


def test_the_next_watermark_never_goes_back() -> None:
    assert WindowPosition(ends={}, watermark_ms=40).next_watermark_ms(10) == 40
    assert WindowPosition(ends={}, watermark_ms=40, newest_ms=45).next_watermark_ms(10) == 40
    assert WindowPosition(ends={}, watermark_ms=40, newest_ms=65).next_watermark_ms(10) == 55


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [4, 256])
def test_the_horizon_keeps_every_record_of_an_open_window(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MOST_TIMES", most)
    rng, ranges, records, watermark_ms, moved = random.Random(seed), OpenRanges(AT[0]), dict[int, int](), 0, 0
    position = WindowPosition(ends={0: 0})
    for batch in range(60):
        start = len(records)
        for offset in range(start, start + rng.randrange(6)):
            records[offset] = max(1, batch * 10 - rng.choice([0, 0, 5, 70])) // 5 * 5 + 5  # end of its window
        read = [end for offset, end in records.items() if offset >= start]
        ranges.read({0: ReadRange(start, max(read))} if read else {})
        ranges.close(watermark_ms)
        position = ranges.position({0: len(records)}, watermark_ms, 1)
        held = [offset for offset, end in records.items() if end > watermark_ms]
        assert position.horizon[0] <= min(held, default=len(records))
        assert position.open_until_ms.get(0, 0) >= max((records[offset] for offset in held), default=0)
        moved += position.horizon[0] > 0
        if rng.random() < 0.2:
            ranges = OpenRanges(position)  # a start
        watermark_ms = max(watermark_ms, batch * 10 - 30)
    assert moved > 10, "the horizon stays where it is"


@pytest.mark.parametrize("watermark", [300, 1_100, 2_000])
@pytest.mark.parametrize("restarts", [0, 700, 4_500])
def test_the_horizon_moves_however_many_batches_a_watermark_is_long(watermark: int, restarts: int) -> None:
    """A record each second, a batch for each, windows of a minute: what is open is a minute and the watermark."""
    ranges, window = OpenRanges(WindowPosition(ends={0: 0}, horizon={0: 0})), 60
    for batch in range(1, 8_000):
        ranges.read({0: ReadRange(batch - 1, (batch // window + 1) * window + batch % 7)})
        ranges.close(max(batch - watermark, 0))
        position = ranges.position({0: batch}, max(batch - watermark, 0), batch)
        if restarts and batch % restarts == 0:
            ranges = OpenRanges(position)  # It knows a few times alone, and so closes them late.
            assert len(position.open_from[0]) <= 10
        if batch > 2 * watermark:
            assert batch - position.horizon[0] <= (1.35 if restarts else 1.1) * (window + 7 + watermark), batch
