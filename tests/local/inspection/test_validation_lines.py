"""What a real table's metadata says of its standing line, and the files of each commit: beside compaction, rewinds, expiry."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import Lander, lander, make_table, rows
from tests.support.tables.maintained import compaction, rewrite_iceberg
from tests.support.tables.maintenance import compact_delta

from lakebound.inspection.validation.landed_files import LineReader, line_reader
from lakebound.inspection.validation.line import Due, ValidatedSoFar, due
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places


@pytest.fixture
def app(spec: TableSpec, at: Places) -> Lander:
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    return app


def reader_of(app: Lander, at: Places) -> LineReader:
    reader = line_reader(app.table.spec, at)
    assert reader is not None
    return reader


def look(app: Lander, at: Places, done: ValidatedSoFar | None = None) -> tuple[Due | None, LineReader]:
    reader = reader_of(app, at)
    known = done or ValidatedSoFar()
    return due(reader.line(known.has), known, max_rows=10**9), reader


def offsets_in(reader: LineReader, found: Due) -> list[int]:
    """Return the offsets of the rows in the files of the range, read by pyarrow."""
    read = [pq.read_table(file.path.path, columns=["_kafka"])["_kafka"].to_pylist() for file in reader.files(found.landings)]
    return sorted(row["offset"] for part in read for row in part)


def after(found: Due) -> ValidatedSoFar:
    return ValidatedSoFar(found.positions, {found.positions[-1][1] - 1: found.newest.offsets or 0})


def compact(app: Lander, at: Places) -> None:
    spec = app.table.spec
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
    else:
        rewrite_iceberg(spec, at)
    app.view = app.table.read_ledger()


def test_a_range_has_exactly_the_rows_of_its_commits_and_compaction_adds_none(app: Lander, at: Places) -> None:
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    found, reader = look(app, at)
    assert found is not None and found.gap is None and found.rows == 40
    assert offsets_in(reader, found) == list(range(40))
    assert all(file.rows == 10 for file in reader.files(found.landings))
    done = after(found)
    compact(app, at)
    assert look(app, at, done)[0] is None
    app.land(40, 45)
    found, reader = look(app, at, done)
    assert found is not None and offsets_in(reader, found) == [40, 41, 42, 43, 44]
    assert [step.kind for step in found.landings] == ["land"]


def test_commits_that_were_compacted_before_they_were_validated_are_read_as_they_landed(app: Lander, at: Places) -> None:
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    compact(app, at)
    found, reader = look(app, at)
    assert found is not None and offsets_in(reader, found) == list(range(30)) and len(found.landings) == 3


def test_what_a_rewind_undid_is_not_due_and_what_lands_after_it_is(app: Lander, at: Places) -> None:
    kept = app.land(0, 10)
    found, _ = look(app, at)
    assert found is not None
    done = after(found)
    app.land(10, 20)
    reset = Entry(kind="reset", pipeline="orders", epoch=1, commit=new_commit_id(), coverage=kept.entry.coverage)
    app.table.restore(kept.version, reset)
    app.view = app.table.read_ledger()
    assert look(app, at, done)[0] is None
    app.land(10, 13)
    found, reader = look(app, at, done)
    assert found is not None and offsets_in(reader, found) == [10, 11, 12] and found.gap is None


def test_expired_history_is_a_gap_with_its_offsets(app: Lander, at: Places) -> None:
    app.land(0, 10)
    found, _ = look(app, at)
    assert found is not None
    done = after(found)
    for start in range(10, 50, 10):
        app.land(start, start + 10)
    if app.table.spec.format == "delta":
        compact_delta(app.table.spec, at)
    else:
        table = foreign_iceberg(app.table.spec, at)
        newest = [snapshot.snapshot_id for snapshot in table.snapshots()][-1]
        older = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id != newest]
        table.maintenance.expire_snapshots().by_ids(older).commit()
    app.view = app.table.read_ledger()
    app.land(50, 55)
    found, reader = look(app, at, done)
    assert found is not None and found.gap is not None and not found.gap.is_before_first
    assert found.gap.offsets + len(offsets_in(reader, found)) == 45
    assert 50 in offsets_in(reader, found)
    assert look(app, at, ValidatedSoFar((*done.positions, *found.positions), {}))[0] is None


def test_an_entry_that_cannot_be_read_is_passed_where_a_later_one_mended_the_ledger(app: Lander, at: Places) -> None:
    kept = app.land(0, 10)
    app.table.commit([], kept.entry.model_copy(update={"kind": "nonsense", "commit": new_commit_id()}))
    reset = Entry(kind="reset", pipeline="orders", epoch=1, commit=new_commit_id(), coverage=kept.entry.coverage)
    app.table.commit([], reset)
    app.view = app.table.read_ledger()
    app.land(10, 15)
    found, reader = look(app, at)
    assert found is not None and offsets_in(reader, found) == list(range(15)) and found.gap is None


def test_current_files_are_those_of_the_table_and_old_ones_are_left_out(app: Lander, at: Places) -> None:
    assert list(contents_of(app.table.spec, at).files()) == []
    app.land(0, 10)
    app.land(10, 20)
    assert sum(file.rows or 0 for file in list(contents_of(app.table.spec, at).files())) == 20
    newest_us = max(row["timestamp"] for row in rows(10, 20)["_kafka"].to_pylist()).timestamp() * 1e6
    # Kafka's times in these tables are microseconds apart, so the bound is in whole milliseconds above all of the first file.
    assert list(contents_of(app.table.spec, at).files(int(newest_us / 1000) + 10)) == []
    absent = TableSpec(format=app.table.spec.format, name="shop.absent")
    assert list(contents_of(absent, at).files()) == []


def test_there_is_no_reader_of_a_table_that_was_never_made(spec: TableSpec, at: Places) -> None:
    reader = line_reader(spec, at)
    assert reader is None or due(reader.line(lambda position: False), ValidatedSoFar(), max_rows=1) is None
