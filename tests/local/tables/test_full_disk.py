"""The disk of the tables is really full: a commit names the disk and the runbook, and nothing is lost when there is room."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.full_disk import SmallDisk, small_disk
from tests.support.tables.local_tables import Lander, landed_offsets, lander, make_table

from lakebound.control import situations
from lakebound.control.progress import Progress
from lakebound.errors import DiskFullError, error_named
from lakebound.spec.table import TableSpec
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.outages import is_outage
from lakebound.tables.places import Places


@pytest.fixture(params=["delta", "iceberg"])
def spec(request: pytest.FixtureRequest) -> TableSpec:
    """A table of each format in a folder: an object store has no disk that fills."""
    return TableSpec(format=request.param, name="shop.orders")


@pytest.fixture
def disk(at: Places) -> Iterator[SmallDisk]:
    with small_disk(at.root.path) as made:
        yield made


@pytest.fixture
def app(spec: TableSpec, at: Places, disk: SmallDisk) -> Lander:
    make_table(spec, at)
    opened = lander(spec, at)
    opened.open()
    opened.land(0, 10)
    return opened


def test_a_commit_on_a_full_disk_names_it_and_lands_once_when_there_is_room(
    app: Lander, spec: TableSpec, at: Places, disk: SmallDisk
) -> None:
    files = app.write(10, 20)
    disk.fill()
    began = time.monotonic()
    with pytest.raises(DiskFullError) as failed:
        app.land(10, 20, files)
    print(f"{spec.format}: the full disk was named after {time.monotonic() - began:.2f} s")
    assert f"table {spec.id}: no space is left on the disk {disk.folder}: " in str(failed.value)
    assert error_named(type(failed.value).__name__).runbook == "disk-full" and is_outage(failed.value)
    disk.make_room()
    app.land(10, 20, files)
    assert landed_offsets(app.table) == list(range(20))
    later = lander(spec, at, epoch=2)
    later.open()
    later.land(20, 30)
    assert landed_offsets(later.table) == list(range(30))


def test_files_that_do_not_fit_leave_nothing_that_a_reader_sees(app: Lander, disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(OSError) as failed:
        app.write(10, 20)
    error = full_disk_error(failed.value, "pipeline 'orders'", disk.folder, Path("/"))
    assert error is not None and f"no space is left on the disk {disk.folder}: " in str(error)
    disk.make_room()
    app.land(10, 20)
    assert landed_offsets(app.table) == list(range(20))


def test_an_application_that_waits_for_room_says_which_page_helps() -> None:
    error = DiskFullError("table delta:a.b", "/data: 0 B of 8 MB free (0%)")
    progress = Progress(
        pipeline="orders",
        app_id="a",
        state="running",
        started_at=0,
        updated_at=1,
        failures=3,
        failing_since=0.5,
        failing_error=type(error).__name__,
        last_failure=str(error),
    )
    found = situations.failing(progress)
    assert found.runbook == "disk-full" and "/data: 0 B of 8 MB free" in found.text


def test_other_errors_name_no_disk() -> None:
    assert full_disk_error(OSError(errno.EACCES, "Permission denied"), "x", Path("/")) is None
    assert full_disk_error(ValueError("No space left on device (os error 28)"), "x", Path("/")) is None
    known = DiskFullError("x", "/")
    assert full_disk_error(known, "y", Path("/tmp")) is known
