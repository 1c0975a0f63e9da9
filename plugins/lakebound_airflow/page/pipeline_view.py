"""One pipeline closely. Pure. Records' values, and facts that may hold some, are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebound.alerts.model import Alert, by_severity
from lakebound.control.findings import Finding, Findings
from lakebound.control.incidents import Incident
from lakebound.control.progress import Progress
from lakebound.control.submission import Submission
from lakebound_airflow.page.overview import row_of
from lakebound_airflow.page.state import PipelineState

CONTROL_ACTIONS = ("start", "stop", "restart", "hold")
"""What the page offers of the control DAG."""


def pipeline_view(
    state: PipelineState, incidents: Sequence[Incident], problems: Sequence[str], triggerable: Sequence[str], now: float
) -> dict[str, Any]:
    """Return the view as JSON.

    Args:
        state: The pipeline.
        incidents: The newest ones.
        problems: Files that cannot be read.
        triggerable: Ids of DAGs of which the viewer may start a run.
        now: Epoch seconds.
    """
    facts, progress = state.facts, state.facts.progress
    return {
        "at": now,
        "pipeline": facts.pipeline,
        "row": row_of(state).model_dump(mode="json"),
        "status": state.status.model_dump(mode="json", exclude={"spark_ui"}),
        "progress": None if progress is None else _progress(progress),
        "alerts": [_alert(alert) for alert in by_severity(list(state.alerts))],
        "findings": [_finding(found, finding) for found in state.findings for finding in found.findings],
        "looked": [{"source": found.source, "at": found.at} for found in state.findings],
        "incidents": [_incident(incident) for incident in incidents],
        "submission": None if facts.last is None else _submission(facts.last),
        "problems": [*facts.unreadable, *state.problems, *problems],
        "actions": actions_of(facts.pipeline, triggerable),
    }


def actions_of(pipeline: str, triggerable: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the viewer may do: which DAG is to run, with which form."""
    control = f"control__{pipeline}"
    found: list[dict[str, Any]] = [
        {"name": name, "dag_id": control, "conf": {"action": name}, "takes_reason": True} for name in CONTROL_ACTIONS
    ]
    found.append({"name": "prove", "dag_id": f"prove__{pipeline}", "conf": {}, "takes_reason": False})
    found.append({"name": "recover", "dag_id": "recover", "conf": {"pipeline": pipeline}, "takes_reason": False})
    return [action for action in found if action["dag_id"] in triggerable]


def dags_of(pipeline: str) -> list[str]:
    """Return the ids of the DAGs whose runs the page can start."""
    return sorted(
        {action["dag_id"] for action in actions_of(pipeline, (f"control__{pipeline}", f"prove__{pipeline}", "recover"))}
    )


def _progress(progress: Progress) -> dict[str, Any]:
    shown = ("app_id", "epoch", "state", "updated_at", "started_at", "batch", "lane", "records", "filtered", "quarantined")
    body = progress.model_dump(mode="json")
    steps = [{"step": step, "milliseconds": spent} for step, spent in progress.durations_ms.items()]
    tables = [{"table": name, **table.model_dump(mode="json")} for name, table in sorted(progress.tables.items())]
    return {**{name: body[name] for name in shown}, "steps": steps, "tables": tables}


def _alert(alert: Alert) -> dict[str, Any]:
    shown = ("severity", "what", "since", "told_at", "runbook", "done")
    body = alert.model_dump(mode="json")
    return {name: body[name] for name in shown}


def _finding(found: Findings, finding: Finding) -> dict[str, Any]:
    return {"source": found.source, "at": found.at, **finding.model_dump(mode="json", exclude={"evidence"})}


def _incident(incident: Incident) -> dict[str, Any]:
    shown = {"id", "kind", "at", "what", "runbook", "asked_by", "approved_by", "outcome"}
    return incident.model_dump(mode="json", include=shown)


def _submission(submission: Submission) -> dict[str, Any]:
    shown = {"app_id", "backend", "host", "submitted_at", "remote_id", "custody", "owner", "log"}
    return submission.model_dump(mode="json", include=shown)
