"""What the quarantine says of a late record is read as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.landing.missed_window import MissedWindow, read_missed

MOMENTS = st.integers(0, 4_000_000_000_000)


@given(MOMENTS, st.integers(1, 10**9), MOMENTS, st.integers(1, 50), st.integers(0, 49), st.none() | MOMENTS)
def test_what_is_written_is_read_again(
    start_ms: int, size_ms: int, watermark_ms: int, closed: int, more: int, delay_ms: int | None
) -> None:
    missed = MissedWindow(start_ms, start_ms + size_ms, watermark_ms, closed, closed + more, delay_ms)
    assert read_missed(str(missed)) == missed
    assert missed.reason == ("late" if more == 0 else "late_in_part")


def test_the_text_names_window_and_watermark() -> None:
    told = str(MissedWindow(0, 60_000, 90_500))
    assert told == (
        "its window from 1970-01-01 00:00:00 UTC to 1970-01-01 00:01:00 UTC was closed by the watermark "
        "1970-01-01 00:01:30.500 UTC"
    )
    assert "2 of its 3 windows, the first of them from " in str(MissedWindow(0, 60_000, 90_500, 2, 3))


@pytest.mark.parametrize(
    "text", [None, "", "at is null, so the record belongs to no window", f"{MissedWindow(0, 1, 2)} and more"]
)
def test_other_texts_are_none(text: str | None) -> None:
    assert read_missed(text) is None
