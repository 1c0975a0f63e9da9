"""Freshness seen from outside, of tables that are not files beside a SQLite catalog."""

from __future__ import annotations

import time

import pytest
from tests.support.tables.local_tables import FIRST_DAY_US, lander, make_table
from tests.support.waiting import wait_until

from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.spec.pipeline import TableSpec
from lakebound.tables.places import Places

DEADLINE_SECONDS = 30.0
FIRST_RECORD_MS = FIRST_DAY_US / 1000


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_commit_is_seen_through_each_catalog_and_store(kind: str, at: Places) -> None:
    spec = TableSpec.model_validate({"format": kind, "name": "shop.orders"})
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    with FreshnessObserver(at, [spec]) as observer:
        before_ms = time.time() * 1000
        app.land(0, 10)

        def seen() -> VisibleFreshness | None:
            return observer.measure().get(spec.id)

        freshness = wait_until(seen, DEADLINE_SECONDS, "the commit to be seen")
        after_ms = time.time() * 1000
    assert freshness is not None
    assert (freshness.rows, freshness.commits, freshness.files) == (10, 1, 1)
    assert before_ms - FIRST_RECORD_MS <= freshness.max_ms <= after_ms - FIRST_RECORD_MS


def test_a_table_that_is_not_there_yet_is_waited_for(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders")
    with FreshnessObserver(at, [spec]) as observer:
        make_table(spec, at)
        app = lander(spec, at)
        app.open()
        app.land(0, 10)
        wait_until(lambda: observer.measure().get(spec.id), DEADLINE_SECONDS, "the commit to be seen")
