"""Validation of a range that a person names: it says what it finds, and leaves record, findings and records alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.landed_files import line_reader
from lakebound.inspection.validation.line import Due, LineCommit
from lakebound.inspection.validation.run import Evaluator, make_batch
from lakebound.inspection.validation.verdict import RangeVerdict, ValidatedRange, ValidationReport
from lakebound.ledger.intervals import merge
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places


class NoSuchRangeError(LakeboundError):
    """There are no commits between the versions that were named."""

    def __init__(self, table: str, first: str | None, last: str | None) -> None:
        super().__init__(
            f"table {table}: nothing landed from version {first or 'the first'} to version {last or 'the newest'}, or these "
            f"versions are no longer kept; `lakebound ledger` lists the versions"
        )


class ByHand(Frozen):
    """What a person asks to be validated.

    Attributes:
        tables: Ids of the tables.
        suite: Only this suite; None: all.
        first: Version of the first commit; None: the oldest that is kept.
        last: Version of the last commit; None: the newest.
    """

    tables: tuple[str, ...]
    suite: str | None = None
    first: str | None = None
    last: str | None = None


def validate_by_hand(
    spec: PipelineSpec,
    places: Places,
    file: ExpectationFile,
    evaluator: Evaluator,
    asked: ByHand,
    *,
    run_id: str,
    tell: Callable[[ValidatedRange], None] = lambda one: None,
) -> ValidationReport:
    """Return what is found.

    Args:
        spec: Pipeline whose tables are validated.
        places: Where this machine keeps tables and state folders.
        file: Expectations of the pipeline, table by table.
        evaluator: Reads the rows of a range and judges them.
        asked: Tables, suite and versions that the person named.
        run_id: Id of the validation application; it names the run in the report.
        tell: Called with the result of each table as soon as it is there.

    Raises:
        NoSuchRangeError: Nothing landed there.
    """
    started_at = time.time()
    ranges = []
    for table in spec.tables:
        if table.id in asked.tables:
            one = _validate(table, places, file, evaluator, asked, run_id)
            ranges.append(one)
            tell(one)
    return ValidationReport(
        pipeline=spec.pipeline, run_id=run_id, started_at=started_at, ended_at=time.time(), ranges=tuple(ranges)
    )


def _validate(
    table: TableSpec, places: Places, file: ExpectationFile, evaluator: Evaluator, asked: ByHand, run_id: str
) -> ValidatedRange:
    reader = line_reader(table, places)
    line = reader.line(lambda position: False).steps if reader is not None else ()
    steps = between(line, asked.first, asked.last)
    landings = tuple(step for step in steps if step.lands)
    if reader is None or not landings:
        raise NoSuchRangeError(table.id, asked.first, asked.last)
    positions = merge((step.position, step.position + 1) for step in steps)
    due = Due(table.id, positions, landings, steps[-1], oldest_ms=line[-1].committed_at_ms)
    batch = make_batch(table, due, reader, file.of(table.id, asked.suite), claim=run_id)
    verdict = evaluator.evaluate(batch) if batch.files else RangeVerdict(missing_rows=batch.missing_rows)
    return ValidatedRange.of(due, verdict, claim="", run_id=run_id, at=time.time())


def between(newest_first: tuple[LineCommit, ...], first: str | None, last: str | None) -> tuple[LineCommit, ...]:
    """Return the commits from one version to another, both included, oldest first; none where either is not on the line.

    Args:
        newest_first: The line of commits.
        first: Version of the oldest one; None for the oldest of the line.
        last: Version of the newest one; None for the newest of the line.
    """
    steps = tuple(reversed(newest_first))
    versions = [step.version for step in steps]
    if any(version is not None and version not in versions for version in (first, last)):
        return ()
    start = versions.index(first) if first is not None else 0
    end = versions.index(last) + 1 if last is not None else len(steps)
    return steps[start:end]
