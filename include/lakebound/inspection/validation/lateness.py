"""Whether validation is late, and whether a run gets too little of the cores to end. Pure.

A scheduled run stands behind everything else on the machine. On a machine without an idle core it gets so little that it hardly
goes on, while rows that nobody has judged pile up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from lakebound.control.bounds import Moment
from lakebound.control.findings import Fact, Finding, Severity
from lakebound.control.progress import TableProgress
from lakebound.frozen import FrozenRecord
from lakebound.inspection.validation.open_findings import RUNBOOK
from lakebound.inspection.validation.verdict import ValidatedRange

LATE = "late"
"""The cause of the finding that rows wait for their validation."""
LATE_SECONDS = 600.0
_LATE_INTERVALS = 5
_COMMIT_SECONDS = 60.0
"""How much later than its own time a commit may have returned: its time alone does not say that it is a newer one."""

STARVED_AFTER_SECONDS = 120.0
STARVED_SHARE = 0.2
"""Of one core. A run that has an idle core uses all of it: Spark, Python and the compilers of Java start, and read files."""


class Waiting(FrozenRecord):
    """Rows of a table that are not validated.

    Attributes:
        after: Id of the claim of the last range that was validated before them; empty without any.
        since: Epoch seconds of the first look that found them.
    """

    after: str = ""
    since: Moment


class Begun(FrozenRecord):
    """A run of what is due that was started, and has not ended as far as is known.

    Attributes:
        run_id: Its id.
        at: Epoch seconds at which it was started.
    """

    run_id: str
    at: Moment


def late_after_seconds(every_seconds: float) -> float:
    """Return how long rows may wait until their validation is late.

    Args:
        every_seconds: Shortest time between two validations.
    """
    return max(LATE_SECONDS, _LATE_INTERVALS * every_seconds)


def waiting_now(
    before: Mapping[str, Waiting],
    landed: Mapping[str, TableProgress],
    validated: Iterable[ValidatedRange],
    tables: Iterable[str],
    now: float,
) -> dict[str, Waiting]:
    """Return the tables with rows that are not validated, and since when these wait.

    Args:
        before: After the look before.
        landed: The last commit of each table, as its application says.
        validated: The end of the record, oldest first.
        tables: Ids of the tables of which something is expected.
        now: Epoch seconds.
    """
    last = {one.table: one for one in validated}
    found: dict[str, Waiting] = {}
    for table in tables:
        if table not in landed or not _is_newer(landed[table], last.get(table)):
            continue
        after, known = last[table].claim if table in last else "", before.get(table)
        found[table] = known if known is not None and known.after == after else Waiting(after=after, since=now)
    return found


def _is_newer(landed: TableProgress, last: ValidatedRange | None) -> bool:
    """Whether a table's commit came after what was validated; a later range may end with a commit that landed nothing."""
    if last is None:
        return landed.rows > 0
    return landed.version != last.last and landed.committed_at - last.to_ms / 1000 > _COMMIT_SECONDS


def is_late(waiting: Mapping[str, Waiting], every_seconds: float, now: float) -> bool:
    """Return whether rows of a table have waited too long.

    Args:
        waiting: Tables with rows that are not validated.
        every_seconds: Shortest time between two validations.
        now: Epoch seconds.
    """
    return any(now - one.since >= late_after_seconds(every_seconds) for one in waiting.values())


def late_finding(
    pipeline: str, waiting: Mapping[str, Waiting], begun: Begun | None, every_seconds: float, now: float
) -> Finding | None:
    """Return the finding that validation is late, with the cause as far as it is known; None where it is not late.

    Args:
        pipeline: Its name.
        waiting: Tables with rows that are not validated.
        begun: The run that has not ended; None where none was started.
        every_seconds: Shortest time between two validations.
        now: Epoch seconds.
    """
    late = late_after_seconds(every_seconds)
    tables = sorted(table for table, one in waiting.items() if now - one.since >= late)
    if not tables:
        return None
    since = min(waiting[table].since for table in tables)
    what = f"rows of {', '.join(tables)} that landed since {_told(since)} are not validated"
    dag = f"validate__{pipeline}"
    if begun is not None:
        why = (
            f"the run {begun.run_id} was started at {_told(begun.at)} and has not ended: it was killed, or gets too little of "
            "the cores of this machine; its log says how far it came"
        )
    else:
        why = (
            f"no run was started: the DAG {dag} is paused, its task waits, or Airflow's scheduler or triggerer is late; "
            f"look at {dag} in Airflow, or run `lakebound validate {pipeline}`"
        )
    evidence: dict[str, Fact] = {"waiting_seconds": round(now - since), "run": begun.run_id if begun is not None else ""}
    return Finding(
        cause=LATE, severity=Severity.WARNING, what=f"{what}: {why}", since=since, evidence=evidence, runbook=RUNBOOK
    )


def is_starved(cpu_seconds: float, wall_seconds: float) -> bool:
    """Return whether a run gets too little of the cores to end in time.

    Args:
        cpu_seconds: What its processes used.
        wall_seconds: How long it has run.
    """
    return wall_seconds >= STARVED_AFTER_SECONDS and cpu_seconds < STARVED_SHARE * wall_seconds


def _told(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
