"""Another user of the machine cannot read a pipeline's state, nor freeze a stream by its locks; the tables stay readable."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.support.streams.command_line import lakebound
from tests.support.tables.local_tables import lander, make_table
from tests.support.waiting import STRETCH

from lakebound.control import lease as lease_module
from lakebound.control.folder import ControlFolder, locked, write_json
from lakebound.control.lease import acquire, read_lease, renew
from lakebound.control.private_files import open_folders, refusal
from lakebound.errors import LockHeldError
from lakebound.settings import Settings, load_settings
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.draft import write_checkpoint
from lakebound.tables.places import places_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as another user")

DEADLINE_SECONDS = 60.0


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Places that are not made yet, in a folder that other users reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="lakebound-users-"))
    folder.chmod(0o755)
    monkeypatch.setenv("LAKEBOUND_HOME", str(folder / "home"))
    monkeypatch.delenv("LAKEBOUND_WAREHOUSE", raising=False)
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(folder / "pipelines"))
    (folder / "pipelines").mkdir()
    old_umask = os.umask(0o022)
    yield load_settings()
    os.umask(old_umask)
    shutil.rmtree(folder)


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    return ControlFolder(settings.home, "orders")


def as_nobody(body: Callable[[], object]) -> object:
    """Return what a function returns in a process of another user; an error of the system as its class's name."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_as_nobody, args=(there, body))
    child.start()
    try:
        assert here.poll(DEADLINE_SECONDS)
        return here.recv()
    finally:
        child.join(DEADLINE_SECONDS)


def _become_nobody() -> None:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def _as_nobody(answer: Connection, body: Callable[[], object]) -> None:
    _become_nobody()
    try:
        answer.send(body())
    except OSError as exc:
        answer.send(type(exc).__name__)


def _hold(lock: Path, ready: Connection) -> None:
    with lock.open() as file:  # as who may only read
        _become_nobody()
        fcntl.flock(file, fcntl.LOCK_SH)
        ready.send(os.getpid())
        time.sleep(60)


@pytest.fixture
def held(control: ControlFolder) -> Iterator[int]:
    """The lock of the lease, held by a process of another user that had opened it while everybody could."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_hold, args=(control.lease.with_name("lease.json.lock"), there), daemon=True)
    acquire(control, "app-1", 30)
    child.start()
    assert here.poll(DEADLINE_SECONDS)
    yield here.recv()
    child.kill()
    child.join(DEADLINE_SECONDS)


def modes(folder: Path) -> dict[str, str]:
    """Return the mode of everything in and below a folder."""
    return {str(path.relative_to(folder)): f"{stat.S_IMODE(path.stat().st_mode):04o}" for path in folder.rglob("*")}


def test_another_user_sees_nothing_of_the_state_and_locks_nothing(control: ControlFolder) -> None:
    acquire(control, "app-1", 30)
    assert modes(control.home) == {
        "pipelines": "0700",
        "pipelines/orders": "0700",
        "pipelines/orders/lease.json": "0600",
        "pipelines/orders/lease.json.lock": "0600",
    }
    for path in (control.lease, control.lease.with_name("lease.json.lock")):
        assert as_nobody(lambda path=path: fcntl.flock(path.open(), fcntl.LOCK_SH)) == "PermissionError"
        path.parent.chmod(0o755)  # the file is closed by itself, too
        assert as_nobody(lambda path=path: fcntl.flock(path.open(), fcntl.LOCK_SH)) == "PermissionError"
        path.parent.chmod(0o700)
    assert as_nobody(lambda: os.listdir(control.home)) == "PermissionError"


def test_the_tables_stay_readable_for_everybody(settings: Settings, control: ControlFolder, spec: TableSpec) -> None:
    acquire(control, "app-1", 30)  # the state is there first, and makes LAKEBOUND_HOME
    make_table(spec, places_of(settings, "default"))
    landing = lander(spec, places_of(settings, "default"))
    landing.open()
    landing.land(0, 5)
    if spec.format == "delta":
        write_checkpoint(landing.table.layout().folder, 2)
    files = {str(path): path.stat().st_size for path in settings.warehouse.rglob("*") if path.is_file()}
    assert len(files) > 3
    assert as_nobody(lambda: {path: len(Path(path).read_bytes()) for path in files}) == files
    assert as_nobody(lambda: os.listdir(control.folder)) == "PermissionError"


def test_a_lock_that_another_user_holds_is_not_waited_for_without_end(control: ControlFolder, held: int) -> None:
    began = time.monotonic()
    with pytest.raises(
        LockHeldError, match=rf"lease.json.lock has been locked by process {held} \(.*\) of user nobody for more"
    ):
        with locked(control.lease, deadline_seconds=0.2):
            pass
    assert time.monotonic() - began < 5 * STRETCH


def test_a_lease_that_cannot_be_renewed_is_still_held(
    control: ControlFolder, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "_RENEWAL_DEADLINE_SECONDS", 0.2)
    lease = read_lease(control)
    assert lease is not None
    with pytest.raises(LockHeldError, match="of user nobody"):
        renew(control, lease)
    assert read_lease(control) == lease


def test_what_an_earlier_release_left_open_is_closed_at_the_next_start(settings: Settings, control: ControlFolder) -> None:
    control.folder.mkdir(parents=True)
    control.lease.with_name("lease.json.lock").touch(mode=0o644)
    (settings.warehouse / "delta").mkdir(parents=True)
    assert open_folders(settings) == []  # the next start does it
    acquire(control, "app-1", 30)
    found = modes(settings.home)
    assert (found["pipelines"], found["pipelines/orders"], found["pipelines/orders/lease.json.lock"]) == (
        "0700",
        "0700",
        "0600",
    )
    assert found["warehouse/delta"] == "0755"


def test_a_folder_that_two_users_write_stays_open_and_check_says_so(settings: Settings, control: ControlFolder) -> None:
    control.folder.mkdir(parents=True)
    write_json(control.progress, {})
    os.chown(control.progress, pwd.getpwnam("nobody").pw_uid, -1)
    acquire(control, "app-1", 30)
    assert modes(settings.home)["pipelines/orders"] == "0755"
    said = [f"{control.folder} can be entered by every user (mode 0755), and has files of user nobody; run Lakebound as one"]
    assert [line for line in open_folders(settings) if line.startswith(said[0])]
    assert said[0] in lakebound("check", "--static").output


def test_a_command_of_another_user_says_whose_the_state_is(settings: Settings, control: ControlFolder) -> None:
    acquire(control, "app-1", 30)

    def said() -> str | None:
        try:
            read_lease(control)
        except PermissionError as exc:
            return refusal(exc)
        return None

    sentence = as_nobody(said)
    assert str(sentence).startswith(f"{control.lease} is state of user root, and this is user nobody; run the command as root")


def test_check_says_that_others_may_replace_the_state(settings: Settings) -> None:
    settings.home.mkdir()
    settings.home.chmod(0o777)
    assert f"warning: {settings.home} (LAKEBOUND_HOME) can be written by other users" in lakebound("check", "--static").output


def test_a_group_may_share_the_state(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_STATE_ACCESS", "group")
    acquire(control, "app-1", 30)
    assert set(modes(control.home).values()) == {"0770", "0660"}
    assert stat.S_IMODE(control.home.stat().st_mode) == 0o771
