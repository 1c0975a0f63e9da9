"""That the doctor does not look at the pipelines, at any or at one: taken back when it has looked, whoever had it look."""

from __future__ import annotations

import time

from lakebound.alerts.doctor_findings import SOURCE as DOCTOR
from lakebound.alerts.round import WATCH, watch_folder
from lakebound.control.applications import pipelines_with_state
from lakebound.control.findings import Finding, Severity, read_source, replace_findings, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from lakebound.spec.load import path_of
from lakebound.tables.declared import owned_pipelines

LATE = "doctor_deadline"
"""Source of the finding that the doctor's look at a pipeline did not end."""


def note_health_late(settings: Settings, minutes: float) -> None:
    """Record which pipelines were not checked for this time, or that none was; it stays until they are.

    Airflow counts a run that failed as late, too: of a pipeline at which the doctor has looked since, nothing is said.

    Args:
        settings: This machine's.
        minutes: Within which each pipeline should have been checked.
    """
    since = time.time() - minutes * 60
    if _newest_look(settings) > since:
        for pipeline in [name for name in owned_pipelines(settings).specs if is_late(settings, name, since)]:
            why = (
                f"the doctor did not finish checking {pipeline} within the last {minutes:g} minutes: its task in the DAG "
                f"checkpoint_health failed, hangs or was not started; the log of the task says more"
            )
            write_late(settings, pipeline, why)
        return
    found = Finding(
        cause="health-late",
        severity=Severity.CRITICAL,
        what=f"checkpoint_health did not finish within {minutes:g} minutes: the pipelines are not being watched",
        since=time.time(),
        evidence={"dag_id": "checkpoint_health"},
        runbook="health-late",
    )
    write_findings(watch_folder(settings), WATCH, [found])


def look_whether_health_is_late(settings: Settings) -> None:
    """Take back that no pipeline is checked once the doctor has looked at one again."""
    folder = watch_folder(settings)
    before, newest = read_source(folder, WATCH), _newest_look(settings)
    if before is None:
        return
    write_findings(folder, WATCH, [finding for finding in before.findings if finding.since >= newest])


def is_late(settings: Settings, pipeline: str, since: float) -> bool:
    """Whether the doctor should have looked at a pipeline since then, and has not.

    Args:
        settings: This machine's.
        pipeline: Its name.
        since: Epoch seconds; a pipeline that the doctor never looked at and that is newer is not late.
    """
    look = read_source(ControlFolder(settings.home, pipeline), DOCTOR)
    if look is not None:
        return look.at <= since
    try:
        return path_of(pipeline, settings).stat().st_mtime <= since
    except FileNotFoundError:
        return False  # it was taken away this moment


def write_late(settings: Settings, pipeline: str, why: str) -> None:
    """Write down that the doctor's look at a pipeline did not end. It is taken back when the doctor has looked, by whomever.

    Args:
        settings: This machine's.
        pipeline: Its name.
        why: A sentence of what happened.

    Raises:
        OSError: The folder cannot be written.
    """
    found = Finding(
        cause="look-late",
        severity=Severity.WARNING,
        what=f"{why}; the doctor's previous findings still apply",
        since=time.time(),
        runbook="health-late",
    )
    replace_findings(ControlFolder(settings.home, pipeline), LATE, (found,))


def take_back_late(control: ControlFolder) -> None:
    """Take back that the doctor's look at a pipeline did not end where it has looked since.

    Args:
        control: State folder of the pipeline.
    """
    late, look = read_source(control, LATE), read_source(control, DOCTOR)
    if late is not None and look is not None and look.at > late.at:
        replace_findings(control, LATE, ())


def _newest_look(settings: Settings) -> float:
    """Return when the doctor last looked at any pipeline, in epoch seconds."""
    looks = [read_source(control, DOCTOR) for control in pipelines_with_state(settings)]
    return max((look.at for look in looks if look is not None), default=0.0)
