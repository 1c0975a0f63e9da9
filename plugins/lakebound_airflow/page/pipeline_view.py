"""One pipeline closely. Pure. Facts that may hold values of records are only for who may see these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakebound.alerts.model import Alert, by_severity
from lakebound.control.findings import Fact, Finding, Findings
from lakebound.control.incidents import Incident
from lakebound.control.progress import Progress
from lakebound.control.schemas_in_use import SchemasInUse, told_schemas
from lakebound.control.submission import Submission
from lakebound_airflow.page.html_tables import told_problems
from lakebound_airflow.page.overview import row_of
from lakebound_airflow.page.state import PipelineState

CONTROL_ACTIONS = ("start", "stop", "restart", "hold")
"""What the page offers of the control DAG."""


def pipeline_view(
    state: PipelineState,
    incidents: Sequence[Incident],
    problems: Sequence[str],
    triggerable: Sequence[str],
    now: float,
    *,
    sees_values: bool = False,
) -> dict[str, Any]:
    """Return the view as JSON.

    Args:
        state: The pipeline.
        incidents: The newest ones.
        problems: Files that cannot be read.
        triggerable: Ids of DAGs of which the viewer may start a run.
        now: Epoch seconds.
        sees_values: Whether the viewer may see values of records.
    """
    facts, progress = state.facts, state.facts.progress
    return {
        "at": now,
        "pipeline": facts.pipeline,
        "row": row_of(state).model_dump(mode="json"),
        "status": state.status.model_dump(mode="json", exclude={"spark_ui"}),
        "progress": None if progress is None else _progress(progress),
        "alerts": [_alert(alert, sees_values=sees_values) for alert in by_severity(list(state.alerts))],
        "findings": [
            _finding(found, finding, sees_values=sees_values) for found in state.findings for finding in found.findings
        ],
        "looked": [{"source": found.source, "at": found.at} for found in state.findings],
        "incidents": [_incident(incident) for incident in incidents],
        "submission": None if facts.last is None else _submission(facts.last),
        "problems": told_problems([*facts.unreadable, *state.problems, *problems]),
        "tables": _tables(state),
        "schemas": _schemas(facts.schemas),
        "sees_values": sees_values,
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
    return {**{name: body[name] for name in shown}, "steps": steps}


def _tables(state: PipelineState) -> list[dict[str, Any]]:
    """Return the tables that the YAML declares, and those to which the application has committed."""
    spec, progress = state.facts.spec, state.facts.progress
    committed = progress.tables if progress is not None else {}
    declared = [table.id for table in (*spec.tables, spec.quarantine_table)] if spec is not None else []
    names = [*declared, *sorted({*committed} - {*declared})]
    return [{"table": name, **(committed[name].model_dump(mode="json") if name in committed else {})} for name in names]


def _schemas(parts: Sequence[SchemasInUse]) -> dict[str, Any]:
    """Return what the stream reads with, in sentences, and what each column comes from."""
    columns = [{**one.model_dump(mode="json"), "part": part.part} for part in parts for one in part.columns]
    return {"lines": [*told_schemas(parts)], "columns": columns}


def _alert(alert: Alert, *, sees_values: bool) -> dict[str, Any]:
    shown = ("severity", "what", "since", "told_at", "runbook", "done")
    body = alert.model_dump(mode="json")
    return {**{name: body[name] for name in shown}, "facts": facts_shown(alert.evidence, sees_values=sees_values)}


def _finding(found: Findings, finding: Finding, *, sees_values: bool) -> dict[str, Any]:
    body = finding.model_dump(mode="json", exclude={"evidence"})
    shown = facts_shown(finding.evidence, sees_values=sees_values)
    return {"source": found.source, "at": found.at, **body, "facts": shown}


def facts_shown(evidence: Mapping[str, Fact], *, sees_values: bool) -> list[dict[str, Any]]:
    """Return the facts by which something was found; who may not see values of records sees no texts among them.

    Args:
        evidence: As a source wrote it: what an expectation observed may be in it.
        sees_values: Whether the viewer may see values of records.
    """
    known = ((name, fact) for name, fact in evidence.items() if fact is not None and (sees_values or not isinstance(fact, str)))
    return [{"name": name.replace("_", " "), "value": fact} for name, fact in known]


def _incident(incident: Incident) -> dict[str, Any]:
    shown = {"id", "kind", "at", "what", "runbook", "asked_by", "approved_by", "outcome"}
    return incident.model_dump(mode="json", include=shown)


def _submission(submission: Submission) -> dict[str, Any]:
    shown = {"app_id", "backend", "host", "submitted_at", "remote_id", "custody", "owner", "log"}
    return submission.model_dump(mode="json", include=shown)
