"""What is wrong at this moment, from the history of validated ranges. Pure.

An expectation that failed is a finding until it has held for some time: one good minute between two bad ones ends nothing.
Late rows are different: a topic that has no new records has none that are late, so ``fresh`` is over as soon as it has not
failed for some time. What could not be read is one for some time, long enough for an alert to be made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebound.control.findings import Fact, Finding, Severity
from lakebound.inspection.validation.expectations import ExpectationFile, Fresh
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange

RUNBOOK = "validation-failed"
RUN = "run"
"""The cause of the finding that nothing could be validated."""
LOST_SECONDS = 900.0
"""Minimum time for which a finding about unreadable data stays."""


def open_findings(
    history: Sequence[ValidatedRange], file: ExpectationFile, tables: Iterable[str], *, now: float
) -> list[Finding]:
    """Return the findings that stand.

    Args:
        history: The record, oldest first.
        file: What is expected today; an expectation that it no longer asks of a table has no finding there.
        tables: Ids of the tables that the pipeline has today.
        now: Epoch seconds.
    """
    labels = {table: {one.label: one for one in file.of(table)} for table in tables}
    streaks: dict[tuple[str, str], _Streak] = {}
    for one in history:
        for result in one.results:
            if result.label in labels.get(one.table, ()):
                own = _Streak(file, is_of_lateness=isinstance(labels[one.table][result.label], Fresh))
                streaks.setdefault((one.table, result.label), own).add(one, result)
    found = [
        finding
        for (table, label), streak in sorted(streaks.items())
        if (finding := streak.finding(table, label, now)) is not None
    ]
    since = now - max(LOST_SECONDS, file.resolve_after_seconds)
    lost = [one for one in history if one.lost is not None and one.at > since and labels.get(one.table)]
    return [*found, *(_lost([one for one in lost if one.table == table]) for table in sorted({one.table for one in lost}))]


def failed_run(problem: str, *, now: float) -> Finding:
    """Return the finding that nothing could be validated."""
    return Finding(
        cause=RUN,
        severity=Severity.WARNING,
        what=f"validation did not run: {problem}",
        since=now,
        runbook=RUNBOOK,
    )


class _Streak:
    """An expectation's failures in a row: apart by less than the time after which a finding is over.

    Args:
        file: It says that time.
        is_of_lateness: Whether the expectation is about how late rows came, which no later row has to mend.
    """

    def __init__(self, file: ExpectationFile, *, is_of_lateness: bool) -> None:
        self.since = 0.0
        self.failed: tuple[ValidatedRange, ExpectationResult] | None = None
        self.rows = 0
        self.ranges = 0
        self.held_at = 0.0
        self._is_of_lateness = is_of_lateness
        # Of late rows: not before the next validation has had time to find more of them.
        every = 2 * file.every_seconds if is_of_lateness else 0.0
        self._resolve_after_seconds = max(file.resolve_after_seconds, every)

    def add(self, one: ValidatedRange, result: ExpectationResult) -> None:
        if result.passed:
            self.held_at = one.at
            return
        if self.failed is None or self._is_over(self.failed[0], one.at):
            self.since, self.rows, self.ranges = one.at, 0, 0
        self.failed = (one, result)
        self.rows += result.unexpected or 0
        self.ranges += 1

    def finding(self, table: str, label: str, now: float) -> Finding | None:
        if self.failed is None:
            return None
        one, result = self.failed
        if self._is_over(one, now):
            return None
        held = self.held_at > one.at
        evidence: dict[str, Fact] = {"versions": one.span, "ranges_in_a_row": self.ranges, "held_since": held}
        if result.unexpected is not None:
            evidence |= {"rows": result.unexpected, "of_rows": result.checked, "rows_in_all": self.rows}
        if result.samples:
            evidence["offsets"] = ", ".join(result.samples)
        if result.observed:
            evidence["observed"] = result.observed
        return Finding(
            cause=f"{table} {label}",
            severity=result.severity,
            what=f"{table}: {label}: {result.sentence}",
            since=self.since,
            evidence=evidence,
            runbook=RUNBOOK,
            done=f"{one.copied} rows of the range were copied to the quarantine" if one.copied else "",
        )

    def _is_over(self, failed: ValidatedRange, now: float) -> bool:
        """Whether it has held since the failure, or has nothing to hold for, and that is long ago."""
        ended = self._is_of_lateness or self.held_at > failed.at
        return ended and now - failed.at >= self._resolve_after_seconds


def _lost(ranges: Sequence[ValidatedRange]) -> Finding:
    """Return the finding of a table's ranges of which something could not be read, oldest first."""
    first = all(one.lost is not None and one.lost.is_before_first for one in ranges)
    lost = [one.lost for one in ranges if one.lost is not None and one.lost.is_before_first is first]
    offsets, rows = sum(one.offsets for one in lost), sum(one.rows for one in lost)
    what = " and ".join(part for part in (f"{offsets} offsets" if offsets else "", f"{rows} rows" if rows else "") if part)
    why = "landed before the first validation and" if first else "landed since the last validation and"
    newest = ranges[-1]
    return Finding(
        cause=f"{newest.table} not validated",
        severity=Severity.INFO if first else Severity.WARNING,
        what=f"{newest.table}: {what} {why} were not validated: their commits or files are no longer kept",
        since=ranges[0].at,
        evidence={"up_to_version": newest.last, "offsets": offsets, "rows": rows},
        runbook=RUNBOOK,
    )
