"""When maintenance ran, from the end of the record of runs: cheap, for whoever only shows it."""

from __future__ import annotations

import json
import os

from lakebound.control.folder import ControlFolder
from lakebound.frozen import Frozen

_MAX_READ_BYTES = 512 * 1024
"""Of the end of the record; a line has some kilobytes."""


class RunTime(Frozen):
    """One run; times are epoch seconds. ``steps`` counts what it did, ``failed`` what of it failed."""

    started_at: float
    ended_at: float
    steps: int = 0
    failed: int = 0


def read_run_times(control: ControlFolder, since: float, most: int) -> list[RunTime]:
    """Return the runs that ended at a moment or later, oldest first; a line that cannot be read is left out.

    Args:
        control: State folder of the pipeline.
        since: Epoch seconds.
        most: How many at most: the newest ones.

    Raises:
        OSError: The record is there and cannot be read.
    """
    found: list[RunTime] = []
    for line in reversed(_last_lines(control)):
        run = _run_time(line)
        if run is not None and run.ended_at >= since:
            found.append(run)
            if len(found) == most:
                break
    return found[::-1]


def _last_lines(control: ControlFolder) -> list[bytes]:
    try:
        with control.maintenance_history.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MAX_READ_BYTES))
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    return lines if size <= _MAX_READ_BYTES else lines[1:]


def _run_time(line: bytes) -> RunTime | None:
    try:
        body = json.loads(line)
        outcomes = [step["outcome"] for step in body["steps"]]
        return RunTime(
            started_at=body["started_at_ms"] / 1000,
            ended_at=body["ended_at_ms"] / 1000,
            steps=outcomes.count("done"),
            failed=outcomes.count("failed"),
        )
    except (ValueError, KeyError, TypeError):
        return None
