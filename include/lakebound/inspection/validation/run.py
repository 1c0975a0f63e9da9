"""One validation run: each table's due ranges, claimed, evaluated, acted upon and recorded. Who evaluates is told."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakebound.control.applications import app_is_alive
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.findings import Severity
from lakebound.control.folder import ControlFolder, write_json
from lakebound.errors import LakeboundError
from lakebound.inspection.validation.expectations import Expectation, ExpectationFile
from lakebound.inspection.validation.findings_file import write_open_findings
from lakebound.inspection.validation.history import (
    Claim,
    append,
    done_of,
    drop_claim,
    folder,
    only_run,
    open_claim,
    read_history,
    write_claim,
)
from lakebound.inspection.validation.landed_files import LandedFile, LineReader, files_there, line_reader
from lakebound.inspection.validation.line import Due, ValidatedSoFar, due
from lakebound.inspection.validation.verdict import ExpectationResult, RangeVerdict, ValidatedRange, ValidationReport
from lakebound.ledger.intervals import merge
from lakebound.redaction import redacted
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

BY = "lakebound validate"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """One range of a table's commits, to be evaluated.

    Attributes:
        table: The table.
        claim: Id of the range.
        due: Its commits.
        files: The files that these added and that are there.
        missing_rows: Rows of files that are gone.
        expectations: What is expected.
        past: Ranges of the table that were validated before.
        reader: Of the table's earlier commits.
    """

    table: TableSpec
    claim: str
    due: Due
    files: tuple[LandedFile, ...]
    missing_rows: int
    expectations: tuple[Expectation, ...]
    past: tuple[ValidatedRange, ...]
    reader: LineReader

    @property
    def began_ms(self) -> int | None:
        """When the table began, as far as is known: an older record waited in its topic before anybody was to land it."""
        return self.past[0].from_ms if self.past else self.due.oldest_ms


class Evaluator(Protocol):
    """Reads rows and says whether they are as expected."""

    def evaluate(self, batch: Batch) -> RangeVerdict:
        """Return the verdict.

        Args:
            batch: Files of the range, and what is expected of their rows.
        """

    def copy_failing(self, batch: Batch, failures: Sequence[ExpectationResult]) -> int:
        """Copy the rows of the batch that was evaluated last and failed to the quarantine, once; how many these are.

        Args:
            batch: The batch that was evaluated last.
            failures: Results of the expectations that failed.
        """


@dataclass
class _Run:
    spec: PipelineSpec
    places: Places
    file: ExpectationFile
    evaluator: Evaluator
    run_id: str
    is_stopping: Callable[[], bool]
    tell: Callable[[ValidatedRange], None]
    stopped: str = ""

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.places.home, self.spec.pipeline, self.places.state)


def run_validation(
    spec: PipelineSpec,
    places: Places,
    file: ExpectationFile,
    evaluator: Evaluator,
    *,
    run_id: str,
    is_stopping: Callable[[], bool] = lambda: False,
    tell: Callable[[ValidatedRange], None] = lambda one: None,
) -> ValidationReport:
    """Validate what is due of every table, and return what was found; findings and summary say it, too.

    A table that cannot be validated keeps none of the others from it.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        file: What is expected of them.
        evaluator: Who reads rows.
        run_id: Names the run.
        is_stopping: Whether to end before the next range.
        tell: Called with each range.

    Raises:
        ValidationRunsError: Another run is under way.
    """
    run = _Run(spec, places, file, evaluator, run_id, is_stopping, tell)
    started_at = time.time()
    with only_run(run.control):
        history = read_history(run.control)
        before, problems = len(history), list[str]()
        for table in (one for one in spec.tables if file.of(one.id)):
            try:
                _validate_table(run, table, history)
            except LakeboundError as exc:
                problems.append(f"{table.id}: {exc}")
            except Exception as exc:
                _log.exception("validation of %s failed", table.id)
                problems.append(f"{table.id}: {redacted(exc)}")
        report = ValidationReport(
            pipeline=spec.pipeline,
            run_id=run_id,
            started_at=started_at,
            ended_at=time.time(),
            ranges=tuple(history[before:]),
            problems=tuple(problems),
            stopped=run.stopped,
        )
        write_open_findings(run.control, spec, file, history, problems[:1])
        write_summary(run.control, report)
    return report


def next_due(
    table: TableSpec, places: Places, done: ValidatedSoFar, *, max_rows: int, claim: Claim | None = None
) -> tuple[Due, LineReader] | None:
    """Return what is to be validated next of a table, and who reads its commits; None where nothing is.

    Args:
        table: The table.
        places: Where it is; they may be read-only.
        done: What was validated of it.
        max_rows: Of one range.
        claim: A range that was begun and not ended.
    """
    reader = line_reader(table, places)
    if reader is None:
        return None
    line = reader.line(done.has)
    found = due(line, done, max_rows=max_rows, within=claim.positions if claim is not None else None)
    if found is None:
        return None
    return (found if claim is None else replace(found, gap=claim.gap)), reader


def write_summary(control: ControlFolder, report: ValidationReport) -> None:
    """Keep how many rows the last run that judged any found right, for objectives and pages."""
    if not report.checked_rows:
        return
    last = {one.table: one.last for one in report.ranges}
    body = {
        "run_id": report.run_id,
        "at": report.ended_at,
        "evaluated": report.checked_rows,
        "passed": report.right_rows,
        "rows": sum(one.rows for one in report.ranges),
        "last_versions": last,
        "data_docs": [one.data_docs for one in report.ranges if one.data_docs],
    }
    write_json(folder(control) / "summary.json", body)


def result_folder(control: ControlFolder, run_id: str) -> Path:
    """Return where a run's results and pages go."""
    return folder(control) / "runs" / run_id


