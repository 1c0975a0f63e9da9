"""A process is started detached, known again, and ended: exactly it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lakebound.control import processes
from lakebound.control.process_identity import is_running
from lakebound.control.processes import ProcessRecord, is_alive, members, wait_until
from lakebound.errors import DeadlineExceededError, ServiceError

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"
RUNAWAY = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}], start_new_session=True); {SLEEP}"

Starter = Callable[[str], ProcessRecord]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts Python code as a process, and returns when it has said that it is ready."""
    records: list[ProcessRecord] = []

    def run(code: str) -> ProcessRecord:
        log = tmp_path / f"{len(records)}.log"
        record = processes.start("test", [sys.executable, "-c", code], log)
        records.append(record)
        lines = code.count("ready")
        wait_until(lambda: log.read_text().count("ready") >= lines, 20, "the process to be ready")
        return record

    yield run
    for record in records:
        processes.kill(record)


def test_a_process_leads_its_own_session_and_writes_its_log(start: Starter) -> None:
    record = start(SLEEP)

    assert is_alive(record)
    assert os.getsid(record.pid) == record.pid != os.getsid(0)
    assert record.log.read_text() == "ready\n"


def test_stop_is_graceful_for_who_listens(start: Starter) -> None:
    record = start(SLEEP)

    assert processes.stop(record, deadline_seconds=10)
    assert not is_alive(record)


def test_who_does_not_listen_is_ended_by_force(start: Starter) -> None:
    record = start(DEAF)

    assert not processes.stop(record, deadline_seconds=0.5)
    assert not is_alive(record)


def test_children_end_with_their_parent(start: Starter) -> None:
    record = start(PARENT)
    pids = [member.pid for member in members(record)]
    assert len(pids) == 2

    processes.kill(record)

    assert not any(psutil.pid_exists(pid) and not is_zombie(pid) for pid in pids)


def test_children_are_found_after_their_parent_was_killed(start: Starter) -> None:
    record = start(PARENT)
    os.kill(record.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(record), 10, "the end of the parent")
    (orphan,) = members(record)

    assert processes.stop(record, deadline_seconds=10), "it listens, so no force is needed"
    assert not is_running(orphan)


def test_a_child_that_left_the_session_and_is_deaf_ends_too_after_its_parent_was_killed(start: Starter) -> None:
    record = start(RUNAWAY)
    (runaway,) = psutil.Process(record.pid).children()
    os.kill(record.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(record), 10, "the end of the parent")
    assert os.getsid(runaway.pid) == runaway.pid, "it is in no session of ours"

    assert not processes.stop(record, deadline_seconds=0.5), "it is deaf, so force is needed"
    assert not is_running(runaway)


def test_a_process_in_a_session_of_its_own_is_left_alone(start: Starter) -> None:
    bystander, record = start(SLEEP), start(SLEEP)

    processes.kill(record)

    assert is_alive(bystander)


def test_what_a_process_starts_detached_is_not_its_own(start: Starter, tmp_path: Path) -> None:
    starting = f"inner = processes.start('inner', ['sleep', '600'], Path('{tmp_path}/log'))"
    code = f"from pathlib import Path; from lakebound.control import processes; {starting}"
    outer = start(f"{code}; inner.save(Path('{tmp_path}/inner.json')); {SLEEP}")
    record = ProcessRecord.load(tmp_path / "inner.json")
    assert record is not None

    processes.kill(outer)

    assert is_alive(record)
    processes.kill(record)


def test_a_pid_that_now_belongs_to_somebody_else_is_not_touched(start: Starter) -> None:
    somebody = start(SLEEP)
    stale = replace(somebody, create_time=somebody.create_time - 3600, mark="another's")

    assert not is_alive(stale)
    assert members(stale) == []
    assert processes.stop(stale, deadline_seconds=1)
    processes.kill(stale)
    assert is_alive(somebody)


@pytest.mark.parametrize("field", ["boot_id", "pid_namespace"])
def test_a_pid_that_counts_elsewhere_is_not_touched(start: Starter, field: str) -> None:
    somebody = start(SLEEP)
    elsewhere = replace(somebody, mark=None, **{field: "another"})

    assert not is_alive(elsewhere)
    assert members(elsewhere) == []
    assert processes.stop(elsewhere, deadline_seconds=1)
    processes.kill(elsewhere)
    assert is_alive(somebody)


def test_a_record_of_an_older_release_still_names_its_process(start: Starter, tmp_path: Path) -> None:
    record = start(SLEEP)
    old = {"name": record.name, "pid": record.pid, "create_time": record.create_time, "log": str(record.log)}
    (tmp_path / "process.json").write_text(json.dumps(old | {"mark": record.mark}))

    loaded = ProcessRecord.load(tmp_path / "process.json")

    assert loaded is not None and is_alive(loaded)
    assert [member.pid for member in members(loaded)] == [record.pid]


def test_a_record_survives_the_disk(tmp_path: Path) -> None:
    space = {"boot_id": "b", "pid_namespace": "pid:[1]"}
    record = ProcessRecord("kafka", 4711, 1_700_000_000.25, tmp_path / "log", "a3f1", **space)

    record.save(tmp_path / "deep" / "process.json")

    assert ProcessRecord.load(tmp_path / "deep" / "process.json") == record
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["process.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"name": "x"}', '{"name": "x", "pid": "y"}'])
def test_a_torn_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "process.json").write_text(text)

    assert ProcessRecord.load(tmp_path / "process.json") is None


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="cannot start /no/such/program"):
        processes.start("test", ["/no/such/program"], tmp_path / "log")


def test_wait_until_returns_the_answer_and_gives_up_in_time() -> None:
    answers = iter([0, "", None, "there"])

    assert wait_until(lambda: next(answers), 5, "an answer", poll_seconds=0) == "there"
    with pytest.raises(DeadlineExceededError, match=r"timeout: waited 0.05 s for a miracle"):
        wait_until(lambda: False, 0.05, "a miracle", poll_seconds=0.01)


def test_last_lines_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100_000 + b"\none\ntwo \xff\nthree\n")

    assert processes.last_lines(log, 2) == "two \ufffd\nthree"
    assert processes.last_lines(tmp_path / "none") == ""


def is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
