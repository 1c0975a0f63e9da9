"""What the alerts say of disks: a finding for each that is about to be full, of no single pipeline. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.alerts.model import EVERYTHING, Memory
from lakebound.control.findings import Finding, Findings, Severity
from lakebound.inspection.disk_space import DiskState

SOURCE = "disks"


def disk_findings(states: Iterable[DiskState], memory: Memory, now: float) -> Findings:
    """Return the findings on disks.

    Args:
        states: Of all of them.
        memory: Of alerts, which knows since when.
        now: Epoch seconds.
    """
    since = {alert.concern: alert.since for alert in memory.alerts if alert.pipeline == EVERYTHING and alert.is_live}
    found = tuple(
        _finding(state, since.get(f"{SOURCE}:{state.disk.mount}", now)) for state in states if state.level is not None
    )
    return Findings(source=SOURCE, pipeline=EVERYTHING, at=now, findings=found)


def _finding(state: DiskState, since: float) -> Finding:
    disk, minutes = state.disk, state.minutes_left
    return Finding(
        cause=str(disk.mount),
        severity=Severity(state.level or "warning"),
        what=f"the disk {state}",
        since=since,
        evidence={
            "free_bytes": disk.free_bytes,
            "size_bytes": disk.size_bytes,
            "free_share": round(disk.free_share, 4),
            "free_files": disk.free_files if disk.files else None,
            "minutes_left": None if minutes is None else round(minutes, 1),
        },
        runbook="disk-full",
    )
