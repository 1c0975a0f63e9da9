"""Which files of the state are old enough to go, by age, number and size. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lakebound.control.shared_file import SharedFile

DAY_SECONDS = 86_400.0

_MIB = 1 << 20


@dataclass(frozen=True)
class OldFile:
    """A file or folder that may go.

    Attributes:
        path: Where it is.
        size_bytes: What it takes.
        changed_at: When it was last written, in epoch seconds.
    """

    path: Path | SharedFile
    size_bytes: int
    changed_at: float


@dataclass(frozen=True)
class Retention:
    """What is kept of one kind of files. All bounds hold; the oldest go first.

    Attributes:
        max_age_seconds: Older ones go.
        max_bytes: Of all of them together.
        max_files: How many there are at most.
    """

    max_age_seconds: float
    max_bytes: int | None = None
    max_files: int | None = None


def retention_of(kind: str, kept_days: float) -> Retention:
    """Return what is kept of a kind of files.

    Args:
        kind: ``logs``, ``outcomes``, ``incidents``, ``stop markers`` or ``checkpoints``, each of one pipeline; ``Airflow``: its
            logs.
        kept_days: For how long logs and outcomes are kept.
    """
    kept_seconds = kept_days * DAY_SECONDS
    return {
        "logs": Retention(kept_seconds, max_bytes=1024 * _MIB, max_files=2000),
        "outcomes": Retention(kept_seconds, max_files=2000),
        "incidents": Retention(max(kept_seconds, 365 * DAY_SECONDS), max_files=1000),
        # Scratch: a running application has its folder, and its marker, whatever their age.
        "stop markers": Retention(DAY_SECONDS),
        "checkpoints": Retention(7 * DAY_SECONDS),
        "Airflow": Retention(kept_seconds, max_bytes=4096 * _MIB),
    }[kind]


def to_remove(files: Iterable[OldFile], retention: Retention, now: float) -> list[OldFile]:
    """Return those that go.

    Args:
        files: Of one kind; none of them is in use.
        retention: What is kept.
        now: Epoch seconds.
    """
    gone: list[OldFile] = []
    kept_bytes = kept_files = 0
    for file in sorted(files, key=lambda one: one.changed_at, reverse=True):
        kept_bytes += file.size_bytes
        kept_files += 1
        is_too_much = (retention.max_bytes is not None and kept_bytes > retention.max_bytes) or (
            retention.max_files is not None and kept_files > retention.max_files
        )
        if is_too_much or now - file.changed_at > retention.max_age_seconds:
            gone.append(file)
    return gone
