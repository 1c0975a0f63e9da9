"""The window of recent records is right at any time, and stays small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.landing.recent_window import RecentWindow

NOW = 1_700_000_000.0
OVER = 300.0


def test_it_counts_shares_and_reasons_and_forgets_what_is_old() -> None:
    window = RecentWindow(OVER)
    assert window.counted(NOW) is None
    window.add(NOW, 100, 40, {"malformed_json": 30, "does_not_fit: amount": 10})
    window.add(NOW + 200, 100, 0, {})
    found = window.counted(NOW + 200)
    assert found is not None
    assert (found.records, found.quarantined, found.share, found.newest_at) == (200, 40, 0.2, NOW + 200)
    assert list(found.reasons.items()) == [("malformed_json", 30), ("does_not_fit: amount", 10)], "the commonest first"
    later = window.counted(NOW + 301)
    assert later is not None and (later.records, later.quarantined, later.reasons) == (100, 0, {})
    assert window.counted(NOW + 501) is None


def test_a_batch_without_records_is_none_and_a_clock_that_goes_back_loses_none() -> None:
    window = RecentWindow(OVER)
    window.add(NOW, 0, 0, {})
    assert window.counted(NOW) is None
    window.add(NOW, 1, 1, {"null_value": 1})
    window.add(NOW - 100, 1, 1, {"null_value": 1})
    found = window.counted(NOW)
    assert found is not None and found.quarantined == 2


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50), st.integers(0, 50)), max_size=200))
def test_it_is_exact_to_a_slice(batches: list[tuple[float, int, int]]) -> None:
    window, now, added = RecentWindow(OVER), NOW, []
    for pause, records, bad in batches:
        now += pause
        window.add(now, records, min(records, bad), {"x": min(records, bad)} if bad else {})
        added.append((now, records, min(records, bad)))
        found = window.counted(now)
        assert found is not None
        surely = sum(one for at, one, _ in added if at >= now - OVER)
        at_most = sum(one for at, one, _ in added if at >= now - OVER - OVER / 30 - 0.001)
        assert surely <= found.records <= at_most
        assert found.quarantined <= found.records and sum(found.reasons.values()) == found.quarantined


@pytest.mark.parametrize("kinds", [1, 5, 500])
def test_it_stays_small_whatever_comes(kinds: int) -> None:
    window = RecentWindow(OVER)
    for number in range(5000):
        window.add(NOW + number * 0.1, 10, 10, {f"reason {number % kinds}": 10})
    found = window.counted(NOW + 500)
    assert found is not None and len(found.reasons) == min(kinds, 5)
    assert len(window._slices) <= 31
    assert all(len(one.reasons) <= 20 for one in window._slices)
