"""Looks at a pipeline's folder of state, and writes down what is wrong by it: no table, no Kafka, no JVM is asked."""

from __future__ import annotations

import time
from collections.abc import Callable

from lakebound.alerts import incident_findings, maintenance_findings, objectives, stream_findings
from lakebound.control.applications import app_is_alive, last_application, submission_is_alive
from lakebound.control.desired import read_desired
from lakebound.control.findings import Finding, found_before, read_source, write_findings
from lakebound.control.folder import ControlFolder, modified_at
from lakebound.control.incidents import read_incidents
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.summaries import read_proof, read_validation
from lakebound.inspection.validation import findings_file
from lakebound.inspection.validation.expectation_files import expectations_path
from lakebound.operations.maintenance.past_reading import read_runs
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

APPLICATION = "application"


def look_at(spec: PipelineSpec, settings: Settings) -> list[str]:
    """Write the findings of every source that needs files alone; return what could not be looked at, a line each.

    A source that could not look says nothing: the findings that were read before still apply.
    """
    control = ControlFolder(settings.home, spec.pipeline)
    if not control.exists():
        return []
    problems: list[str] = []
    looks: tuple[tuple[str, Callable[[], object]], ...] = (
        (stream_findings.SOURCE, lambda: _events(control)),
        (APPLICATION, lambda: _application(control)),
        (incident_findings.SOURCE, lambda: _incidents(control)),
        (maintenance_findings.SOURCE, lambda: _maintenance(control)),
        (findings_file.SOURCE, lambda: findings_file.look_again(control, spec, settings)),
        (objectives.SOURCE, lambda: _objectives(spec, control, settings)),
    )
    for source, look in looks:
        try:
            look()
        except (OSError, ValueError) as exc:
            problems.append(f"{spec.pipeline}: {source} could not be checked: {redacted(exc, NOT_SHOWN)}")
    return problems


def _events(control: ControlFolder) -> None:
    submission = last_application(control)
    # Whether it lives is asked before its outcome is read: it writes that before it ends.
    lives = submission is None or submission_is_alive(control, submission) or app_is_alive(control)
    facts = stream_findings.StreamFacts(
        desired=read_desired(control),
        progress=read_progress(control),
        outcome=read_outcome(control, submission.app_id) if submission is not None else None,
        dead=None if lives else submission,
    )
    stream_findings.look_again(control, facts, time.time())


def _application(control: ControlFolder) -> None:
    found = stream_findings.waiting(control.pipeline, read_progress(control), time.time())
    _write(control, APPLICATION, found if read_desired(control).wants_app else ())


def _incidents(control: ControlFolder) -> None:
    before = read_source(control, incident_findings.SOURCE)
    found = incident_findings.incident_findings(read_incidents(control), before.at if before else None, time.time())
    write_findings(control, incident_findings.SOURCE, found)


def _maintenance(control: ControlFolder) -> None:
    """The record of runs may be long, so it is read only when it has changed."""
    before = read_source(control, maintenance_findings.SOURCE)
    try:
        changed_at = modified_at(control.maintenance_history)
    except FileNotFoundError:
        return
    if before is not None and before.findings == () and changed_at < before.at - 1:
        write_findings(control, maintenance_findings.SOURCE, ())
        return
    now = time.time()
    write_findings(control, maintenance_findings.SOURCE, maintenance_findings.maintenance_findings(read_runs(control), now))


def _objectives(spec: PipelineSpec, control: ControlFolder, settings: Settings) -> None:
    progress = read_progress(control)
    # The last validation of a pipeline of which nothing is expected any more stays the last one for ever.
    is_validated = expectations_path(spec.pipeline, settings).is_file()
    facts = objectives.ObjectiveFacts(
        desired=read_desired(control),
        progress=progress,
        outcome=read_outcome(control, progress.app_id) if progress is not None else None,
        proof=read_proof(control),
        validation=read_validation(control) if is_validated else None,
    )
    _write(control, objectives.SOURCE, objectives.objective_findings(spec.objectives, facts, time.time()))


def _write(control: ControlFolder, source: str, found: tuple[Finding, ...]) -> None:
    write_findings(control, source, found_before(read_source(control, source), found))
