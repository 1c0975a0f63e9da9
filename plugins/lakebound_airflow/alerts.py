"""Tells people, through one webhook: Airflow's HTTP notifier on the connection ``lakebound_webhook``.

The body is JSON: ``pipeline``, ``verdict`` (stalled, failed, incident, refused, crash_loop, unwell, health_late), ``reason``,
``runbook`` (a page in ``include/runbooks``), ``app_id``, ``dag_id``, ``run_id``, ``log_url``, ``at`` (epoch seconds). Without
the connection nothing is sent. Every alert is also a line of the log, and of ``incidents.jsonl`` in the pipeline's folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Literal

import structlog
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.control import ControlFolder

WEBHOOK_CONN_ID = "lakebound_webhook"
TIMEOUT_SECONDS = 10.0

Verdict = Literal["stalled", "failed", "incident", "refused", "crash_loop", "unwell"]

RUNBOOKS: Mapping[Verdict, str] = {
    "stalled": "stall",
    "failed": "application-dead",
    "incident": "application-dead",
    "refused": "refused",
    "crash_loop": "crash-loop",
    "unwell": "refused",
}
"""The page of an alert that names none of its own."""

log = structlog.get_logger(__name__)


def alert(
    context: Mapping[str, Any],
    control: ControlFolder,
    verdict: Verdict,
    reason: str,
    app_id: str | None = None,
    *,
    runbook: str | None = None,
) -> None:
    """Record the incident and send it. Never raises: a broken webhook must not hide the reason for which it was called."""
    ti = context["ti"]
    body = {
        "pipeline": control.pipeline,
        "verdict": verdict,
        "reason": reason,
        "runbook": runbook or RUNBOOKS[verdict],
        "app_id": app_id,
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "log_url": getattr(ti, "log_url", None),
        "at": time.time(),
    }
    record_incident(control, body)
    # Half a second that neither parsing nor a task that ends well has to spend.
    from airflow.providers.http.notifications.http import HttpNotifier

    try:
        notifier = HttpNotifier(http_conn_id=WEBHOOK_CONN_ID, json=body, extra_options={"timeout": TIMEOUT_SECONDS})
        # notify() and not the notifier itself, which would take a log line with braces for a template.
        notifier.notify(context)  # type: ignore[arg-type]
    except AirflowNotFoundException:
        log.warning("no webhook was called: there is no connection", conn_id=WEBHOOK_CONN_ID, verdict=verdict)
    except Exception as exc:
        log.error("the webhook failed", conn_id=WEBHOOK_CONN_ID, verdict=verdict, error=str(exc))
    else:
        log.info("webhook called", conn_id=WEBHOOK_CONN_ID, verdict=verdict)


async def health_is_late(minutes: float, context: Mapping[str, Any] | None = None) -> None:
    """Tell that a run of ``checkpoint_health`` missed its deadline; runs in the triggerer and raises nothing."""
    reason = f"checkpoint_health was not done after {minutes:g} minutes: nobody watches the pipelines"
    run = (context or {}).get("dag_run")
    run_id = run.get("run_id") if isinstance(run, Mapping) else getattr(run, "run_id", None)
    body = {"pipeline": "*", "verdict": "health_late", "reason": reason, "dag_id": "checkpoint_health", "run_id": run_id}
    from airflow.providers.http.notifications.http import HttpNotifier

    try:
        notifier = HttpNotifier(http_conn_id=WEBHOOK_CONN_ID, json={**body, "at": time.time()})
        await notifier.async_notify(dict(context or {}))  # type: ignore[arg-type]
    except AirflowNotFoundException:
        log.warning("no webhook was called: there is no connection", conn_id=WEBHOOK_CONN_ID, reason=reason)
    except Exception as exc:
        log.error("the webhook failed", conn_id=WEBHOOK_CONN_ID, reason=reason, error=str(exc))


def record_incident(control: ControlFolder, body: Mapping[str, Any]) -> None:
    """Append one line to the pipeline's ``incidents.jsonl``."""
    control.folder.mkdir(parents=True, exist_ok=True)
    with (control.folder / "incidents.jsonl").open("a") as file:
        file.write(json.dumps(body) + "\n")
