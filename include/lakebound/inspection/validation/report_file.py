"""A run's report as a file, for whoever started the run; older runs go."""

from __future__ import annotations

import shutil
from pathlib import Path

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.inspection.validation.history import folder
from lakebound.inspection.validation.run import result_folder
from lakebound.inspection.validation.verdict import ValidationReport


def write_report(control: ControlFolder, report: ValidationReport) -> None:
    """Keep the report with the run's results."""
    write_json(_path(control, report.run_id), report.model_dump(mode="json"))


def read_report(control: ControlFolder, run_id: str) -> ValidationReport | None:
    """Return a run's report; None where it left none."""
    body = read_json(_path(control, run_id), None)
    return None if body is None else ValidationReport.model_validate(body)


def remove_older_runs(control: ControlFolder, keep: int) -> None:
    """Delete the results and pages of all but the newest runs."""
    runs = folder(control) / "runs"
    if not runs.is_dir():
        return
    newest_first = sorted((one for one in runs.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in newest_first[keep:]:
        shutil.rmtree(old, ignore_errors=True)


def _path(control: ControlFolder, run_id: str) -> Path:
    return result_folder(control, run_id) / "report.json"
