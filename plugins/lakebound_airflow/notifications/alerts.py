"""Tells people, by the channels of ``include/alerts.yaml``; without that file by the connection ``lakebound_webhook``, if any.

Everything that is told goes one way: somebody writes a finding (``lakebound.control.findings``), and a round
(``lakebound.alerts``) makes messages of what changed. The DAG ``alerts`` runs a round every minute. What must be known sooner,
such as a stall, is written down here by the task that saw it, which runs a round at once; rounds keep each other from telling
anything twice.

The webhook's body is JSON: ``pipeline``, ``kind`` (opened, worsened, reminder, resolved), ``verdict`` (stalled, failed,
incident, refused, crash_loop, unwell, health_late, or the source that found it; resolved), ``severity``, ``reason``,
``runbook``, ``app_id``, ``dag_id``, ``run_id``, ``log_url``, ``at`` (epoch seconds), ``id``, and each alert in ``alerts``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any, Literal

import structlog

from lakebound.alerts.lateness import note_health_late
from lakebound.alerts.load import InvalidAlertsError, alerts_file, load_alerts
from lakebound.alerts.outbox import Send
from lakebound.alerts.round import RoundReport, run_round
from lakebound.alerts.stream_findings import add_event, event
from lakebound.control.folder import ControlFolder
from lakebound.control.private_files import make_private_folder, open_private
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings, load_settings

StreamVerdict = Literal["stalled", "failed", "incident", "refused", "crash_loop"]

RUNBOOKS: Mapping[StreamVerdict, str] = {
    "stalled": "stall",
    "failed": "application-dead",
    "incident": "application-dead",
    "refused": "refused",
    "crash_loop": "crash-loop",
}
"""The page of an alert that names none of its own."""

log = structlog.get_logger(__name__)


def alert(
    context: Mapping[str, Any],
    control: ControlFolder,
    verdict: StreamVerdict,
    reason: str,
    app_id: str | None = None,
    *,
    runbook: str | None = None,
) -> None:
    """Write down what happened, and tell it at once. Never raises: a broken channel must not hide what it was called for.

    Args:
        context: Airflow's context of the task that calls.
        control: State folder of the pipeline.
        verdict: What happened; it decides the severity.
        reason: One sentence on what happened.
        app_id: The application that it happened to; None when there was none.
        runbook: Name of the page in ``include/runbooks``, without its ending; None takes the page of the verdict.
    """
    ti = context["ti"]
    facts = {"app_id": app_id, "dag_id": ti.dag_id, "run_id": ti.run_id, "log_url": getattr(ti, "log_url", None)}
    page, now = runbook or RUNBOOKS[verdict], time.time()
    record = {"pipeline": control.pipeline, "verdict": verdict, "reason": reason, "runbook": page, **facts, "at": now}
    try:
        with contextlib.suppress(OSError):  # a disk that is full keeps nobody from being told
            record_incident(control, record)
        add_event(control, event(control.pipeline, verdict, reason, runbook=page, now=now, facts=facts))
        tell(load_settings())
    except Exception as exc:
        # The class alone: the text of an error from below may hold an address.
        log.error("the alert was not sent", verdict=verdict, error_class=type(exc).__name__)


def tell(settings: Settings, send: Send | None = None) -> RoundReport:
    """Run a round of alerts, and say in the log how it went.

    Args:
        settings: This machine's.
        send: Delivers one message by one channel; None: as Airflow's tasks do.
    """
    if send is None:
        # The notifiers take half a second to import.
        from lakebound_airflow.notifications.channels import sender

        send = sender(_runbooks(settings))
    report = run_round(settings, send)
    for message in report.said:
        log.info("alert", kind=message.kind.value, pipeline=message.pipeline, id=message.id, what=message.alerts[0].what)
    for channel, message_id in report.delivered.sent:
        log.info("alert delivered", channel=channel, id=message_id)
    for channel, problem in report.delivered.failed:
        log.warning("alert not delivered; it is sent again later", channel=channel, problem=problem)
    for channel, message_id, problem in report.delivered.given_up:
        log.error("alert dropped", channel=channel, id=message_id, problem=problem)
    if report.removed.files:
        log.info("old files removed", files=report.removed.files, bytes=report.removed.bytes)
    for line in report.problems:
        log.error(line)
    return report


def report_last_day(settings: Settings) -> list[str]:
    """Make the daily report where it is due, for the next round to send; return why it could not be made."""
    from lakebound.report.daily import report_if_due

    try:
        report = report_if_due(settings, time.time())
    except Exception as exc:
        return [f"the daily report could not be made; it is tried again: {redacted(exc, NOT_SHOWN)}"]
    if report is not None:
        log.info("daily report", day=report.day.isoformat(), pipelines=len(report.pipelines))
    return []


async def health_is_late(minutes: float, context: Mapping[str, Any] | None = None) -> None:
    """Tell that a run of ``checkpoint_health`` missed its deadline; runs in the triggerer and raises nothing."""
    settings = load_settings()
    try:
        await asyncio.to_thread(note_health_late, settings, minutes)
        await asyncio.to_thread(tell, settings)
    except Exception as exc:
        log.error("the alert that checkpoint_health is late was not sent", error_class=type(exc).__name__)


def record_incident(control: ControlFolder, body: Mapping[str, Any]) -> None:
    """Append one line to the pipeline's ``incidents.jsonl``."""
    make_private_folder(control.folder)
    with open_private(control.folder / "incidents.jsonl", "a") as file:
        file.write(json.dumps(body) + "\n")


def _runbooks(settings: Settings) -> str | None:
    try:
        return load_alerts(alerts_file(settings)).runbooks
    except InvalidAlertsError:
        return None
