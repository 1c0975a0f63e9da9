from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.lease import Lease, acquire, read_lease
from lakebound.control.process_identity import PidSpace, ProcessIdentity, find, identity_of, is_visible, lives
from lakebound.control.submission import Submission, process_is_alive, read_submission, write_submission
from lakebound.errors import LeaseHeldError

MACHINE = "pid:[4026531836]"
CONTAINER = "pid:[4026532201]"
HERE = PidSpace("vm", "boot-1", MACHINE)
INSIDE = PidSpace("worker", "boot-1", CONTAINER)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


@pytest.mark.parametrize(
    ("space", "own", "expected"),
    [
        (HERE, HERE, True),
        (INSIDE, INSIDE, True),
        (PidSpace("vm"), HERE, True),
        (PidSpace(), HERE, True),
        (HERE, PidSpace("vm"), True),
        (replace(HERE, host="elsewhere"), HERE, None),
        (PidSpace("elsewhere"), HERE, None),
        (replace(INSIDE, namespace="pid:[4026532202]"), INSIDE, None),
        (replace(HERE, namespace=CONTAINER), HERE, None),
        (replace(HERE, boot_id="boot-0"), HERE, False),
        (replace(INSIDE, boot_id="boot-0"), INSIDE, None),
        (replace(HERE, boot_id="boot-0", namespace=None), HERE, None),
        (replace(HERE, boot_id="boot-0", host="elsewhere"), HERE, None),
    ],
    ids=[
        "the same machine",
        "the same container",
        "a file of an older release",
        "a record that names nothing",
        "a system that tells no boot and no namespace",
        "another machine",
        "another machine in a file of an older release",
        "another container of the same name",
        "a container, seen from its machine, that has the machine's name",
        "an earlier boot of the machine",
        "a container of the same name on another machine, or before a reboot",
        "another boot, and nobody knows of which namespace",
        "another boot of another machine",
    ],
)
def test_where_a_pid_counts(space: PidSpace, own: PidSpace, expected: bool | None) -> None:
    assert is_visible(space, own) is expected


def test_a_process_is_itself() -> None:
    own = identity_of(os.getpid())
    assert lives(own) is True
    assert (process := find(own)) is not None and process.pid == os.getpid()


def test_a_pid_alone_is_not_a_process() -> None:
    own = identity_of(os.getpid())
    assert lives(replace(own, started_at=own.started_at + 1.5)) is True, "the clock may have been corrected"
    assert lives(replace(own, started_at=own.started_at - 100)) is False


def test_another_namespaces_pid_is_not_looked_for() -> None:
    own = identity_of(os.getpid())
    elsewhere = replace(own, space=replace(own.space, namespace="pid:[1]"))
    assert lives(elsewhere) is None
    assert find(elsewhere) is None


def test_a_process_of_an_earlier_boot_is_never_found() -> None:
    own = identity_of(os.getpid())
    before = replace(own, space=replace(own.space, boot_id="before"))
    assert lives(before) is not True
    assert find(before) is None


def test_a_zombie_does_not_live() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        identity = identity_of(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert lives(identity) is False
    assert lives(identity) is False


def test_another_container_of_the_same_name_keeps_the_lease(control: ControlFolder) -> None:
    own = acquire(control, "a", 3600)
    write_json(control.lease, own.model_copy(update={"pid_namespace": "pid:[1]", "pid_started_at": 1.0}).model_dump())
    with pytest.raises(LeaseHeldError):
        acquire(control, "b", 5)


def test_a_lease_of_an_older_release_is_judged_by_host_and_pid(control: ControlFolder) -> None:
    lease = acquire(control, "a", 3600)
    old = {key: value for key, value in lease.model_dump().items() if key not in ("boot_id", "pid_namespace")}
    write_json(control.lease, old)
    assert not (read_lease(control) or lease).holder_is_dead()
    write_json(control.lease, old | {"pid_started_at": lease.pid_started_at - 100})
    assert acquire(control, "b", 5).app_id == "b"


def test_the_lease_says_where_its_holders_pid_counts(control: ControlFolder) -> None:
    lease = acquire(control, "a", 30)
    body = json.loads(control.lease.read_text())
    assert body["boot_id"] and body["pid_namespace"] == os.readlink("/proc/self/ns/pid")
    assert lease.holder == identity_of(os.getpid())
    assert Lease.model_config["extra"] == "ignore", "an older release reads what a newer one writes"


def test_a_submission_says_where_its_pid_counts(control: ControlFolder) -> None:
    own = identity_of(os.getpid())
    write_submission(control, Submission(app_id="a").led_by(own))
    read = read_submission(control)
    assert read is not None and read.process == own and process_is_alive(read) is True
    assert process_is_alive(read.model_copy(update={"pid_namespace": "pid:[1]"})) is None
    assert process_is_alive(read.model_copy(update={"host": "elsewhere"})) is None
    assert Submission.model_config["extra"] == "ignore", "an older release reads what a newer one writes"


def test_a_submission_of_an_older_release_is_judged_by_host_and_pid(control: ControlFolder) -> None:
    own = identity_of(os.getpid())
    old = {"app_id": "a", "host": socket.gethostname(), "pid": own.pid, "pid_started_at": own.started_at}
    write_json(control.submission, old)
    read = read_submission(control)
    assert read is not None and read.process == ProcessIdentity(own.pid, own.started_at, PidSpace(own.space.host))
    assert process_is_alive(read) is True
    assert process_is_alive(read.model_copy(update={"pid_started_at": 1.0})) is False
