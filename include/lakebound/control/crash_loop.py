"""The bound on starting again: after so many ends in a row without a landed row, a person is asked.

The file ``crash-loop.json`` names the applications (or, where none came up, the DAG runs) whose ends count. Both who start
applications without Airflow and the guard of the ingest DAG keep it, each end counts once, and whatever a person wishes after
the last of them (``lakebound.control.desired``) starts the count anew.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.last_end import LastEnd

_LONGEST_PAUSE_SECONDS = 600.0


class CrashLoop(BaseModel):
    """The ends in a row that landed nothing.

    Attributes:
        ends: Ids of the applications, oldest first.
        at: When the last of them ended; epoch seconds.
        reason: How the last of them ended.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    ends: tuple[str, ...] = ()
    at: float = 0.0
    reason: str = ""

    def after(self, end_id: str, *, barren: bool, at: float, reason: str = "") -> CrashLoop:
        """Return the count after an end: one that is not barren starts it anew, one that was counted counts no more.

        Args:
            end_id: Id of the application that ended, or of the Airflow run when none was submitted.
            barren: Whether it ended uncleanly and soon without landing a row.
            at: Epoch seconds of the end.
            reason: How it ended, in words for a person.
        """
        if not barren:
            return CrashLoop()
        if end_id in self.ends:
            return self
        return CrashLoop(ends=(*self.ends, end_id), at=at, reason=reason)

    def since(self, wished_at: float) -> CrashLoop:
        """Return the count that is left after a wish at a time."""
        return CrashLoop() if wished_at > self.at else self

    def not_before(self, first_pause_seconds: float) -> float:
        """Return when the next start may be made (epoch seconds): the pause grows fourfold with each end, to ten minutes."""
        if not self.ends:
            return 0.0
        longest = max(_LONGEST_PAUSE_SECONDS, first_pause_seconds)
        return self.at + min(first_pause_seconds * 4.0 ** (len(self.ends) - 1), longest)

    def is_over_limit(self, limit: int) -> bool:
        """Whether a person must be asked."""
        return len(self.ends) >= limit


def count_last_end(before: CrashLoop, last: LastEnd | None, wished_at: float) -> CrashLoop:
    """Return the count with the end of the last application, as a start finds it. Pure.

    A refusal is not an end in this sense: nothing was started.

    Args:
        before: The count as it was written last.
        last: How the application before this start ended; None when there was none.
        wished_at: Epoch seconds of the newest wish; a wish after the last counted end starts the count anew.
    """
    if last is None:
        return before.since(wished_at)
    if last.outcome is not None and last.outcome.verdict in ("refused", "superseded"):
        return before.since(wished_at)
    ended_at = last.outcome.ended_at if last.outcome is not None else last.lease.heartbeat_at
    return before.after(last.app_id, barren=last.is_barren, at=ended_at, reason=last.described).since(wished_at)


def read_crash_loop(control: ControlFolder) -> CrashLoop:
    """Return the count so far; a file that cannot be read counts nothing."""
    try:
        body: Any = read_json(control.crash_loop)
        return CrashLoop() if body is None else CrashLoop.model_validate(body)
    except (OSError, ValueError):
        return CrashLoop()


def write_crash_loop(control: ControlFolder, loop: CrashLoop) -> None:
    """Replace the file, if it says anything else."""
    if loop != read_crash_loop(control):
        write_json(control.crash_loop, loop.model_dump(mode="json"), durable=True)
