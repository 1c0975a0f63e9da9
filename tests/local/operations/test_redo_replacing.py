"""A chunk of a redo in real tables of both formats: its rows are replaced in one commit, and all others stay."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from tests.oracle import read_delta, read_iceberg
from tests.support.tables.compacting import compact
from tests.support.tables.local_tables import PIPELINE, offsets, rows
from tests.support.tables.rewinding import World, world_fixture  # noqa: F401

from lakebound.errors import CommitFailedError, FilesOutdatedError, TableMismatchError
from lakebound.inspection.proof.history import spans_of
from lakebound.ledger.entry import Entry, add, new_commit_id
from lakebound.operations.redo import replacing
from lakebound.operations.redo.replacing import NewRows, RowsWithoutRecordError, redo_chunk, replace_rows
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import WAITS, Committed
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.table import open_table


def shown(world: World, table: TableSpec) -> dict[int, str]:
    """Return the city of each id, as plain readers see them; each id once."""
    if table.format == "delta":
        found = read_delta(world.at.folder(table).address)
    else:
        found = read_iceberg(world.at.iceberg_warehouse / "catalog.db", table.namespace, table.short_name)
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids))
    return dict(zip(ids, found["city"].to_pylist(), strict=True))


def made(start: int, end: int, city: str) -> pa.Table:
    found = rows(start, end)
    return found.set_column(found.column_names.index("city"), "city", pa.array([city] * (end - start)))


def redo(
    world: World,
    table: TableSpec,
    start: int,
    end: int,
    city: str,
    of: tuple[int, int] | None = None,
    looks_again: bool = False,
    stored: Future[None] | None = None,
) -> Committed:
    opened = open_table(table, world.at)
    view = opened.read_ledger()
    files = write_data_files(made(start, end, city), opened.layout(), f"redo-{new_commit_id()}")
    files = [replace(file, stored=stored) for file in files]
    draft = Entry(
        kind="redo",
        pipeline=PIPELINE,
        epoch=view.epoch,
        commit=new_commit_id(),
        redoes=offsets(*(of or (start, end))),
        read=end - start,
        landed=end - start,
        rows=end - start,
    )
    new = NewRows(draft, files, spans_of(offsets(start, end)))
    if looks_again:
        return redo_chunk(opened, new, attempts=5, waits=WAITS)
    return replace_rows(opened, view, new, attempts=5, waits=WAITS)


def test_any_ranges_one_after_another_leave_each_row_as_the_last_one_made_it(world: World) -> None:
    choice = random.Random(54)
    for start in (0, 10, 20, 30):
        world.land(start, start + 10)
    for table in world.spec.tables:
        expected = shown(world, table)
        coverage = open_table(table, world.at).read_ledger().coverage
        for number in range(6):
            start, end = sorted(choice.sample(range(41), 2))
            done = redo(world, table, start, end, f"redone {number}")
            expected |= dict.fromkeys(range(start, end), f"redone {number}")
            assert shown(world, table) == expected
            assert (done.entry.erases, done.entry.coverage) == (end - start, coverage)


def test_no_row_leaves_of_which_no_record_was_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(0, 10)
    for table in world.spec.tables:
        before = shown(world, table)
        # Kafka gave no record of 4, 8 and 9, so nothing was made of them either.
        done = redo(world, table, 5, 8, "redone", of=(4, 10))
        assert shown(world, table) == before | dict.fromkeys(range(5, 8), "redone")
        entry = done.entry
        assert (entry.redoes, entry.erases) == (offsets(5, 8), 3)
        assert entry.redo_stays == add(offsets(4, 5), offsets(8, 10))
    monkeypatch.setattr(replacing, "MOST_STAYING", 1)
    with pytest.raises(RowsWithoutRecordError, match=r"2 places, such as orders/0@4"):
        redo(world, world.delta, 5, 8, "redone", of=(4, 10))


def test_nothing_is_committed_before_its_files_are_in_their_object_store(world: World) -> None:
    """They are uploaded while the rows of the next ones are made; an upload may take its time, or fail."""
    world.land(0, 10)
    for table in world.spec.tables:
        before = shown(world, table)
        failed = Future[None]()
        failed.set_exception(OSError("the store is away"))
        with pytest.raises(CommitFailedError, match="the store is away"):
            redo(world, table, 3, 7, "redone", stored=failed)
        assert shown(world, table) == before
        slow = Future[None]()
        with ThreadPoolExecutor(1) as pool:
            redone = pool.submit(redo, world, table, 3, 7, "redone", stored=slow)
            with pytest.raises(TimeoutError):
                redone.result(0.5)
            assert shown(world, table) == before
            slow.set_result(None)
            redone.result(60)
        assert shown(world, table) == before | dict.fromkeys(range(3, 7), "redone")


def meanwhile(monkeypatch: pytest.MonkeyPatch, world: World, table: TableSpec, work: Callable[[], object]) -> list[bool]:
    """Have something happen once, just before a commit takes rows out; return what says that it did."""
    kind = type(open_table(table, world.at))
    take_out, happened = kind.take_out, list[bool]()  # type: ignore[attr-defined]

    def late(self: object, *arguments: object) -> object:
        if not happened:
            happened.append(True)
            work()
        return take_out(self, *arguments)

    monkeypatch.setattr(kind, "take_out", late)
    return happened


def test_an_append_between_reading_and_commit_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(0, 10)
    for table in world.spec.tables:
        happened = meanwhile(monkeypatch, world, table, partial(world.land, 10, 20, tables=[table]))
        redo(world, table, 3, 7, "redone")
        assert happened
        found = shown(world, table)
        assert sorted(found) == list(range(20)) and {i for i, city in found.items() if city == "redone"} == set(range(3, 7))


def test_files_that_maintenance_rewrites_meanwhile_are_looked_for_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in (0, 10, 20):
        world.land(start, start + 10)
    for table in world.spec.tables:
        happened = meanwhile(monkeypatch, world, table, partial(compact, world.at, table))
        expected = shown(world, table) | dict.fromkeys(range(5, 15), "redone")
        done = redo(world, table, 5, 15, "redone", looks_again=True)
        assert happened and shown(world, table) == expected and done.entry.erases == 10


@pytest.mark.parametrize("had_rows", [True, False])
def test_of_two_redos_at_once_the_second_makes_its_plan_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, had_rows: bool
) -> None:
    world.land(0, 10)
    if had_rows:
        world.land(10, 20)
    else:
        world.cover(offsets(10, 20))
    for table in world.spec.tables:
        happened = meanwhile(monkeypatch, world, table, partial(redo, world, table, 10, 20, "first"))
        with pytest.raises(StalePreparedError):
            redo(world, table, 10, 20, "second")
        assert happened
        assert {city for at, city in shown(world, table).items() if at >= 10} == {"first"}
        redo(world, table, 10, 20, "second")
        assert {city for at, city in shown(world, table).items() if at >= 10} == {"second"}


def test_new_files_that_do_not_fit_the_table_are_not_committed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has got other columns since the rows were made; an append of them would be refused, too."""
    world.land(0, 10)

    def with_more(start: int, end: int, city: str) -> pa.Table:
        return plain(start, end, city).add_column(0, "more", pa.array([1] * (end - start), pa.int64()))

    plain = made
    monkeypatch.setattr("tests.local.operations.test_redo_replacing.made", with_more)
    for table in world.spec.tables:
        before = shown(world, table)
        with pytest.raises((FilesOutdatedError, TableMismatchError)):
            redo(world, table, 3, 7, "redone")
        assert shown(world, table) == before
