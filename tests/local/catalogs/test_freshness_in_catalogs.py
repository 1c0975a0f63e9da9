"""Freshness seen from outside, of tables that are not files beside a SQLite catalog."""

from __future__ import annotations

import threading
import time

import pytest
from tests.support.tables.local_tables import FIRST_DAY_US, lander, make_table
from tests.support.waiting import wait_until

from lakebound.errors import CatalogUnavailableError
from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
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


def test_a_look_that_fails_is_followed_by_the_next(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the first commit is seen late, and the second one in time."""
    spec = TableSpec(format="iceberg", name="shop.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    catalog, failed = open_catalog(at), threading.Event()
    ask = catalog.pointer

    def fail_at_first(identifier: tuple[str, ...]) -> str | None:
        if not failed.is_set():
            failed.set()
            raise CatalogUnavailableError("the server", "status 503")
        return ask(identifier)

    with FreshnessObserver(at, [spec]) as observer:
        monkeypatch.setattr(catalog, "pointer", fail_at_first)
        assert failed.wait(DEADLINE_SECONDS)
        app.land(0, 10)
        wait_until(lambda: observer.measure().get(spec.id), DEADLINE_SECONDS, "the commit to be seen")


def test_a_table_that_cannot_be_watched_is_no_table_without_commits(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders")
    make_table(spec, at)
    broken = threading.Event()

    def fail(identifier: tuple[str, ...]) -> str | None:
        broken.set()
        raise RuntimeError("a fault of the program")

    with FreshnessObserver(at, [spec]) as observer:
        monkeypatch.setattr(open_catalog(at), "pointer", fail)
        assert broken.wait(DEADLINE_SECONDS)
    with pytest.raises(RuntimeError, match="fault of the program"):
        observer.measure()
