"""Rollups: whatever is summed or rewritten, nothing is counted twice, nothing is lost, and files stay small."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.streams.long_form import examples

from lakebound.control.bounds import LAST_MOMENT, seconds_summed
from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import histogram_of
from lakebound.control.rollup_book import RollupBook, sum_of
from lakebound.control.rollup_files import append_buckets, read_buckets, read_file, read_totals, rollup_file, totals_file
from lakebound.control.rollups import HOUR, MINUTE, MOST_REASONS, TEN_SECONDS, Bucket, Figures, TableFigures, pruned, rolled_up

NOW = 1_700_006_400
TABLE = "delta:lake.orders"


def figures(rows: int, lag: int | None = None) -> Figures:
    return Figures(
        tables={TABLE: TableFigures(1, rows, float(NOW))},
        read=rows,
        lag_records=lag,
        freshness=histogram_of(0.1, rows),
        batches={"direct": histogram_of(0.02)},
        steps={"direct": {"verify": 0.5}},
    )


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


@settings(max_examples=examples(100))
@given(st.dictionaries(st.integers(0, 2000), st.integers(0, 50), max_size=40))
def test_rolling_up_loses_nothing_and_keeps_the_last_lag(rows: dict[int, int]) -> None:
    fine = [Bucket(NOW + 10 * at, figures(rows[at], lag=at)) for at in sorted(rows)]
    for resolution in (MINUTE, HOUR):
        coarse = rolled_up(fine, resolution)
        assert sum(bucket.figures.rows for bucket in coarse) == sum(rows.values())
        assert sum_of(coarse).freshness.counts == sum_of(fine).freshness.counts
        assert [bucket.at for bucket in coarse] == sorted({resolution.start_of(bucket.at) for bucket in fine})
        for bucket in coarse:
            inside = [one for one in fine if resolution.start_of(one.at) == bucket.at]
            assert bucket.figures.lag_records == inside[-1].figures.lag_records
        assert rolled_up(rolled_up(fine, MINUTE), HOUR) == rolled_up(rolled_up(fine, MINUTE), HOUR, before=NOW + 1e9)
        assert rolled_up(fine, resolution, known={bucket.at for bucket in coarse}) == []


@settings(max_examples=examples(100))
@given(st.lists(st.integers(-3 * 86_400, 100), max_size=40))
def test_what_is_pruned_is_old_or_not_begun(ages: list[int]) -> None:
    buckets = [Bucket(MINUTE.start_of(NOW + age), figures(1)) for age in ages]
    kept = pruned(buckets, MINUTE, NOW)
    assert [bucket.at for bucket in kept] == sorted({bucket.at for bucket in kept})
    within = {bucket.at for bucket in buckets if NOW - MINUTE.kept_seconds <= bucket.at <= NOW}
    assert within <= {bucket.at for bucket in kept} <= {bucket.at for bucket in buckets}
    assert pruned(kept, MINUTE, NOW) == kept


def test_a_restart_continues_every_resolution_and_the_totals(control: ControlFolder) -> None:
    written = 0
    for start in range(NOW, NOW + 4000, 370):  # each application lives for 370 s, and ends within a bucket
        book = None
        for at in range(start, start + 370, 10):
            book = book or RollupBook(control, TEN_SECONDS.start_of(at))
            over = TEN_SECONDS.start_of(at + 10) if at < start + 360 else TEN_SECONDS.start_of(at)
            book.write([Bucket(TEN_SECONDS.start_of(at), figures(3))], over)
            written += 3
        again = RollupBook(control, TEN_SECONDS.start_of(start + 369))
        again.write([Bucket(TEN_SECONDS.start_of(start + 369), figures(2))], TEN_SECONDS.start_of(start + 369))
        written += 2
        totals = read_totals(control)
        assert totals is not None and totals.figures.rows == written
    for resolution in (TEN_SECONDS, MINUTE, HOUR):
        assert sum_of(read_buckets(control, resolution, 0)).rows == written, resolution
    assert len(read_file(control, HOUR).buckets) == 1, "a whole hour was rolled up"
    assert read_buckets(control, MINUTE, NOW + 3600)[0].at == NOW + 3600


def test_what_an_application_did_not_roll_up_the_next_one_does(control: ControlFolder) -> None:
    RollupBook(control, NOW).write([Bucket(NOW + 10 * n, figures(1)) for n in range(5)], NOW + 50)
    assert read_file(control, MINUTE).buckets == []
    RollupBook(control, NOW + 86_400)
    assert [one.figures.rows for one in read_file(control, MINUTE).buckets] == [5]
    assert [one.figures.rows for one in read_file(control, HOUR).buckets] == [5]


def test_torn_and_foreign_lines_are_dropped_and_said(control: ControlFolder, caplog: pytest.LogCaptureFixture) -> None:
    RollupBook(control, NOW).write([Bucket(NOW, figures(7))], NOW + 10)
    path = rollup_file(control, TEN_SECONDS)
    good = path.read_bytes()
    wrong = [b"\xff\x00", b"[]", b'{"at": -1}', b'{"at": 5, "figures": {"read": "x"}}']
    path.write_bytes(b"\n".join([*wrong, good[: len(good) // 2], good.strip(), good[:20]]))
    assert [one.figures.rows for one in read_buckets(control, TEN_SECONDS, NOW)] == [7]
    append_buckets(control, TEN_SECONDS, [Bucket(NOW + 10, figures(1))], NOW + 20)
    assert sum_of(read_buckets(control, TEN_SECONDS, NOW)).rows == 8, "a torn line takes no other along"
    totals_file(control).write_text('{"since": ')
    with caplog.at_level(logging.WARNING):
        book = RollupBook(control, NOW + 20)
    assert "6 lines cannot be read and are dropped" in caplog.text and "begin at 0 again" in caplog.text
    assert book.totals.figures.rows == 0 and read_file(control, TEN_SECONDS).unreadable == 0
    assert sum_of(read_buckets(control, TEN_SECONDS, NOW)).rows == 8


def test_a_file_never_exceeds_its_bound_and_keeps_the_newest(control: ControlFolder) -> None:
    small = replace(TEN_SECONDS, max_bytes=8192)
    for number in range(100):
        append_buckets(control, small, [Bucket(NOW + 10 * number, figures(1))], NOW + 10 * number)
        assert rollup_file(control, small).stat().st_size <= small.max_bytes
    kept = read_file(control, small).buckets
    assert kept[-1].at == NOW + 990 and len(kept) > 5
    assert [one.at for one in kept] == list(range(kept[0].at, NOW + 1000, 10))


def test_long_files_are_read_from_their_end(control: ControlFolder) -> None:
    append_buckets(control, MINUTE, [Bucket(NOW + 60 * number, figures(1)) for number in range(2000)], NOW)
    path = rollup_file(control, MINUTE)
    assert path.stat().st_size > 500_000
    for last in (1, 50, 700, 2000):
        assert len(read_buckets(control, MINUTE, NOW + 60 * (2000 - last))) == last
    path.write_bytes(b"\xff\n" + path.read_bytes())
    assert read_file(control, MINUTE, NOW + 60 * 1990).unreadable == 0, "what is not asked for is not read"


def test_lines_are_short(control: ControlFolder) -> None:
    append_buckets(control, MINUTE, [Bucket(NOW, figures(1))], NOW)
    line = rollup_file(control, MINUTE).read_text()
    assert len(line) < 800 and json.loads(line)["at"] == NOW


def test_of_many_reasons_the_commonest_are_kept_and_the_others_counted() -> None:
    found = Figures()
    for number in range(40):
        found = found.plus(Figures(reasons={f"does_not_fit: c{number:02d}": 100 - number}))
    assert len(found.reasons) == MOST_REASONS
    assert sum(found.reasons.values()) == sum(range(61, 101))
    assert found.reasons["does_not_fit: c00"] == 100


@settings(max_examples=examples(100))
@given(st.lists(st.floats() | st.just(1e308), max_size=6), st.lists(st.integers(0, 2**63 - 1), max_size=6))
def test_no_sum_is_one_that_its_file_could_not_hold(seconds: list[float], counts: list[int]) -> None:
    total = Figures()
    for one in seconds:
        steps = {"direct": {"verify": seconds_summed(one)}}
        total = total.plus(Figures(cpu_seconds=one, steps=steps, freshness=histogram_of(one, 3)))
    for count in counts:
        total = total.plus(Figures(tables={TABLE: TableFigures(count, count)}, read=count, reasons={"r": count}))
        total = total.plus(Figures(freshness=histogram_of(1e300, count), quarantined=count, filtered=count))
    text = TypeAdapter(Bucket).dump_json(Bucket(NOW, total))
    assert TypeAdapter(Bucket).validate_json(text) == Bucket(NOW, total)


def test_what_was_no_number_adds_nothing_to_the_cpu_seconds() -> None:
    total = Figures(cpu_seconds=5.0)
    for wrong in (float("nan"), -3.0, 2.0):
        total = total.plus(Figures(cpu_seconds=wrong))
    assert total.cpu_seconds == 7.0
    assert total.plus(Figures(cpu_seconds=float("inf"))).cpu_seconds == LAST_MOMENT
