"""The findings of validation, for the alerts: written by each run, when a run died, and again as time passes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from lakebound.control.findings import Finding, found_before, read_source, replace_findings, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.inspection.validation.expectation_files import InvalidExpectationsError, expectations_path, load_expectations
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.history import history_file, read_history
from lakebound.inspection.validation.lateness import late_finding
from lakebound.inspection.validation.open_findings import RUN, failed_run, open_findings
from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.inspection.validation.waiting_file import look_what_waits, read_begun
from lakebound.settings import Settings, load_airflow_access
from lakebound.spec.pipeline import PipelineSpec

SOURCE = "validation"


def write_open_findings(
    control: ControlFolder,
    spec: PipelineSpec,
    file: ExpectationFile,
    history: Sequence[ValidatedRange],
    problems: Sequence[str] = (),
) -> None:
    """Write what stands by the record.

    Args:
        control: The pipeline's.
        spec: The pipeline.
        file: What is expected.
        history: The record, oldest first.
        problems: Why something could not be validated.
    """
    now = time.time()
    found = open_findings(history, file, _ids(spec), now=now)
    failed = found_before(read_source(control, SOURCE), [failed_run(one, now=now) for one in problems])
    write_findings(control, SOURCE, [*found, *failed])


def add_failed_run(control: ControlFolder, problem: str) -> None:
    """Write that a run could not begin, or died, beside what stands; the next run that reports takes it away."""
    before = read_source(control, SOURCE)
    others = [one for one in before.findings if one.cause != RUN] if before is not None else []
    failed = found_before(before, [failed_run(problem, now=time.time())])
    write_findings(control, SOURCE, [*others, *failed])


def look_again(control: ControlFolder, spec: PipelineSpec, settings: Settings) -> None:
    """Write what stands now, between runs: without new data no run says that something is over, or that none ran.

    Of a pipeline without a file of expectations nothing stands; as it has no runs any more, none says so. A machine without
    the folder of expectations knows nothing of them. The record may be long, so it is read only when it or the file has
    changed, or when something stands that may be over.

    Args:
        control: State folder of the pipeline; its findings of validation are replaced.
        spec: Pipeline whose expectations and tables count.
        settings: This machine's settings; they say where the file of expectations is.
    """
    before = read_source(control, SOURCE)
    try:
        file = load_expectations(spec, settings)
        expected = expectations_path(spec.pipeline, settings)
        if file is None:
            if expected.parent.is_dir():
                replace_findings(control, SOURCE, ())
            return
        # A file that was away for a moment has a new ctime: meanwhile its findings were taken back.
        changed_at = max(_changed_at(history_file(control)), expected.stat().st_ctime)
    except (FileNotFoundError, InvalidExpectationsError):
        return
    standing = before.findings if before is not None else ()
    found = [one for one in standing if one.cause == RUN]
    if not found:
        found = _late(control, spec, file, settings)
    if before is None or standing or changed_at >= before.at - 1:
        found = [*open_findings(read_history(control), file, _ids(spec), now=time.time()), *found]
    # A run that wrote meanwhile knows better.
    if read_source(control, SOURCE) == before:
        write_findings(control, SOURCE, found)


def _late(control: ControlFolder, spec: PipelineSpec, file: ExpectationFile, settings: Settings) -> list[Finding]:
    """Return that rows wait too long for their validation, with what is known of the cause."""
    if control.is_shared or _is_down(settings):
        return []
    now = time.time()
    waiting = look_what_waits(control, [table for table in _ids(spec) if file.of(table)], now)
    found = late_finding(control.pipeline, waiting, read_begun(control), file.every_seconds, now)
    return [] if found is None else [found]


def _is_down(settings: Settings) -> bool:
    """Whether this machine's own Airflow, which would validate, was stopped on purpose (``lakebound down``)."""
    was_started = (settings.home / "airflow" / "process.json").exists()
    return was_started and not settings.services_file.exists() and not load_airflow_access().url


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _ids(spec: PipelineSpec) -> list[str]:
    return [table.id for table in spec.tables]
