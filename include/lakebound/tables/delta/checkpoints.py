"""The files of a Delta log: which checkpoints are whole, and which files may go, the oldest first.

What is left after a clean-up then always leads to the newest version.

``deltalake``'s own clean-up goes by the age of files and by ``delta.logRetentionDuration`` alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.lib import ArrowInvalid

from lakebound.storage.location import Location

_LOG_FILE = re.compile(r"(\d{20})(?:\.(\d{20}))?\.(json|crc|compacted\.json|checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet)")


@dataclass(frozen=True)
class DeltaLogFile:
    """A file of the log that stands for versions up to ``version``.

    Attributes:
        part: Of a checkpoint in several parts: which one, and of how many; (1, 1) for a checkpoint in one file.
    """

    name: str
    version: int
    is_commit: bool = False
    part: tuple[int, int] | None = None


def parse(name: str) -> DeltaLogFile | None:
    """Return what a name in the log folder stands for; None for what is nobody's to delete.

    Checkpoints with sidecars are among those: what else refers to a sidecar is not known here.
    """
    found = _LOG_FILE.fullmatch(name)
    if found is None:
        return None
    first, last, kind, part, parts = found.groups()
    if (last is not None) != (kind == "compacted.json"):
        return None
    checkpoint = (int(part or 1), int(parts or 1)) if kind.startswith("checkpoint") else None
    return DeltaLogFile(name, int(last or first), kind == "json", checkpoint)


def whole_checkpoints(files: Iterable[DeltaLogFile]) -> dict[int, tuple[str, ...]]:
    """Return version to file names, of checkpoints of which every part is there."""
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for file in files:
        if file.part is not None:
            parts.setdefault((file.version, file.part[1]), {})[file.part[0]] = file.name
    return {version: tuple(found[n] for n in sorted(found)) for (version, count), found in parts.items() if len(found) == count}


def base_version(files: Iterable[DeltaLogFile], before_version: int, is_readable: Callable[[str], bool]) -> int | None:
    """Return the newest version, at most ``before_version``, from whose checkpoint the log can be read; None without one.

    Everything below it may go: no version from it on needs that, so ``before_version`` and what follows stay readable.

    Args:
        files: Files in the folder ``_delta_log``.
        before_version: Oldest version that must stay readable.
        is_readable: Whether the checkpoint file of that name can be read.
    """
    checkpoints = whole_checkpoints(files)
    for version in sorted((number for number in checkpoints if number <= before_version), reverse=True):
        if all(is_readable(name) for name in checkpoints[version]):
            return version
    return None


def deletable(files: Iterable[DeltaLogFile], base: int) -> tuple[DeltaLogFile, ...]:
    """Return the files that only versions below ``base`` need, oldest first, of a version its commit last.

    A reader that stops at the first gap going back then still finds every commit from the gap on.

    Args:
        files: Files of the log.
        base: The oldest version that must stay readable.
    """
    below = [file for file in files if file.version < base]
    return tuple(sorted(below, key=lambda file: (file.version, file.is_commit, file.name)))


def is_readable(file: Location) -> bool:
    """Whether a checkpoint's file is there whole: its footer can be read and it has rows."""
    try:
        return int(pq.read_metadata(file.path if file.is_local else pa.BufferReader(file.read())).num_rows) > 0
    except (ConnectionError, PermissionError):
        raise  # whether it can be read is not known
    except (OSError, ArrowInvalid):
        return False


def list_log(folder: Location) -> tuple[DeltaLogFile, ...]:
    """Return the known files in the log of the table in a folder."""
    return tuple(file for file in map(parse, log_names(folder)) if file is not None)


def log_names(folder: Location) -> list[str]:
    """Return the names in the log of the table in a folder."""
    log = folder / "_delta_log"
    if log.is_local:
        return os.listdir(log.path)
    return [found.name for found, _ in log.list() if found.parent == log]
