"""How late records are, and what a longer watermark would have changed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.cli.late import _print
from lakebound.control.windows_in_use import WindowsProgress
from lakebound.inspection.late import LateReport, NoWindowsError, as_yaml, judge, late_report, rounded_up
from lakebound.settings import load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import StateSpec
from lakebound.tables.places import places_of

STATE = StateSpec(event_time="at", watermark="10s")


def judged(*late_ms: int, others: dict[str, int] | None = None, windows: WindowsProgress | None = None) -> LateReport:
    values = np.array(sorted(late_ms), dtype=np.int64)
    missed, delays = {("late", 60_000): values}, values + STATE.watermark_ms
    return judge("minutes", "delta:quarantine.minutes", STATE, missed, delays, Counter(others or {}), windows)


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=200))
def test_a_longer_watermark_counts_the_records_whose_window_was_closed_for_less(late_ms: list[int]) -> None:
    found = judged(*late_ms)
    [of_size] = found.late
    assert (of_size.records, of_size.max_ms) == (len(late_ms), max(late_ms))
    assert sum(one <= of_size.p50_ms for one in late_ms) * 2 >= len(late_ms)
    assert sum(one < of_size.p90_ms for one in late_ms) < 0.9 * len(late_ms)
    assert found.longer, "no watermark is proposed"
    for longer in found.longer:
        # Spark's predicate, with a watermark that is so much further behind: closed is what ends at or before it.
        assert longer.counted == sum(one - longer.later_ms < 0 for one in late_ms)
        assert longer.later_ms == longer.watermark_ms - STATE.watermark_ms > 0
    assert found.longer[-1].counted == len(late_ms)
    assert [one.watermark_ms for one in found.longer] == sorted({one.watermark_ms for one in found.longer})


def test_records_that_came_under_a_shorter_watermark_need_less_than_the_one_of_now(capsys: pytest.CaptureFixture[str]) -> None:
    """Two came 3 s and 9 s late under a watermark of 5 s, one came 4 s late under that of now, 10 s."""
    late_ms, delays = np.array([3_000, 4_000, 9_000]), np.array([8_000, 14_000, 14_001])
    found = judge("minutes", "delta:q.minutes", STATE, {("late", 60_000): late_ms}, delays, Counter(), None)
    assert found.counted_now == 1 and [(one.watermark_ms, one.counted) for one in found.longer] == [(15_000, 3)]
    _print(found)
    assert "10s (now) 1 (33 %) - " in " ".join(capsys.readouterr().out.split())


def test_state_and_rebuild_grow_as_long_as_windows_stay_open() -> None:
    windows = WindowsProgress(watermark_ms=0, open_rows=700, rebuilt_offsets=1400)
    [longer] = judged(9_999, windows=windows).longer
    assert (longer.watermark_ms, longer.open_rows, longer.rebuilt_offsets) == (20_000, 800, 1600)
    [longer] = judged(9_999, windows=windows.model_copy(update={"open_rows": None})).longer
    assert (longer.open_rows, longer.rebuilt_offsets) == (None, 1600)
    [longer] = judged(9_999).longer
    assert (longer.open_rows, longer.rebuilt_offsets) == (None, None)


@pytest.mark.parametrize(
    ("time_ms", "told"),
    [
        (1, "1s"),
        (1000, "1s"),
        (1001, "2s"),
        (119_001, "2m"),
        (120_001, "3m"),
        (7_200_000, "2h"),
        (7_200_001, "3h"),
        (61_000, "61s"),
    ],
)
def test_watermarks_are_such_as_a_person_writes(time_ms: int, told: str) -> None:
    assert as_yaml(rounded_up(time_ms)) == told
    assert StateSpec(event_time="at", watermark=told).watermark_ms == rounded_up(time_ms)


def test_it_is_printed_with_what_is_in_no_window_for_another_reason(capsys: pytest.CaptureFixture[str]) -> None:
    windows = WindowsProgress(watermark_ms=0, open_rows=700, rebuilt_offsets=1400)
    _print(judged(0, 400, 9_999, others={"far_ahead": 2, "late": 1}, windows=windows))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert "late 1m 3 400 ms 10.0 s 10.0 s 10.0 s" in lines
    assert "10s (now) 0 - 700 1,400" in lines
    assert "11s 2 (67 %) 1.0 s 710 1,420" in lines
    assert "20s 3 (100 %) 10 s 800 1,600" in lines
    assert "delta:quarantine.minutes: 2 records are in no window for another reason: far_ahead" in lines
    assert "delta:quarantine.minutes: 1 late records are not counted, because their error text does not name a window" in lines
    assert lines[-1] == "pipeline minutes: watermark 10s; 3 late records in delta:quarantine.minutes"


def test_without_late_records_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    _print(judge("minutes", "delta:q.minutes", STATE, {}, np.zeros(0, dtype=np.int64), Counter(), None))
    assert capsys.readouterr().out.strip() == "pipeline minutes: watermark 10s; 0 late records in delta:q.minutes"


def test_a_pipeline_without_windows_has_no_late_records() -> None:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.orders"}],
    }
    spec, settings = PipelineSpec.model_validate(body), load_settings({})
    with pytest.raises(NoWindowsError, match="`lakebound quarantine orders`"):
        late_report(spec, places_of(settings, spec.warehouse), None)
