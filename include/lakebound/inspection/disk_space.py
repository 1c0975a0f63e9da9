"""Whether a file system is about to be full, from what is free now and what was free before. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lakebound.control.disks import FileSystem
from lakebound.frozen import FrozenRecord
from lakebound.spec.disks import DisksSpec, FreeSpaceSpec

WINDOW_SECONDS = 3600.0
"""Over how long the rate is taken: a compaction, which writes much and soon removes it, is shorter."""
LEAST_SECONDS = 600.0
"""Nothing is said of a rate that was seen for less."""
APART_SECONDS = 55.0
"""Readings that are closer to the last one are not kept, so that there are some 60 of each disk, whoever looks how often."""

Level = Literal["warning", "critical"]


class DiskReading(FrozenRecord):
    """What was free at a time (epoch seconds)."""

    at: float
    mount: str
    free_bytes: int


@dataclass(frozen=True)
class DiskState:
    """A file system as it stands.

    Attributes:
        disk: It.
        minutes_left: Until it is full at the present rate; None where it does not fill, or was not seen for long enough.
        level: How much it matters; None: not at all.
    """

    disk: FileSystem
    minutes_left: float | None = None
    level: Level | None = None

    def __str__(self) -> str:
        """Return one sentence."""
        return str(self.disk) + ("" if self.minutes_left is None else f", full in {duration(self.minutes_left)} at this rate")


def with_readings(before: Iterable[DiskReading], disks: Iterable[FileSystem], now: float) -> tuple[DiskReading, ...]:
    """Return the readings with those of now, without what is older than the rate is taken of.

    Args:
        before: The readings that were kept.
        disks: As they are now.
        now: Epoch seconds.
    """
    kept = [one for one in before if now - WINDOW_SECONDS - APART_SECONDS <= one.at <= now]
    newest: dict[str, float] = {}
    for one in kept:
        newest[one.mount] = max(one.at, newest.get(one.mount, 0.0))
    added = [
        DiskReading(at=now, mount=str(disk.mount), free_bytes=disk.free_bytes)
        for disk in disks
        if now - newest.get(str(disk.mount), 0.0) >= APART_SECONDS
    ]
    return (*kept, *added)


def judged(disk: FileSystem, readings: Sequence[DiskReading], spec: DisksSpec, now: float) -> DiskState:
    """Return how a file system stands.

    Args:
        disk: As it is now.
        readings: Earlier ones, of any disk.
        spec: When it matters.
        now: Epoch seconds.
    """
    minutes = minutes_left(disk.mount, disk.free_bytes, readings, now)
    if _is_short(disk, minutes, spec.critical):
        return DiskState(disk, minutes, "critical")
    return DiskState(disk, minutes, "warning" if _is_short(disk, minutes, spec.warning) else None)


def minutes_left(mount: Path, free_bytes: int, readings: Iterable[DiskReading], now: float) -> float | None:
    """Return in how many minutes the disk is full, at the rate since the oldest reading; None where that is not known.

    Args:
        mount: Where the disk is mounted.
        free_bytes: What is free now.
        readings: Earlier ones, of any disk.
        now: Epoch seconds.
    """
    own = [one for one in readings if one.mount == str(mount) and now - one.at <= WINDOW_SECONDS + APART_SECONDS]
    oldest = min(own, key=lambda one: one.at, default=None)
    if oldest is None or now - oldest.at < LEAST_SECONDS or free_bytes >= oldest.free_bytes:
        return None
    return free_bytes / (oldest.free_bytes - free_bytes) * (now - oldest.at) / 60


def duration(minutes: float) -> str:
    """Return minutes in words."""
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours" if minutes < 2880 else "more than 2 days"


def _is_short(disk: FileSystem, minutes: float | None, spec: FreeSpaceSpec) -> bool:
    is_little = disk.free_bytes < spec.free_bytes and disk.free_share < spec.free_share
    return is_little or disk.free_files_share < spec.free_share or (minutes is not None and minutes < spec.minutes_left)
