"""What is wrong at this moment, from the history of validated ranges. Pure.

An expectation that failed is a finding until it has held for some time: one good minute between two bad ones ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakebound.findings import Fact, Finding, Severity
from lakebound.validation.expectations import ExpectationFile
from lakebound.validation.verdict import ExpectationResult, ValidatedRange

RUNBOOK = "validation-failed"


def open_findings(history: Sequence[ValidatedRange], file: ExpectationFile, *, now: float, new_from: int = 0) -> list[Finding]:
    """Return the findings that stand.

    Args:
        history: The record, oldest first.
        file: What is expected today; an expectation that is no longer in it has no finding.
        now: Epoch seconds.
        new_from: Index in the history of the first range of this run: what these could not read is told.
    """
    labels = {one.label for one in file.expectations}
    streaks: dict[tuple[str, str], _Streak] = {}
    for one in history:
        for result in one.results:
            if result.label in labels:
                streaks.setdefault((one.table, result.label), _Streak(file.resolve_after_seconds)).add(one, result)
    found = [
        finding
        for (table, label), streak in sorted(streaks.items())
        if (finding := streak.finding(table, label, now)) is not None
    ]
    return [*found, *_lost(history[new_from:])]


def failed_run(problem: str, *, now: float) -> Finding:
    """Return the finding that nothing could be validated."""
    return Finding(
        cause="run",
        severity=Severity.WARNING,
        what=f"validation did not run: {problem}",
        since=now,
        runbook=RUNBOOK,
    )


class _Streak:
    """An expectation's failures in a row: apart by less than the time after which a finding is over.

    Args:
        resolve_after_seconds: That time.
    """

    def __init__(self, resolve_after_seconds: float) -> None:
        self.since = 0.0
        self.failed: tuple[ValidatedRange, ExpectationResult] | None = None
        self.rows = 0
        self.ranges = 0
        self.held_at = 0.0
        self._resolve_after_seconds = resolve_after_seconds

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
        """Whether it has held since the failure, and that is long ago."""
        return self.held_at > failed.at and now - failed.at >= self._resolve_after_seconds


def _lost(ranges: Sequence[ValidatedRange]) -> Iterator[Finding]:
    for one in ranges:
        if one.lost is None:
            continue
        first = one.lost.is_before_first
        parts = [f"{one.lost.offsets} offsets" if one.lost.offsets else "", f"{one.lost.rows} rows" if one.lost.rows else ""]
        what = " and ".join(part for part in parts if part)
        why = "landed before the first validation and" if first else "landed since the last validation and"
        yield Finding(
            cause=f"{one.table} not validated",
            severity=Severity.INFO if first else Severity.WARNING,
            what=f"{one.table}: {what} {why} were not validated: their commits or files are no longer kept",
            since=one.at,
            evidence={"up_to_version": one.last, "offsets": one.lost.offsets, "rows": one.lost.rows},
            runbook=RUNBOOK,
        )
