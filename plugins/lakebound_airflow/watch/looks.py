"""What a round of the watch looks at itself: files of pipelines, folders of state, Airflow. One that fails hides no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from lakebound.alerts import airflow_findings, pipeline_file_findings
from lakebound.alerts.airflow_findings import PausedFacts
from lakebound.alerts.doctor_findings import SOURCE as DOCTOR
from lakebound.alerts.doctor_processes import LOOK_SECONDS
from lakebound.alerts.look import look_at
from lakebound.alerts.round import look_whether_health_is_late, watch_folder
from lakebound.control.airflow_health import AirflowHealth
from lakebound.control.applications import app_is_alive
from lakebound.control.desired import read_desired
from lakebound.control.findings import Finding, Severity, found_before, read_source, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import read_submission
from lakebound.local.airflow_view import airflow_health
from lakebound.redaction import redacted
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines
from lakebound.spec.pipeline import PipelineSpec

LATE = "doctor_deadline"
"""Source of the finding that the doctor's look at a pipeline did not end."""


def look_at_files(settings: Settings, loaded: LoadedPipelines) -> list[str]:
    """Write down what the pipelines' files and folders of state say; return what could not be looked at.

    Args:
        settings: This machine's.
        loaded: What the files declare.
    """
    problems: list[str] = []
    for spec in loaded.specs.values():
        problems += _trying(spec.pipeline, partial(look_at, spec, settings))
        problems += _trying(spec.pipeline, partial(_take_back_late, ControlFolder(settings.home, spec.pipeline)))
    everything, now = watch_folder(settings), time.time()

    def look_at_pipeline_files() -> None:
        replace_findings(everything, pipeline_file_findings.SOURCE, pipeline_file_findings.pipeline_file_findings(loaded, now))

    problems += _trying("the pipelines' files", look_at_pipeline_files)
    problems += _trying("the last look of the doctor", partial(look_whether_health_is_late, settings))
    return problems


def look_at_airflow(settings: Settings, specs: Iterable[PipelineSpec]) -> list[str]:
    """Write down what is wrong with Airflow, and which DAGs are paused that should not be; return what could not be looked at.

    Args:
        settings: This machine's.
        specs: The pipelines.
    """
    health: AirflowHealth | None = None

    def look() -> None:
        nonlocal health
        health = airflow_health(settings)
        found = airflow_findings.airflow_findings(health, time.time())
        replace_findings(watch_folder(settings), airflow_findings.SOURCE, found)

    problems = _trying("Airflow", look)
    if problems:
        return problems
    for spec in specs:
        control = ControlFolder(settings.home, spec.pipeline)
        if control.exists():
            problems += _trying(spec.pipeline, partial(_look_at_dag, control, health))
    return problems


def write_late(settings: Settings, pipeline: str) -> None:
    """Write down that the doctor's look at a pipeline did not end. It is taken back when the doctor has looked, by whomever.

    Args:
        settings: This machine's.
        pipeline: Its name.

    Raises:
        OSError: The folder cannot be written.
    """
    found = Finding(
        cause="look-late",
        severity=Severity.WARNING,
        what=f"the doctor did not finish checking {pipeline} within {LOOK_SECONDS:g} s and was stopped: a table, a catalog or "
        f"a broker does not answer; the doctor's previous findings still apply",
        since=time.time(),
        runbook="health-late",
    )
    replace_findings(ControlFolder(settings.home, pipeline), LATE, (found,))


def _take_back_late(control: ControlFolder) -> None:
    late, look = read_source(control, LATE), read_source(control, DOCTOR)
    if late is not None and look is not None and look.at > late.at:
        replace_findings(control, LATE, ())


def replace_findings(control: ControlFolder, source: str, found: Iterable[Finding]) -> None:
    """Write what a source of the watch found; nothing where it never found anything.

    Raises:
        OSError: The folder cannot be written.
    """
    before, findings = read_source(control, source), tuple(found)
    if findings or before is not None:
        write_findings(control, source, found_before(before, findings))


def _look_at_dag(control: ControlFolder, health: AirflowHealth | None) -> None:
    found: tuple[Finding, ...] | None = ()
    if health is not None:
        desired = read_desired(control)
        was_started = desired.since > 0 or read_submission(control) is not None
        facts = PausedFacts(is_wanted=desired.wants_app and was_started, lives=app_is_alive(control))
        found = airflow_findings.paused_findings(control.pipeline, health, facts, time.time())
    if found is not None:
        replace_findings(control, airflow_findings.SOURCE, found)


def _trying(what: str, look: Callable[[], list[str] | None]) -> list[str]:
    """Look, and return what could not be looked at."""
    try:
        return look() or []
    except Exception as exc:
        return [f"{what} could not be checked: {redacted(exc)}"]
