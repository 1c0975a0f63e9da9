"""When maintenance ran and what it did, from the end of the record of runs: cheap, for whoever only shows it."""

from __future__ import annotations

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_end
from lakebound.control.state_text import parsed_json
from lakebound.frozen import Frozen

_MAX_READ_BYTES = 512 * 1024
"""Of the end of the record; a line has some kilobytes."""


class RunTime(Frozen):
    """One run; times are epoch seconds. ``steps`` counts what it did, ``failed`` what of it failed."""

    started_at: Moment
    ended_at: Moment
    steps: Count = 0
    failed: Count = 0


class PastStep(Frozen):
    """What one step did to a table, without what may hold values of records: partitions, paths and texts of errors.

    Attributes:
        at: When its run ended, in epoch seconds.
        kind: Such as ``compact``.
        outcome: As in ``StepReport``.
    """

    at: Moment
    kind: str
    outcome: str
    seconds: Moment = 0.0
    files_before: Count = 0
    files_after: Count = 0
    bytes_rewritten: Count = 0
    bytes_removed: Count = 0


_NUMBERS = ("seconds", "files_before", "files_after", "bytes_rewritten", "bytes_removed")


def read_newest_steps(control: ControlFolder, table: str, most: int) -> list[PastStep]:
    """Return the newest steps that were tried on a table, newest first; a line that cannot be read is left out.

    Args:
        control: State folder of the pipeline.
        table: Id of the table.
        most: How many at most.

    Raises:
        OSError: The record is there and cannot be read.
    """
    found: list[PastStep] = []
    for line in reversed(_last_lines(control)):
        found += _steps_on(table, line)
        if len(found) >= most:
            break
    return found[:most]


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
    return read_end(control.maintenance_history, _MAX_READ_BYTES).splitlines()


def _steps_on(table: str, line: bytes) -> list[PastStep]:
    try:
        body = parsed_json(line)
        return [
            PastStep(
                at=body["ended_at_ms"] / 1000,
                kind=one["step"]["kind"],
                outcome=one["outcome"],
                **{name: one.get(name, 0) for name in _NUMBERS},
            )
            for one in reversed(body["steps"])
            if one["outcome"] != "skipped" and one.get("step", {}).get("table") == table
        ]
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _run_time(line: bytes) -> RunTime | None:
    try:
        body = parsed_json(line)
        outcomes = [step["outcome"] for step in body["steps"]]
        return RunTime(
            started_at=body["started_at_ms"] / 1000,
            ended_at=body["ended_at_ms"] / 1000,
            steps=outcomes.count("done"),
            failed=outcomes.count("failed"),
        )
    except (ArithmeticError, ValueError, KeyError, TypeError):
        return None
