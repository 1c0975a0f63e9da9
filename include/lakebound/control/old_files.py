"""Removes what is old from the state: logs, outcomes, scratch. Never what an application that lives, or was the last, has.

What a repair, an approval, an undo, a proof or a validation needs is no part of it: leases, desired states, submissions,
incidents of repairs, results of replays, and the records of maintenance and validation, which bound themselves.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import psutil

from lakebound.control.applications import living_submission, pipelines_with_state
from lakebound.control.folder import ControlFolder, StateFile, read_json
from lakebound.control.lease import readable_lease
from lakebound.control.private_files import open_private
from lakebound.control.retention import DAY_SECONDS, OldFile, retention_of, to_remove
from lakebound.control.shared_file import SharedFile
from lakebound.control.submission import read_submission
from lakebound.settings import Settings

LARGE_LOG_BYTES = 64 * 1024 * 1024
"""A log that something still writes keeps its end when it is larger."""
_END_BYTES = 4 * 1024 * 1024
_KEPT_INCIDENTS = frozenset({"repair", "rewind"})
"""What was done by a person's decision: these are kept for good."""


@dataclass(frozen=True)
class Removed:
    """What was removed."""

    files: int = 0
    bytes: int = 0


def remove_old_files(settings: Settings, now: float) -> Removed:
    """Remove what is older, or more, than what is kept; return how much that was. What cannot be removed stays.

    Args:
        settings: Of this machine.
        now: Epoch seconds.
    """
    removed = [file for file in old_files(settings, now) if _is_removed(file.path)]
    _remove_empty_folders(settings.home / "airflow" / "logs", now)
    return Removed(len(removed), sum(file.size_bytes for file in removed) + _shorten_logs(settings))


def old_files(settings: Settings, now: float) -> list[OldFile]:
    """Return what is older, or more, than what is kept, and in nobody's use.

    Args:
        settings: Of this machine.
        now: Epoch seconds.
    """
    commands = _commands()
    old: list[OldFile] = []
    for control in pipelines_with_state(settings):
        in_use = _in_use(control)
        if in_use is not None:
            old += _old_of(control, in_use, commands, settings.keep_days, now)
    return [*old, *to_remove(_airflow_logs(settings), retention_of("Airflow", settings.keep_days), now)]


def _old_of(control: ControlFolder, in_use: set[str], commands: str, kept_days: float, now: float) -> Iterator[OldFile]:
    def is_free(path: StateFile, app_id: str) -> bool:
        return app_id not in in_use and app_id not in commands

    folder, shared = control.folder, control.shared
    kinds: tuple[tuple[str, StateFile, str, Callable[[StateFile], bool]], ...] = (
        ("logs", folder / "logs", "*", lambda path: is_free(path, path.name.partition(".")[0])),
        ("outcomes", control.outcomes, "*.json", lambda path: is_free(path, path.stem)),
        ("stop markers", shared, "stop-*.json", lambda path: is_free(path, path.stem.removeprefix("stop-"))),
        ("checkpoints", folder / "checkpoints", "*", lambda path: is_free(path, path.name)),
        ("incidents", control.incidents, "*.json", lambda path: True),
    )
    for kind, place, pattern, may_go in kinds:
        found = (file for file in _found(place, pattern) if may_go(file.path))
        old = to_remove(found, retention_of(kind, kept_days), now)
        yield from (file for file in old if kind != "incidents" or not _is_kept_incident(file.path))


def _in_use(control: ControlFolder) -> set[str] | None:
    """Return the applications that live, or were the last; None where that cannot be known."""
    try:
        known = (living_submission(control), read_submission(control), readable_lease(control))
    except (OSError, ValueError):
        return None
    return {one.app_id for one in known if one is not None}


def _commands() -> str:
    """Return the command lines of all processes that are seen from here: a guest's names its application."""
    return "\n".join(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def _is_kept_incident(path: StateFile) -> bool:
    try:
        return (read_json(path) or {}).get("kind") in _KEPT_INCIDENTS
    except (OSError, ValueError, AttributeError):
        return True


def _airflow_logs(settings: Settings) -> Iterator[OldFile]:
    logs = settings.home / "airflow" / "logs"
    if logs.is_symlink():
        return  # whoever linked it elsewhere looks after it
    yield from _files(Path(folder, name) for folder, _, names in os.walk(logs) for name in names if Path(folder) != logs)


def _files(paths: Iterable[Path]) -> Iterator[OldFile]:
    for path in paths:
        with suppress(OSError):
            # A folder is as young as the youngest file in it.
            found = [one.lstat() for one in (path, *path.rglob("*"))] if path.is_dir() else [path.lstat()]
            yield OldFile(path, sum(one.st_size for one in found), max(one.st_mtime for one in found))


def _found(place: StateFile, pattern: str) -> Iterator[OldFile]:
    """Yield the files in a place whose names match, with their sizes and ages."""
    if isinstance(place, Path):
        yield from _files(place.glob(pattern))
        return
    with suppress(OSError):
        for location, stored in place.location.list():
            name = location.relative_to(place.location)
            if "/" not in name and fnmatchcase(name, pattern):
                yield OldFile(SharedFile(location), stored.size_bytes, stored.modified_ms / 1000)


def _is_removed(path: StateFile) -> bool:
    try:
        if not isinstance(path, Path):
            path.unlink()
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return False
    return True


def _remove_empty_folders(root: Path, now: float) -> None:
    """Remove folders that have been empty for a day: in a younger one a task may be about to make its log."""
    for folder, _, _ in os.walk(root, topdown=False):
        with suppress(OSError):
            if folder != str(root) and now - os.stat(folder).st_mtime > DAY_SECONDS:
                os.rmdir(folder)


def _shorten_logs(settings: Settings) -> int:
    """Keep the end of logs that are written on and on, and return how many bytes that freed."""
    written = [path for control in pipelines_with_state(settings) for path in (control.folder / "logs").glob("*.log")]
    written += [settings.home / "airflow" / "logs" / "standalone.log"]
    alerts = [control.folder / "incidents.jsonl" for control in pipelines_with_state(settings)]
    return sum(_shortened(path, LARGE_LOG_BYTES) for path in written) + sum(_shortened(path, _END_BYTES * 2) for path in alerts)


def _shortened(path: Path, max_bytes: int) -> int:
    """Cut off the start of a log. Who has it open for appending continues; lines of this very moment may be lost."""
    try:
        found = path.lstat()
        size = found.st_size
        if size <= max_bytes or not stat.S_ISREG(found.st_mode):
            return 0
        with open_private(path, "r+b") as file:
            file.seek(size - _END_BYTES)
            kept = file.read()
            # One line may be longer than what is kept.
            end = kept.partition(b"\n")[2] or kept
            file.truncate(0)
        with open_private(path, "ab") as file:
            file.write(end)
    except OSError:
        return 0
    return size - len(end)
