"""What grows under the state is bounded, and nothing goes that a running application or a person's decision needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.support.streams.command_line import answer, lakebound
from tests.support.waiting import wait_until

from lakebound.control import old_files
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.incidents import Decision, record_incident
from lakebound.control.lease import acquire
from lakebound.control.old_files import remove_old_files
from lakebound.control.progress import Outcome, write_outcome
from lakebound.control.retention import Retention
from lakebound.control.submission import Submission, write_submission
from lakebound.settings import Settings, load_settings

NOW, DAY = 1_900_000_000.0, 86_400.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"LAKEBOUND_HOME": str(tmp_path / "home"), "LAKEBOUND_KEEP_DAYS": "10"})


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    return ControlFolder(settings.home, "orders")


def aged(path: Path, days: float, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_bytes(b"x" * size)
    os.utime(path, (NOW - days * DAY,) * 2)
    return path


def traces_of(control: ControlFolder, app_id: str, days: float) -> list[Path]:
    """Leave what an application leaves: log, trace, outcome, marker and scratch."""
    write_outcome(
        control, Outcome(app_id=app_id, verdict="failed", reason="it died", started_at=NOW - days * DAY, ended_at=NOW)
    )
    scratch = aged(control.checkpoint(app_id) / "0" / "offsets" / "0", days)
    for folder in (scratch.parent, scratch.parent.parent, control.checkpoint(app_id)):
        os.utime(folder, (NOW - days * DAY,) * 2)
    left = [control.log(app_id), control.trace(app_id), control.outcome(app_id), control.stop_marker(app_id)]
    return [*(aged(path, days) for path in left), scratch]


def test_what_dead_applications_left_goes_and_what_the_last_one_left_stays(settings: Settings, control: ControlFolder) -> None:
    old, young = traces_of(control, "orders-g0-old", 11), traces_of(control, "orders-g0-young", 0.5)
    last = traces_of(control, "orders-g0-last", 300)
    write_submission(control, Submission(app_id="orders-g0-last"))
    removed = remove_old_files(settings, NOW)
    assert [path for path in old if path.exists()] == [] and not control.checkpoint("orders-g0-old").exists()
    assert all(path.exists() for path in (*young, *last))
    assert removed.files == 5 and removed.bytes > 0


def test_a_running_application_is_known_by_its_lease_and_a_guest_by_its_process(
    settings: Settings, control: ControlFolder
) -> None:
    holder, guest = traces_of(control, "orders-g0-holder", 300), traces_of(control, "orders-replay-1", 300)
    write_submission(control, Submission(app_id="orders-g0-later"))
    acquire(control, "orders-g0-holder", 60.0)
    command = [sys.executable, "-c", "import time; time.sleep(60)", "orders-replay-1"]
    with subprocess.Popen(command) as process:
        try:
            # For a moment after its start a process has no command line.
            wait_until(lambda: "orders-replay-1" in psutil.Process(process.pid).cmdline(), 10, "the guest's command line")
            remove_old_files(settings, NOW)
        finally:
            process.kill()
    assert all(path.exists() for path in (*holder, *guest))
    remove_old_files(settings, NOW)
    assert all(path.exists() for path in holder) and not any(path.exists() for path in guest)


def test_nothing_goes_of_a_pipeline_whose_files_cannot_be_read(settings: Settings, control: ControlFolder) -> None:
    old = traces_of(control, "orders-g0-old", 300)
    control.submission.write_text("{")
    remove_old_files(settings, NOW)
    assert all(path.exists() for path in old)


def test_what_persons_decided_and_what_repairs_need_stays(settings: Settings, control: ControlFolder) -> None:
    kept = [record_incident(control, kind, "w", decision=Decision(approved_by="ada")) for kind in ("repair", "rewind")]
    gone = record_incident(control, "unclean_end", "w")
    for one in (*kept, gone):
        aged(control.incidents / f"{one.id}.json", 4000)
    others = ["lease.json", "desired.json", "progress.json", "maintenance.jsonl", "health.jsonl", "replays/a.json"]
    for name in others:
        write_json(control.folder / name, {})
        aged(control.folder / name, 4000)
    control.lease.unlink()
    remove_old_files(settings, NOW)
    assert {path.stem for path in control.incidents.iterdir()} == {one.id for one in kept}
    assert [name for name in others[1:] if not (control.folder / name).exists()] == []


def test_logs_are_bounded_by_size_and_the_newest_stay(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_files, "retention_of", lambda kind, _: Retention(DAY, max_bytes=350 if kind == "logs" else None))
    logs = [aged(control.log(f"bounded-by-size-{number}"), number / 10, size=100) for number in range(8)]
    remove_old_files(settings, NOW)
    assert [path.exists() for path in logs] == [True] * 3 + [False] * 5


def test_a_log_that_is_written_on_and_on_keeps_its_end(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_files, "LARGE_LOG_BYTES", 10_000)
    monkeypatch.setattr(old_files, "_END_BYTES", 1_000)
    write_submission(control, Submission(app_id="orders-g0-1"))
    log = control.log("orders-g0-1")
    log.parent.mkdir(parents=True)
    with open(log, "ab", buffering=0) as writer:
        for number in range(2000):
            writer.write(f"line {number}\n".encode())
        remove_old_files(settings, NOW)
        writer.write(b"line 2000\n")
    lines = log.read_text().splitlines()
    assert lines[-1] == "line 2000" and lines[-2] == "line 1999"
    assert lines == [f"line {number}" for number in range(2001 - len(lines), 2001)] and log.stat().st_size < 1_100


def test_a_log_of_one_long_line_keeps_its_end(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_files, "LARGE_LOG_BYTES", 10_000)
    monkeypatch.setattr(old_files, "_END_BYTES", 1_000)
    write_submission(control, Submission(app_id="orders-g0-1"))
    log = control.log("orders-g0-1")
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 20_000 + b"\n")
    remove_old_files(settings, NOW)
    assert log.read_bytes() == b"x" * 999 + b"\n"


def test_what_a_link_in_the_state_names_is_not_touched(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(old_files, "LARGE_LOG_BYTES", 10_000)
    foreign, folder = tmp_path / "foreign.log", tmp_path / "elsewhere"
    foreign.write_bytes(b"line\n" * 10_000)
    old = aged(folder / "dag_id=x" / "attempt=1.log", 300)
    write_submission(control, Submission(app_id="orders-g0-1"))
    log = control.log("orders-g0-1")
    log.parent.mkdir(parents=True)
    log.symlink_to(foreign)
    (settings.home / "airflow").mkdir(parents=True, exist_ok=True)
    (settings.home / "airflow" / "logs").symlink_to(folder)
    remove_old_files(settings, NOW)
    assert foreign.stat().st_size == 50_000 and old.exists()


def test_airflows_own_logs_go_by_age_with_their_folders(settings: Settings) -> None:
    logs = settings.home / "airflow" / "logs"
    old = aged(logs / "dag_id=alerts" / "run_id=1" / "task_id=round" / "attempt=1.log", 11)
    young = aged(logs / "dag_id=alerts" / "run_id=2" / "task_id=round" / "attempt=1.log", 9)
    standalone = aged(logs / "standalone.log", 300)
    remove_old_files(settings, NOW)
    assert not old.parents[1].exists() and young.exists() and standalone.exists()


def test_an_incident_that_cannot_be_read_stays(settings: Settings, control: ControlFolder) -> None:
    torn = aged(control.incidents / "20200101T000000-aaaaaa.json", 4000)
    whole = aged(control.incidents / "20200101T000001-aaaaaa.json", 4000)
    whole.write_text(json.dumps({"kind": "refused"}))
    aged(whole, 4000)
    remove_old_files(settings, NOW)
    assert torn.exists() and not whole.exists()


def test_an_empty_folder_in_which_a_task_is_about_to_make_its_log_stays(settings: Settings) -> None:
    fresh = settings.home / "airflow" / "logs" / "dag_id=alerts" / "run_id=3"
    fresh.mkdir(parents=True)
    remove_old_files(settings, time.time())
    assert fresh.exists()


def test_the_command_says_what_it_would_remove_and_removes_it(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_HOME", str(settings.home))
    log = control.log("told-by-the-command")
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 2_000)
    os.utime(log, (time.time() - 5 * DAY,) * 2)
    assert answer("tidy", "--plan", "--keep-days", "6") == {"is_plan": True, "files": 0, "bytes": 0}
    assert lakebound("tidy", "--plan", "--keep-days", "2").stdout == "to be removed: 1 files, 2 kB\n"
    assert log.exists()
    assert lakebound("tidy", "--keep-days", "2").stdout == "removed: 1 files, 2 kB\n"
    assert not log.exists()
