"""What validation found: per expectation, per range of commits, per run. Frozen values."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from lakebound.control.bounds import Moment
from lakebound.control.findings import Severity
from lakebound.frozen import FrozenRecord
from lakebound.inspection.validation.line import Due, Gap
from lakebound.ledger.intervals import Interval

MAX_SAMPLES = 5


class ExpectationResult(FrozenRecord):
    """How one expectation came out for one range.

    Attributes:
        label: The expectation's name.
        passed: Whether it held; False, too, where it could not be judged.
        checked: Rows that it was asked of; None where it is about the range as a whole.
        unexpected: Rows of these that are not as expected.
        samples: Where in Kafka a few of these are: ``topic/partition:offset``.
        observed: What was seen instead, where it is about the range as a whole.
        problem: Why it could not be judged.
        is_of_rows: Whether failing rows can be told one by one.
    """

    label: str
    severity: Severity
    passed: bool
    checked: int | None = None
    unexpected: int | None = None
    samples: tuple[str, ...] = ()
    observed: str = ""
    problem: str = ""
    is_of_rows: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, in short."""
        if self.problem:
            return f"could not be judged: {self.problem}"
        if self.unexpected is not None and self.checked:
            return f"{self.unexpected} of {self.checked} rows are not as expected"
        return f"is not as expected: {self.observed}" if self.observed else "is not as expected"


class RangeVerdict(FrozenRecord):
    """What an evaluation of one range found.

    Attributes:
        results: Each expectation's, in the file's order.
        skipped: Expectations that were not asked, with the reason.
        rows: Rows that were read.
        missing_rows: Rows of the range whose files are gone.
        result_file: The results as JSON.
        data_docs: The page for a person.
    """

    results: tuple[ExpectationResult, ...] = ()
    skipped: dict[str, str] = Field(default_factory=dict)
    rows: int = 0
    missing_rows: int = 0
    result_file: str = ""
    data_docs: str = ""

    @property
    def failures(self) -> tuple[ExpectationResult, ...]:
        """Those that failed."""
        return tuple(result for result in self.results if not result.passed)


class UnvalidatedRange(FrozenRecord):
    """Commits that could not be validated, because they can no longer be read."""

    positions: tuple[Interval, ...] = ()
    offsets: int = 0
    rows: int = 0
    is_before_first: bool = False

    @classmethod
    def of(cls, gap: Gap | None, missing_rows: int = 0) -> UnvalidatedRange | None:
        """Return what is lost of a range; None where nothing is."""
        if gap is None and not missing_rows:
            return None
        if gap is None:
            return cls(rows=missing_rows)
        return cls(positions=gap.positions, offsets=gap.offsets, rows=missing_rows, is_before_first=gap.is_before_first)


class ValidatedRange(FrozenRecord):
    """One line of the history: a range of commits was validated.

    Attributes:
        claim: Id of the claim under which it was validated.
        positions: All commits of the range.
        first: Version of its first commit that landed rows; empty where none did.
        last: Version of its last commit.
        offsets: How many offsets the table's coverage held at its end.
        from_ms: When the commit before it was made, or its first one.
        to_ms: When its last commit was made.
        at: When the verdict was there, in epoch seconds.
        copied: Rows that were copied to the quarantine.
        lost: What of it could not be read.
    """

    claim: str
    run_id: str
    table: str
    positions: tuple[Interval, ...]
    first: str = ""
    last: str = ""
    commits: int = 0
    rows: int = 0
    offsets: int = 0
    from_ms: int = 0
    to_ms: int = 0
    at: Moment = 0.0
    results: tuple[ExpectationResult, ...] = ()
    skipped: dict[str, str] = Field(default_factory=dict)
    copied: int = 0
    lost: UnvalidatedRange | None = None
    data_docs: str = ""

    @property
    def evaluated(self) -> int:
        """How many expectations were asked."""
        return len(self.results)

    @property
    def passed(self) -> int:
        """How many of them held."""
        return sum(result.passed for result in self.results)

    @property
    def span(self) -> str:
        """Its versions, for a person."""
        return self.last if self.first in ("", self.last) else f"{self.first}..{self.last}"

    @classmethod
    def of(cls, due: Due, verdict: RangeVerdict, *, claim: str, run_id: str, at: float, copied: int = 0) -> ValidatedRange:
        """Return the record of a range that was evaluated.

        Args:
            due: The commits of the range.
            verdict: What their evaluation found.
            claim: Id of the claim under which they were validated; empty when a person named the range.
            run_id: Id of the validation run.
            at: Epoch seconds at which the verdict was there.
            copied: How many rows were copied to the quarantine.
        """
        start = due.since_ms if due.since_ms is not None else due.landings[0].committed_at_ms if due.landings else 0
        return cls(
            claim=claim,
            run_id=run_id,
            table=due.table,
            positions=due.positions,
            first=due.landings[0].version if due.landings else "",
            last=due.newest.version,
            commits=len(due.landings),
            rows=verdict.rows,
            offsets=due.newest.offsets or 0,
            from_ms=start,
            to_ms=due.newest.committed_at_ms,
            at=at,
            results=verdict.results,
            skipped=verdict.skipped,
            copied=copied,
            lost=UnvalidatedRange.of(due.gap, verdict.missing_rows),
            data_docs=verdict.data_docs,
        )


class ValidationReport(FrozenRecord):
    """One run: what it validated, and what it did about it."""

    pipeline: str
    run_id: str
    started_at: float
    ended_at: float
    ranges: tuple[ValidatedRange, ...] = ()
    problems: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def evaluated(self) -> int:
        """How many expectations were asked."""
        return sum(one.evaluated for one in self.ranges)

    @property
    def passed(self) -> int:
        """How many of them held."""
        return sum(one.passed for one in self.ranges)

    @property
    def checked_rows(self) -> int:
        """How many rows expectations about rows were asked of; a row counts once for each of them."""
        return sum(result.checked or 0 for result in self._of_rows)

    @property
    def right_rows(self) -> int:
        """How many of these were as expected."""
        return sum((result.checked or 0) - (result.unexpected or 0) for result in self._of_rows)

    @property
    def _of_rows(self) -> Iterator[ExpectationResult]:
        return (result for one in self.ranges for result in one.results if result.is_of_rows)
