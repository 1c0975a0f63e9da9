"""The limit of restarts: after a number of ends in a row without a landed row, a person is asked.

The file ``crash-loop.json`` names the applications (or, where none came up, the DAG runs) whose ends count. Both who start
applications without Airflow and the guard of the ingest DAG keep it, each end counts once, and whatever a person asks for after
the last of them (``lakebound.control.desired``) restarts the count. An end by an outage does not count, however often it
comes: starting again is right, after a pause.
"""

from __future__ import annotations

from typing import Any

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.last_end import LastEnd
from lakebound.frozen import FrozenRecord

_LONGEST_PAUSE_SECONDS = 600.0
_LONGEST_OUTAGE_PAUSE_SECONDS = 60.0
"""So long may the end of an outage go unnoticed."""


class OutageEnds(FrozenRecord):
    """The ends in a row by an outage, without a landed row.

    Attributes:
        count: How many.
        last: Id of the last application, or of the Airflow run when none was submitted.
        at: When it ended; epoch seconds.
        reason: How it ended.
        runbook: The page about that outage.
    """

    count: int = 0
    last: str = ""
    at: float = 0.0
    reason: str = ""
    runbook: str = "application-dead"


class CrashLoop(FrozenRecord):
    """The ends in a row that landed nothing.

    Attributes:
        ends: Ids of the applications, oldest first.
        at: When the last of them ended; epoch seconds.
        reason: How the last of them ended.
        failed_runs: Runs of the ingest DAG in a row that its guard has failed for them. Airflow pauses the DAG at
            ``failed_runs_limit`` of them.
        outages: The ends in a row by an outage, since the last end of another kind.
    """

    ends: tuple[str, ...] = ()
    at: float = 0.0
    reason: str = ""
    failed_runs: int = 0
    outages: OutageEnds = OutageEnds()

    def after(self, end_id: str, *, barren: bool, at: float, reason: str = "") -> CrashLoop:
        """Return the count after an end: one that is not barren restarts it, one that was counted is not counted again.

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
        return CrashLoop(ends=(*self.ends, end_id), at=at, reason=reason, failed_runs=self.failed_runs)

    def after_outage(self, end_id: str, *, at: float, reason: str, runbook: str | None = None) -> CrashLoop:
        """Return the count after an end by an outage: the same as before, and a pause before the next start.

        Args:
            end_id: Id of the application that ended, or of the Airflow run when none was submitted.
            at: Epoch seconds of the end.
            reason: How it ended, in words for a person.
            runbook: The page about it; None where the error has none of its own.
        """
        if end_id == self.outages.last:
            return self
        page = {} if runbook is None else {"runbook": runbook}
        ends = OutageEnds(count=self.outages.count + 1, last=end_id, at=at, reason=reason, **page)
        return self.model_copy(update={"outages": ends})

    def since(self, changed_at: float) -> CrashLoop:
        """Return the count that is left after the desired state was changed at a time."""
        left = self if changed_at <= self.at else CrashLoop(outages=self.outages)
        return left if changed_at <= self.outages.at else left.model_copy(update={"outages": OutageEnds()})

    def not_before(self, first_pause_seconds: float) -> float:
        """Return when the next start may be made (epoch seconds).

        The pause grows fourfold with each end, to ten minutes; after outages to one minute.
        """
        failed = _after_pause(len(self.ends), self.at, first_pause_seconds, _LONGEST_PAUSE_SECONDS)
        away = _after_pause(self.outages.count, self.outages.at, first_pause_seconds, _LONGEST_OUTAGE_PAUSE_SECONDS)
        return max(failed, away)

    def is_over_limit(self, limit: int) -> bool:
        """Whether a person must be asked."""
        return len(self.ends) >= limit

    def was_unpaused(self, limit: int, is_paused: bool) -> bool:
        """Whether a person has unpaused the ingest DAG that Airflow had paused for this crash loop.

        Args:
            limit: ``limits.max_failed_starts``.
            is_paused: Whether the DAG is paused now.
        """
        return self.is_over_limit(limit) and self.failed_runs >= failed_runs_limit(limit) and not is_paused


def failed_runs_limit(limit: int) -> int:
    """Return after how many failed runs of the ingest DAG in a row Airflow pauses it.

    The guard does not fail the run of the first end that counts, so that Airflow's count restarts with it, as ours does
    when a person has started the pipeline again. Both therefore reach their limits with the same run.

    Args:
        limit: ``limits.max_failed_starts``.
    """
    return max(1, limit - 1)


def _after_pause(count: int, at: float, first_seconds: float, longest_seconds: float) -> float:
    if not count:
        return 0.0
    longest = max(longest_seconds, first_seconds)
    return at + (longest if count > 10 else min(first_seconds * 4.0 ** (count - 1), longest))


def count_last_end(before: CrashLoop, last: LastEnd | None, changed_at: float) -> CrashLoop:
    """Return the count with the end of the last application, as a start finds it. Pure.

    A refusal is not an end in this sense: nothing was started.

    Args:
        before: The count as it was written last.
        last: How the application before this start ended; None when there was none.
        changed_at: Epoch seconds of the newest change of the desired state; one after the last counted end resets the count.
    """
    if last is None:
        return before.since(changed_at)
    if last.outcome is not None and last.outcome.verdict in ("refused", "superseded"):
        return before.since(changed_at)
    ended_at = last.outcome.ended_at if last.outcome is not None else last.lease.heartbeat_at
    if last.outcome is not None and last.is_outage:
        return before.after_outage(last.app_id, at=ended_at, reason=last.outcome.reason, runbook=last.outcome.page).since(
            changed_at
        )
    return before.after(last.app_id, barren=last.is_barren, at=ended_at, reason=last.described).since(changed_at)


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
