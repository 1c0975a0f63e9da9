"""What a round of alerts looks at itself: files of pipelines, folders of state, Airflow. One that fails hides no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from lakebound.alerts import airflow_findings, pipeline_file_findings
from lakebound.alerts.airflow_findings import PausedFacts
from lakebound.alerts.lateness import look_whether_health_is_late, take_back_late
from lakebound.alerts.look import look_at
from lakebound.alerts.round import watch_folder
from lakebound.control.airflow_health import AirflowHealth
from lakebound.control.applications import app_is_alive
from lakebound.control.desired import read_desired
from lakebound.control.findings import Finding, read_source, replace_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import read_submission
from lakebound.local.airflow_view import airflow_health
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines
from lakebound.spec.pipeline import PipelineSpec

_WATCH_IS_GONE_SECONDS = 900.0
"""Age from which what the watch found of Airflow is looked at by others: as long as it runs, it looks in each round."""


def look_at_files(settings: Settings, loaded: LoadedPipelines) -> list[str]:
    """Write down what the pipelines' files and folders of state say; return what could not be looked at.

    Args:
        settings: This machine's.
        loaded: What the files declare.
    """
    problems: list[str] = []
    for spec in loaded.specs.values():
        problems += _trying(spec.pipeline, partial(look_at, spec, settings))
        problems += _trying(spec.pipeline, partial(take_back_late, ControlFolder(settings.home, spec.pipeline)))
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


def look_again_at_airflow(settings: Settings, specs: Iterable[PipelineSpec]) -> list[str]:
    """Look at Airflow where something stands that the watch found of it, and the watch has not looked for long.

    Else nobody would take that back. Apart from this, Airflow does not look at itself: a worker may not know or reach its
    address. Then it is known only that this very task was scheduled, and the rest stays as it was found.

    Args:
        settings: This machine's.
        specs: The pipelines.
    """
    chosen, now = list(specs), time.time()
    controls = (watch_folder(settings), *(ControlFolder(settings.home, spec.pipeline) for spec in chosen))
    looks = [look for control in controls if (look := read_source(control, airflow_findings.SOURCE)) is not None]
    is_left = any(look.findings and now - look.at > _WATCH_IS_GONE_SECONDS for look in looks)
    if not is_left:
        return []
    health = airflow_health(settings)
    if health is None or health.problem is not None:
        return _trying("Airflow", partial(_take_back_what_this_task_disproves, watch_folder(settings)))
    return look_at_airflow(settings, chosen)


def _take_back_what_this_task_disproves(everything: ControlFolder) -> None:
    before = read_source(everything, airflow_findings.SOURCE)
    if before is not None:
        stays = [one for one in before.findings if one.cause not in airflow_findings.DISPROVED_BY_A_TASK]
        replace_findings(everything, airflow_findings.SOURCE, stays)


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
        return [f"{what} could not be checked: {redacted(exc, NOT_SHOWN)}"]
