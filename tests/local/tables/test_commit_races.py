"""Whoever commits meanwhile, or holds the catalog, the batch lands once. Real tables of both formats."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import CommitProperties
from sqlalchemy.exc import OperationalError
from tests.support.tables.local_tables import Lander, app_fixture, landed_offsets, lander, make_table  # noqa: F401
from tests.support.tables.thread_safe import thread_safe
from tests.support.waiting import HANGS_SECONDS

from lakebound.ledger.entry import ENTRY_KEY, encode
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places


def change_property(spec: TableSpec, at: Places) -> None:
    """A metadata change by somebody else."""
    if spec.format == "delta":
        open_at(at.folder(spec)).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
    else:
        other = open_catalog(at).load_table(spec.name)
        with other.transaction() as transaction:
            transaction.set_properties({"owner": "somebody"})


def carried(app: Lander) -> str:
    assert app.view.entry is not None
    return encode(app.view.entry.model_copy(update={"kind": "carry"}))


def compact(spec: TableSpec, at: Places, text: str) -> Callable[[], None]:
    """Prepare a compaction that carries the entry on; the commit is done by calling what is returned."""
    if spec.format == "delta":
        table = open_at(at.folder(spec))
        properties = CommitProperties(custom_metadata={"userMetadata": text})
        return lambda: _ignore(table.optimize.compact(commit_properties=properties))
    table = open_catalog(at).load_table(spec.name)

    def replace() -> None:
        rows = table.scan().to_arrow()
        transaction = table.transaction()
        with thread_safe(transaction.update_snapshot(snapshot_properties={ENTRY_KEY: text}).overwrite()) as overwrite:
            for task in table.scan().plan_files():
                overwrite.delete_data_file(task.file)
        transaction.append(rows, snapshot_properties={ENTRY_KEY: text})
        transaction.commit_transaction()

    return replace


def _ignore(_: object) -> None:
    return None


def test_a_metadata_change_meanwhile_does_not_stop_the_batch(app: Lander, spec: TableSpec, at: Places) -> None:
    files = app.write(10, 20)
    change_property(spec, at)
    app.land(10, 20, files)
    change_property(spec, at)
    app.land(20, 30)
    assert landed_offsets(app.table) == list(range(30))


def test_a_compaction_meanwhile_does_not_stop_the_batch(app: Lander, spec: TableSpec, at: Places) -> None:
    app.land(10, 20)
    files = app.write(20, 30)
    compact(spec, at, carried(app))()
    committed = app.land(20, 30, files)
    assert committed.attempts == 2
    assert landed_offsets(app.table) == list(range(30))
    assert app.table.read_ledger().coverage["orders"].partitions == {0: ((0, 30),)}


def test_a_compaction_that_a_batch_overtook_does_not_take_the_ledger_back(at: Places) -> None:
    """Delta rebases a compaction onto the batch that landed while it worked; the entry that it carries is then an old one."""
    spec = TableSpec(format="delta", name="shop.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    app.land(10, 20)
    overtaken = compact(spec, at, carried(app))
    app.land(20, 30)
    overtaken()
    found = next(iter(lander(spec, at).table.entries())).entry
    assert found.kind == "carry" and found.coverage["orders"].partitions == {0: ((0, 20),)}
    again = lander(spec, at)
    assert again.view.coverage["orders"].partitions == {0: ((0, 30),)}
    again.land(30, 40)
    assert landed_offsets(again.table) == list(range(40))


def test_a_locked_catalog_is_waited_for(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    files = app.write(10, 20)
    database = Path(at.iceberg_catalog_uri.removeprefix("sqlite:///"))
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(6.0, connection.execute, args=("ROLLBACK",))
    release.start()
    try:
        committed = app.land(10, 20, files)
    finally:
        release.join()
        connection.close()
    assert committed.attempts == 1
    assert landed_offsets(app.table) == list(range(20))


def test_a_catalog_that_gives_up_waiting_lands_the_batch_once(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    catalog = open_catalog(at)
    swap = catalog._swap
    answers = iter([OperationalError("UPDATE", {}, Exception("database is locked"))] * 2)

    def locked(*arguments: object) -> None:
        for error in answers:
            raise error
        swap(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "_swap", locked)
    assert app.land(10, 20).attempts == 3
    assert landed_offsets(app.table) == list(range(20))


def test_handles_that_race_land_each_batch_once(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    racers = [lander(spec, at) for _ in range(3)]
    start_line = threading.Barrier(len(racers))

    def race(number: int) -> None:
        app = racers[number]
        app.attempts = 60
        start_line.wait(timeout=HANGS_SECONDS)
        for start in range(number * 100, number * 100 + 40, 10):
            app.land(start, start + 10)

    with ThreadPoolExecutor(len(racers)) as pool:
        list(pool.map(race, range(len(racers))))
    wanted = [offset for number in range(3) for offset in range(number * 100, number * 100 + 40)]
    found = lander(spec, at)
    assert landed_offsets(found.table) == wanted
    assert found.view.coverage["orders"].partitions == {0: ((0, 40), (100, 140), (200, 240))}
    assert sum(entry.entry.kind == "land" for entry in found.table.entries()) == 12