def _validate_table(run: _Run, table: TableSpec, history: list[ValidatedRange]) -> None:
    """Validate what is due of a table now; what lands meanwhile is the next run's."""
    more = True
    while more and not run.is_stopping():
        claim = open_claim(run.control, table.id, history)
        done = done_of(table.id, history)
        found = next_due(table, run.places, done, max_rows=run.file.max_rows_per_range, claim=claim)
        if found is None:
            # What was claimed does not stand any more: it was rewound.
            drop_claim(run.control, table.id)
            more = claim is not None
            continue
        one, reader = found
        more = one.is_cut or claim is not None
        record = _validate_range(run, table, one, reader, claim or _claim(run, one), history)
        append(run.control, record)
        history.append(record)
        drop_claim(run.control, table.id)
        run.tell(record)


def _claim(run: _Run, found: Due) -> Claim:
    gap = found.gap
    claim = Claim(
        id=str(uuid.uuid4()),
        run_id=run.run_id,
        table=found.table,
        positions=found.positions,
        holes=gap.positions if gap else (),
        lost_offsets=gap.offsets if gap else 0,
        is_before_first=gap.is_before_first if gap else False,
    )
    write_claim(run.control, claim)
    return claim


def _validate_range(
    run: _Run, table: TableSpec, found: Due, reader: LineReader, claim: Claim, history: Sequence[ValidatedRange]
) -> ValidatedRange:
    past = tuple(one for one in history if one.table == table.id)
    batch = make_batch(table, found, reader, run.file.of(table.id), claim=claim.id, past=past)
    verdict = run.evaluator.evaluate(batch) if batch.files else RangeVerdict(missing_rows=batch.missing_rows)
    copied = _act(run, batch, verdict)
    holes = claim.gap.positions if claim.gap else ()
    whole = replace(found, positions=merge((*found.positions, *holes)))
    return ValidatedRange.of(whole, verdict, claim=claim.id, run_id=run.run_id, at=time.time(), copied=copied)


def make_batch(
    table: TableSpec,
    found: Due,
    reader: LineReader,
    expectations: tuple[Expectation, ...],
    *,
    claim: str,
    past: tuple[ValidatedRange, ...] = (),
) -> Batch:
    """Return a range with the files of its commits; rows of files that are gone are counted.

    Args:
        table: Table whose rows are evaluated.
        found: Commits of the range.
        reader: Finds the data files that commits of this table added.
        expectations: What is expected of the rows.
        claim: Id under which the range is validated; it marks the copies in the quarantine.
        past: Ranges of the table that were validated before, oldest first, for expectations that compare with them.
    """
    there = tuple(files_there(reader.files(found.landings)))
    readable = sum(file.rows or 0 for file in there)
    known = all(file.rows is not None for file in there)
    missing = max(0, found.rows - readable) if known else 0
    return Batch(table, claim, found, there, missing, expectations, past, reader)


def _act(run: _Run, batch: Batch, verdict: RangeVerdict) -> int:
    failures = [one for one in verdict.failures if one.severity is not Severity.INFO and not one.problem]
    if run.file.on_failure == "quarantine":
        # The tables of a pipeline hold the same records: those of the first table are copied.
        rows = [one for one in failures if one.is_of_rows and one.unexpected]
        is_first = batch.table == next(table for table in run.spec.tables if run.file.of(table.id))
        return run.evaluator.copy_failing(batch, rows) if rows and is_first else 0
    critical = [one for one in failures if one.severity is Severity.CRITICAL]
    if run.file.on_failure == "stop" and critical and not run.stopped:
        run.stopped = _stop(run, batch, critical)
    return 0


def _stop(run: _Run, batch: Batch, critical: Sequence[ExpectationResult]) -> str:
    """Have the stream end after its batch in flight, unless somebody has stopped or held it already."""
    desired = read_desired(run.control)
    reason = f"validation of {batch.table.id}: {critical[0].label}: {critical[0].sentence}"
    if desired.state != "running":
        return ""
    change_desired(run.control, "stopped", freshness=desired.freshness, until=desired.until, reason=reason, by=BY)
    lives = "lives" if app_is_alive(run.control) else "does not live"
    _log.warning("pipeline %s is stopped: %s; its application %s", run.spec.pipeline, reason, lives)
    return reason
