"""Maintenance keeps what validation has still to read."""

from __future__ import annotations

import pytest

from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.operations.maintenance.still_to_validate import WAITED_FOR_SECONDS, awaiting_validation, last_validated

PAST = TablePast(
    table="iceberg:shop.orders",
    versions=tuple(Version(version=number, committed_at_ms=number) for number in (5, 6, 7)),
    pins={"dashboard": 5},
)
NOW_MS = 10_000_000_000


def validated(last: str, at: float) -> ValidatedRange:
    return ValidatedRange(claim="c", run_id="r", table="iceberg:shop.orders", positions=((1, 2),), last=last, at=at)


def test_the_last_range_of_a_table_says_where_validation_stands() -> None:
    now = NOW_MS / 1000
    history = [validated("5", now - 100), validated("6", now - 50)]
    assert last_validated(history, NOW_MS) == {"iceberg:shop.orders": 6}
    found = awaiting_validation(PAST, 6)
    assert found is not None and found.pins == {"dashboard": 5, "validation": 6}


@pytest.mark.parametrize("version", [None, 99])
def test_a_version_that_is_gone_or_was_never_stops_no_removal(version: int | None) -> None:
    assert awaiting_validation(PAST, version) == PAST
    assert awaiting_validation(None, 6) is None


def test_validation_that_no_longer_runs_is_not_waited_for() -> None:
    assert last_validated([validated("6", NOW_MS / 1000 - WAITED_FOR_SECONDS - 1)], NOW_MS) == {}
