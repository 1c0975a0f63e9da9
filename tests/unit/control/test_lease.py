from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.lease import Lease, acquire, read_lease, release, renew
from lakebound.errors import LeaseHeldError, LeaseLostError


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def written(control: ControlFolder, lease: Lease, **changes: object) -> Lease:
    """Write the lease as another process would have."""
    changed = lease.model_copy(update=changes)
    write_json(control.lease, changed.model_dump())
    return changed


def test_the_epoch_only_grows(control: ControlFolder) -> None:
    first = acquire(control, "a", 30)
    release(control, first)
    second = acquire(control, "b", 30)
    assert (first.epoch, second.epoch) == (1, 2)
    assert acquire(control, "b", 30, above_epoch=41).epoch == 42


def test_a_lost_state_folder_does_not_make_epochs_start_again(control: ControlFolder) -> None:
    assert acquire(control, "a", 30, above_epoch=7).epoch == 8


def test_a_live_holder_is_not_pushed_aside(control: ControlFolder) -> None:
    acquire(control, "a", 30)
    with pytest.raises(LeaseHeldError, match="written by a"):
        acquire(control, "b", 30)
    assert read_lease(control) is not None


def test_the_same_application_takes_it_again_with_a_larger_epoch(control: ControlFolder) -> None:
    assert acquire(control, "a", 30).epoch < acquire(control, "a", 30).epoch


def test_a_silent_holder_loses_it_after_the_ttl(control: ControlFolder) -> None:
    own = acquire(control, "a", 5)
    written(control, own, heartbeat_at=time.time() - 6)
    taken = acquire(control, "b", 5)
    with pytest.raises(LeaseLostError):
        renew(control, own)
    assert read_lease(control) == taken


def test_a_dead_process_loses_it_at_once(control: ControlFolder) -> None:
    own = acquire(control, "a", 3600)
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    written(control, own, pid=process.pid)
    assert acquire(control, "b", 5).app_id == "b"


def test_a_reused_pid_is_not_the_holder(control: ControlFolder) -> None:
    own = acquire(control, "a", 3600)
    written(control, own, pid_started_at=psutil.Process().create_time() - 100)
    assert acquire(control, "b", 5).app_id == "b"


def test_another_hosts_process_is_not_looked_for_here(control: ControlFolder) -> None:
    own = acquire(control, "a", 3600)
    written(control, own, host="elsewhere", pid=1, pid_started_at=0.0)
    with pytest.raises(LeaseHeldError):
        acquire(control, "b", 5)


def test_renewal_is_a_sign_of_life(control: ControlFolder) -> None:
    own = acquire(control, "a", 30)
    old = written(control, own, heartbeat_at=own.heartbeat_at - 20)
    renewed = renew(control, old, spark_ui="http://127.0.0.1:4040")
    assert renewed.heartbeat_at > old.heartbeat_at
    assert read_lease(control) == renewed


def test_a_torn_lease_is_moved_aside_and_epochs_go_on_from_the_tables(control: ControlFolder) -> None:
    own = acquire(control, "a", 30)
    for text in ("", '{"epoch": "x"}', "[]"):
        control.lease.write_text(text)
        with pytest.raises(ValueError):
            renew(control, own)
        release(control, own)
        assert acquire(control, "b", 30, above_epoch=7).epoch == 8
    aside = sorted(path.read_text() for path in control.folder.glob("lease.json.torn-*"))
    assert aside == ["", "[]", '{"epoch": "x"}'], "nothing is deleted by a repair"


def test_a_released_lease_is_free_and_releasing_a_lost_one_does_nothing(control: ControlFolder) -> None:
    own = acquire(control, "a", 30)
    release(control, own)
    taken = acquire(control, "b", 30)
    release(control, own)
    assert read_lease(control) == taken


def _try(folder: str, name: str, results: multiprocessing.Queue[tuple[str, int | None]]) -> None:
    try:
        results.put((name, acquire(ControlFolder(Path(folder), "orders"), name, 30).epoch))
    except LeaseHeldError:
        results.put((name, None))
    results.close()
    results.join_thread()
    while os.getppid() != 1 and not (Path(folder) / "done").exists():
        time.sleep(0.01)


def test_of_many_that_start_together_one_gets_it(control: ControlFolder) -> None:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[tuple[str, int | None]] = context.Queue()
    processes = [context.Process(target=_try, args=(str(control.home), f"app-{n}", results)) for n in range(6)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=HANGS_SECONDS) for _ in processes]
    (control.home / "done").touch()
    for process in processes:
        process.join(timeout=HANGS_SECONDS)
    assert [epoch for _, epoch in answers if epoch is not None] == [1]
