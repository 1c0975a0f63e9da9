"""What an application does every few seconds beside the stream, without waiting for it where state is in a store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from lakebound.control.folder import ControlFolder
from lakebound.spec.state_store import StateStoreSpec
from lakebound_spark.stream.chores import Chore, Paces, paces


def test_in_a_folder_everything_is_done_each_time(tmp_path: Path) -> None:
    assert paces(ControlFolder(tmp_path, "orders"), 30.0) == Paces()
    done: list[int] = []
    chore = Chore(lambda: done.append(1), None)
    chore.tick()
    chore.tick()
    assert done == [1, 1]


def test_in_a_store_the_lease_is_renewed_each_third_of_its_time(tmp_path: Path) -> None:
    shared = ControlFolder(tmp_path, "orders", StateStoreSpec(location="s3://bucket/state"))
    assert paces(shared, 30.0) == Paces(10.0, 2.0, 5.0, 5.0)
    assert paces(shared, 3.0) == Paces(1.0, 1.0, 1.0, 5.0)


def test_a_chore_is_not_waited_for_and_tells_its_error_later() -> None:
    clock, may_end, begun = [0.0], threading.Event(), list[float]()

    def do() -> None:
        begun.append(clock[0])
        may_end.wait(10)
        raise ConnectionError("away")

    chore = Chore(do, 2.0, lambda: clock[0])
    chore.tick()
    clock[0] = 10.0
    chore.tick()
    assert begun == [0.0], "one at a time"
    may_end.set()
    wait_until(lambda: chore._doing is not None and chore._doing.done(), 10, "its end")
    with pytest.raises(ConnectionError):
        chore.tick()
    wait_until(lambda: len(begun) == 2, 10, "the next beginning, in spite of the error")
    clock[0] = 11.0
    wait_until(lambda: chore._doing is not None and chore._doing.done(), 10, "its end")
    with pytest.raises(ConnectionError):
        chore.tick()
    assert begun == [0.0, 10.0], "it is not due"
