"""A table of three batches, and its versions. No JVM."""

from __future__ import annotations

import pytest

from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table, TableVersion, open_table
from tests.support.tables.local_tables import (
    PIPELINE,
    Lander,
    lander,
    make_table,
    offsets,
)


@pytest.fixture(name="delta")
def delta_fixture() -> TableSpec:
    """A Delta table."""
    return TableSpec(format="delta", name="shop.orders")


@pytest.fixture(name="iceberg")
def iceberg_fixture() -> TableSpec:
    """An Iceberg table."""
    return TableSpec(format="iceberg", name="shop.orders")


def three_batches(spec: TableSpec, at: Places) -> Lander:
    """Make a table and land [0, 10), [10, 20) and [20, 30); return the application."""
    make_table(spec, at)
    app = lander(spec, at)
    for start in (0, 10, 20):
        app.land(start, start + 10)
    return app


def reset(end: int, epoch: int = 2) -> Entry:
    """Return the entry of a restore to the version that had landed up to an offset."""
    return Entry(kind="reset", pipeline=PIPELINE, epoch=epoch, commit=new_commit_id(), coverage=offsets(0, end))


def version_of(table: Table, end: int) -> TableVersion:
    """Return the version that landed up to an offset."""
    return next(v for v in table.history().versions() if v.entry is not None and v.entry.coverage == offsets(0, end))


def put_back(spec: TableSpec, at: Places, end: int, epoch: int = 2) -> Table:
    """Restore the version that had landed up to an offset, and return the handle that did it."""
    table = open_table(spec, at)
    table.restore(version_of(table, end).version, reset(end, epoch))
    return table
