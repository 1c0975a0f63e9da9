"""Freshness seen from outside: real tables, a reader that only looks."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import FIRST_DAY_US, lander, make_table
from tests.support.tables.maintained import rewrite_iceberg
from tests.support.waiting import wait_until

from lakebound.inspection.visible_commits.iceberg import changes_seen
from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

FIRST_RECORD_MS = FIRST_DAY_US / 1000
DEADLINE_SECONDS = 30.0
CLOCK_SLACK_MS = 1.0

SPECS = [TableSpec(format="delta", name="shop.orders"), TableSpec(format="iceberg", name="shop.orders")]
PARTITIONED = [
    TableSpec(format="delta", name="shop.by_city", partition_by=("city",)),
    TableSpec(format="iceberg", name="shop.by_day", partition_by=("day(at)",)),
]


def seen(observer: FreshnessObserver, spec: TableSpec, condition: Callable[[VisibleFreshness], bool]) -> VisibleFreshness:
    """Wait until the observer has seen so much of the table, and return what."""

    def found() -> VisibleFreshness | None:
        freshness = observer.measure().get(spec.id)
        return freshness if freshness and condition(freshness) else None

    answer = wait_until(found, DEADLINE_SECONDS, f"commits of {spec.id} to be seen")
    assert answer is not None
    return answer


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_freshness_is_when_a_reader_saw_it_minus_when_it_was_produced(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    with FreshnessObserver(at, [spec]) as observer:
        before_ms = time.time() * 1000
        app.land(0, 10)
        freshness = seen(observer, spec, lambda found: found.rows == 10)
        after_ms = time.time() * 1000
    # Record 0 is the oldest: it waited longest.
    assert before_ms - FIRST_RECORD_MS <= freshness.max_ms <= after_ms - FIRST_RECORD_MS + CLOCK_SLACK_MS
    assert freshness.max_ms - freshness.mean_ms == pytest.approx(0.0045, abs=0.001), "offsets 0 to 9 are a microsecond apart"
    assert freshness.p50_ms <= freshness.p95_ms <= freshness.p99_ms <= freshness.max_ms
    assert (freshness.commits, freshness.files) == (1, 1)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_each_commit_has_a_time_of_its_own(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    with FreshnessObserver(at, [spec]) as observer:
        app.land(0, 10)
        first = seen(observer, spec, lambda found: found.commits == 1)
        between_ms = time.time() * 1000
        app.open()
        app.land(10, 20)
        both = seen(observer, spec, lambda found: found.commits == 2)
    assert both.rows == 20
    # The first commit's rows are as fresh as they were: what came later does not make them older.
    second_mean_ms = 2 * both.mean_ms - first.mean_ms
    assert second_mean_ms >= between_ms - FIRST_RECORD_MS - CLOCK_SLACK_MS
    assert first.max_ms <= between_ms - FIRST_RECORD_MS + CLOCK_SLACK_MS


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_what_was_there_before_does_not_count(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    with FreshnessObserver(at, [spec]) as observer:
        app.land(10, 15)
        freshness = seen(observer, spec, lambda found: found.rows >= 5)
    assert (freshness.rows, freshness.commits) == (5, 1)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_table_may_appear_while_it_is_watched(spec: TableSpec, at: Places) -> None:
    with FreshnessObserver(at, [spec]) as observer:
        make_table(spec, at)
        lander(spec, at).land(0, 10)
        assert seen(observer, spec, lambda found: found.rows == 10).commits == 1


@pytest.mark.parametrize("spec", PARTITIONED, ids=lambda spec: spec.id)
def test_every_file_of_a_commit_counts(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    with FreshnessObserver(at, [spec]) as observer:
        lander(spec, at).land(0, 48)
        freshness = seen(observer, spec, lambda found: found.rows == 48)
    assert freshness.commits == 1
    assert freshness.files > 1


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_records_of_the_warm_up_do_not_count(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    with FreshnessObserver(at, [spec]) as observer:
        lander(spec, at).land(0, 10)
        seen(observer, spec, lambda found: found.rows == 10)
    late = observer.measure(produced_after_ms=FIRST_RECORD_MS + 0.0065)
    assert late[spec.id].rows == 3, "records 7, 8 and 9"
    assert observer.measure(produced_after_ms=FIRST_RECORD_MS + 1) == {}


def test_a_table_without_commits_is_left_out(at: Places) -> None:
    for spec in SPECS:
        make_table(spec, at)
    with FreshnessObserver(at, SPECS) as observer:
        lander(SPECS[0], at).land(0, 10)
        seen(observer, SPECS[0], lambda found: found.rows == 10)
    assert set(observer.measure()) == {SPECS[0].id}


def test_a_busy_catalog_is_no_commit() -> None:
    looks = [(1.0, "a"), (2.0, None), (3.0, "a"), (4.0, "b"), (5.0, None), (6.0, "c"), (7.0, "c")]
    assert list(changes_seen("a", looks)) == [4.0, 6.0]


def test_the_first_location_of_a_new_table_is_a_change() -> None:
    assert list(changes_seen(None, [(1.0, None), (2.0, "a"), (3.0, "a")])) == [2.0]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_compaction_neither_counts_nor_hides_what_it_rewrote(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    with FreshnessObserver(at, [spec]) as observer:
        app.land(0, 10)
        app.land(10, 20)
        landed = seen(observer, spec, lambda found: found.commits == 2)
        if spec.format == "delta":
            DeltaTable(str(at.delta_path(spec))).optimize.compact()
        else:
            rewrite_iceberg(spec, at)
        lander(spec, at).land(20, 25)
        after = seen(observer, spec, lambda found: found.commits >= 3)
    assert (landed.rows, after.rows, after.commits) == (20, 25, 3)
