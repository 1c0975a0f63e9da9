"""A run's report as a file, for whoever started the run."""

from __future__ import annotations

from pathlib import Path

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.inspection.validation.run import result_folder
from lakebound.inspection.validation.verdict import ValidationReport


def write_report(control: ControlFolder, report: ValidationReport) -> None:
    """Keep the report with the run's results."""
    write_json(_path(control, report.run_id), report.model_dump(mode="json"))


def read_report(control: ControlFolder, run_id: str) -> ValidationReport | None:
    """Return a run's report; None where it left none."""
    body = read_json(_path(control, run_id), None)
    return None if body is None else ValidationReport.model_validate(body)


def _path(control: ControlFolder, run_id: str) -> Path:
    return result_folder(control, run_id) / "report.json"
