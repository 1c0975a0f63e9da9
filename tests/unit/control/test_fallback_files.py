"""What people must be told is kept on a RAM disk while the disk of the state takes no file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lakebound.control import fallback_files
from lakebound.control.fallback_files import (
    cannot_write,
    locked_anyway,
    locked_anyway_if_free,
    newest_copy,
    read_newest_json,
    write_json_anyway,
)
from lakebound.control.findings import Finding, Severity, read_source, read_sources, write_findings
from lakebound.control.folder import ControlFolder

GONE = Finding(cause="gone", severity=Severity.CRITICAL, what="it is gone", since=1.0)


@pytest.fixture
def ram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The RAM disk of this test."""
    folder = tmp_path / "ram"
    folder.mkdir()
    monkeypatch.setattr(fallback_files, "ram_disks", lambda: [folder])
    return folder


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose disk is full; removing the file ``full`` in it makes room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "full").touch()
    write, lock, lock_if_free = fallback_files.write_json, fallback_files.locked, fallback_files.locked_if_free

    def refuse(path: Path) -> None:
        if path.is_relative_to(folder) and (folder / "full").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def write_json(path: Path, body: object, *, durable: bool = False) -> None:
        refuse(path)
        write(path, body, durable=durable)

    def locked(path: Path):  # type: ignore[no-untyped-def]
        refuse(path)
        return lock(path)

    def locked_if_free(path: Path):  # type: ignore[no-untyped-def]
        refuse(path)
        return lock_if_free(path)

    monkeypatch.setattr(fallback_files, "write_json", write_json)
    monkeypatch.setattr(fallback_files, "locked", locked)
    monkeypatch.setattr(fallback_files, "locked_if_free", locked_if_free)
    return folder


def test_a_full_disk_does_not_lose_a_file_and_room_brings_it_back(ram: Path, full: Path) -> None:
    file = full / "state.json"
    (full / "full").unlink()
    assert write_json_anyway(file, {"n": 1}) is None
    (full / "full").touch()
    problem = write_json_anyway(file, {"n": 2})
    assert problem is not None and problem.errno == errno.ENOSPC
    assert read_newest_json(file) == {"n": 2} and newest_copy(file).is_relative_to(ram)
    (full / "full").unlink()
    assert write_json_anyway(file, {"n": 3}) is None
    assert read_newest_json(file) == {"n": 3} and newest_copy(file) == file
    assert [one for one in ram.rglob("*") if one.is_file()] == [], "nothing is left behind"


def test_a_copy_that_was_left_behind_hides_no_newer_file(ram: Path, full: Path) -> None:
    file = full / "state.json"
    write_json_anyway(file, {"n": 1})
    copy = newest_copy(file)
    (full / "full").unlink()
    file.write_text('{"n": 2}')
    os.utime(copy, (1, 1))
    assert read_newest_json(file) == {"n": 2}


def test_a_clock_that_was_set_back_makes_no_newer_copy_the_older_one(ram: Path, full: Path) -> None:
    file = full / "state.json"
    (full / "full").unlink()
    write_json_anyway(file, {"n": 1})
    ahead = file.stat().st_mtime + 3600
    os.utime(file, (ahead, ahead))
    (full / "full").touch()
    for number in (2, 3):
        write_json_anyway(file, {"n": number})
        assert read_newest_json(file) == {"n": number}


def test_without_a_ram_disk_the_error_of_the_disk_is_raised(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback_files, "ram_disks", list)
    with pytest.raises(OSError, match="No space left"):
        write_json_anyway(full / "state.json", {})
    with locked_anyway(full / "state.json"), locked_anyway_if_free(full / "sending") as is_mine:
        assert is_mine


def test_copies_are_for_their_owner_alone(ram: Path, full: Path) -> None:
    write_json_anyway(full / "state.json", {"n": 1})
    modes = {one.name: one.stat().st_mode & 0o777 for one in ram.rglob("*")}
    assert set(modes.values()) == {0o700, 0o600}, modes


@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_folder_that_somebody_else_prepared_is_not_used(ram: Path, full: Path, tmp_path: Path, kind: str) -> None:
    prepared = ram / f"lakebound-{os.geteuid()}"
    if kind == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        prepared.symlink_to(tmp_path / "theirs")
    else:
        prepared.mkdir()
        prepared.chmod(0o777)
    with pytest.raises(OSError, match="No space left"):
        write_json_anyway(full / "state.json", {})


def test_locks_exclude_each_other_on_the_ram_disk_too(ram: Path, full: Path) -> None:
    with locked_anyway_if_free(full / "sending") as first, locked_anyway_if_free(full / "sending") as second:
        assert (first, second) == (True, False)


def test_other_errors_are_not_hidden(ram: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        write_json_anyway(tmp_path / "file" / "state.json", {})
    assert not cannot_write(FileNotFoundError(errno.ENOENT, "x")) and not cannot_write(ValueError("No space left"))


def test_findings_are_kept_and_read_while_the_disk_is_full(ram: Path, full: Path) -> None:
    control = ControlFolder(full, "orders")
    write_findings(control, "doctor", [GONE])
    assert read_source(control, "doctor") is not None
    found, problems = read_sources(control)
    assert ([one.findings for one in found], problems) == ([(GONE,)], [])
    (full / "full").unlink()
    write_findings(control, "doctor", [])
    ((found_later,), problems) = read_sources(control)
    assert (found_later.findings, problems) == ((), [])
