"""The file systems that Lakebound writes to: how large they are, and what is free. Asks the system, decides nothing."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from lakebound.settings import Settings

ANSWER_SECONDS = 5.0
"""A network file system that is away answers nothing at all."""

_FEW_FILES = 0.1

T = TypeVar("T")


@dataclass(frozen=True)
class FileSystem:
    """One file system.

    Attributes:
        mount: Where it is mounted.
        uses: What of Lakebound's lies on it.
        size_bytes: What it holds in all.
        free_bytes: What a user without privileges may still write.
        files: How many files it can have; 0 where it has no limit.
        free_files: How many more files it can have.
    """

    mount: Path
    uses: tuple[str, ...]
    size_bytes: int
    free_bytes: int
    files: int = 0
    free_files: int = 0

    @property
    def free_share(self) -> float:
        """The part of the bytes that is free."""
        return self.free_bytes / self.size_bytes if self.size_bytes else 1.0

    @property
    def free_files_share(self) -> float:
        """The part of the files that it can have and has not."""
        return self.free_files / self.files if self.files else 1.0

    def __str__(self) -> str:
        """Return it in words, such as ``/data (tables): 1.2 GB of 40 GB free (3 %)``."""
        used_for = f" ({', '.join(self.uses)})" if self.uses else ""
        said = f"{in_words(self.free_bytes)} of {in_words(self.size_bytes)} free ({self.free_share:.0%})"
        if self.free_files_share < min(_FEW_FILES, self.free_share):
            said += f", and room for {self.free_files:,} of {self.files:,} files"
        return f"{self.mount}{used_for}: {said}"


def places_written(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Return what Lakebound and its Airflow write, and where."""
    env = os.environ if environ is None else environ
    home = settings.home
    airflow = Path(env.get("AIRFLOW_HOME") or home / "airflow")
    return {
        "state": home,
        "state of pipelines": home / "pipelines",
        "tables": settings.warehouse,
        "broker": home / "embedded",
        "Airflow": airflow,
        "Airflow's logs": Path(env.get("AIRFLOW__LOGGING__BASE_LOG_FOLDER") or airflow / "logs"),
        "scratch": scratch_folder(env),
    }


def scratch_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return where Spark spills: its first local folder, or else that for temporary files."""
    chosen = (os.environ if environ is None else environ).get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return Path(chosen or tempfile.gettempdir())


def file_systems(places: Mapping[str, Path]) -> tuple[list[FileSystem], list[str]]:
    """Return the file systems of places, each once, and a line for each place that gave no answer.

    Args:
        places: What lies where. A folder that is not there yet counts as where it would be made.
    """
    found: dict[int, FileSystem] = {}
    silent: list[str] = []
    for use, path in places.items():
        try:
            device, disk = _in_time(partial(_read, path))
        except OSError as exc:
            silent.append(f"the disk of {path} ({use}) does not say how much space is free: {exc.strerror or exc}")
            continue
        uses = (*found[device].uses, use) if device in found else (use,)
        found[device] = replace(found.get(device, disk), uses=uses)
    return list(found.values()), silent


def disk_of(path: Path) -> FileSystem | None:
    """Return the file system on which a path is, or would be made; None where it does not say."""
    try:
        return _in_time(partial(_read, path))[1]
    except OSError:
        return None


def in_words(size_bytes: float) -> str:
    """Return a number of bytes with its unit, such as ``1.2 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size_bytes) < 1000:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} TB"


def _read(path: Path) -> tuple[int, FileSystem]:
    """Return the device of a path, and its file system."""
    folder = _existing(path)
    found = os.statvfs(folder)
    return folder.stat().st_dev, FileSystem(
        mount=_mount(folder),
        uses=(),
        size_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
        files=found.f_files,
        free_files=found.f_favail,
    )


def _in_time(ask: Callable[[], T]) -> T:
    """Return the answer. A question that is not answered stays behind in its thread."""
    answers: SimpleQueue[T | OSError] = SimpleQueue()

    def answer() -> None:
        try:
            answers.put(ask())
        except OSError as exc:
            answers.put(exc)

    threading.Thread(target=answer, name="disk", daemon=True).start()
    try:
        got = answers.get(timeout=ANSWER_SECONDS)
    except Empty:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer in {ANSWER_SECONDS:g} s") from None
    if isinstance(got, OSError):
        raise got
    return got


def _existing(path: Path) -> Path:
    """Return the folder, or the nearest one above that is there, links followed."""
    return next(folder.resolve() for folder in (path, *path.parents) if folder.exists())


def _mount(folder: Path) -> Path:
    device = folder.stat().st_dev
    while folder != folder.parent and folder.parent.stat().st_dev == device:
        folder = folder.parent
    return folder
