"""Looks at the disks, and remembers what was free: a short file of readings, from which the rate is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakebound.control.disks import file_systems, places_written
from lakebound.control.fallback_files import read_newest_json, write_json_anyway
from lakebound.frozen import FrozenRecord
from lakebound.inspection.disk_space import DiskReading, DiskState, judged, with_readings
from lakebound.settings import Settings
from lakebound.spec.disks import DisksSpec


class _Kept(FrozenRecord):
    readings: tuple[DiskReading, ...] = ()


def look_at_disks(
    settings: Settings, spec: DisksSpec | None, now: float, *, remember: bool
) -> tuple[list[DiskState], list[str]]:
    """Return how the disks stand, and a line for each that gave no answer.

    Args:
        settings: Of this machine.
        spec: When a disk matters; None: none does.
        now: Epoch seconds.
        remember: Whether this look counts for the rate; else nothing is written.
    """
    disks, silent = file_systems(places_written(settings))
    before = _read(settings)
    if remember:
        kept = _Kept(readings=with_readings(before, disks, now))
        try:
            write_json_anyway(_file(settings), kept.model_dump(mode="json"))
        except OSError as exc:
            silent.append(f"{_file(settings)} cannot be written: {exc.strerror}; no rate is known")
    return [judged(disk, before, spec, now) if spec else DiskState(disk) for disk in disks], silent


def _read(settings: Settings) -> tuple[DiskReading, ...]:
    try:
        body: Any = read_newest_json(_file(settings))
        return () if body is None else _Kept.model_validate(body).readings
    except (OSError, ValueError, ValidationError):
        return ()


def _file(settings: Settings) -> Path:
    return settings.home / "alerts" / "disks.json"
