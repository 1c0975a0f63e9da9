"""A locked SQLite catalog: the message says which process holds the lock, and a commit goes on when it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tables.local_tables import Lander, landed_offsets, lander, make_table

from lakebound.control.lock_holder import having_open, holders_of_writes
from lakebound.errors import CatalogLockedError, CommitUnknownError
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg import open as catalogs
from lakebound.tables.iceberg.catalog_file import files_of, sqlite_file
from lakebound.tables.outages import passes
from lakebound.tables.places import Places

SPEC = TableSpec(format="iceberg", name="shop.orders")
HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def app(at: Places, monkeypatch: pytest.MonkeyPatch) -> Lander:
    monkeypatch.setattr(catalogs, "_BUSY_TIMEOUT_SECONDS", 0.1)
    make_table(SPEC, at)
    return lander(SPEC, at)


@contextmanager
def locked_by_another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold the write lock of a database inside the block."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.stdin.close()


def test_a_commit_says_who_locks_the_catalog_and_goes_on_afterwards(app: Lander, at: Places) -> None:
    path = sqlite_file(at.iceberg_catalog_uri)
    assert path is not None
    files = app.write(0, 5)
    app.attempts = 2
    with locked_by_another(path) as process:
        assert having_open(files_of(path)) == [process.pid]
        with pytest.raises(CommitUnknownError, match=rf"catalog.db is locked by process {process.pid} \(python") as told:
            app.land(0, 5, files)
        assert passes(told.value)
        assert "of user " in str(told.value)
        with pytest.raises(CatalogLockedError, match=f"process {process.pid} "):
            app.table.set_properties({"a": "b"}, None)
    app.land(0, 5, files)
    assert landed_offsets(app.table) == list(range(5))
    assert "cannot be seen" in holders_of_writes(files_of(path))
