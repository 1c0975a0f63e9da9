"""A start on a full disk is refused with the disk's name, and what is known of the application before it stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.full_disk import SmallDisk, small_disk
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

from lakebound.control.submission import Submission, read_submission, write_submission
from lakebound.errors import DiskFullError
from lakebound.landing.local_launch import launch_stream
from lakebound.settings import Settings


@pytest.fixture
def disk(settings: Settings) -> Iterator[SmallDisk]:
    with small_disk(settings.home) as made:
        yield made


def test_a_start_on_a_full_disk_names_it_and_the_next_one_starts(settings: Settings, disk: SmallDisk) -> None:
    run = orders(settings, "orders-g0-2")
    before = Submission(app_id="orders-g0-1")
    write_submission(run.control, before)
    disk.fill()
    with pytest.raises(DiskFullError, match=f"could not be submitted: no space is left on the disk {disk.folder}: "):
        launch_stream(run, settings)
    assert read_submission(run.control) == before
    disk.make_room()
    submission, process = launch_stream(run, settings)
    assert submission.app_id == "orders-g0-2" and process is not None
