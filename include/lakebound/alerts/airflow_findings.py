"""What an Airflow's health, and the DAGs that are paused in it, mean for alerts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.control import situations
from lakebound.control.airflow_health import AirflowHealth, told_components
from lakebound.control.findings import Fact, Finding, Severity
from lakebound.first_line import first_line

SOURCE = "airflow"

_MEANS = {
    "metadatabase": "no task is started",
    "scheduler": "no application that ends is started again, and no DAG runs",
    "triggerer": "nobody notices the end or a stall of an application",
    "dag_processor": "new and changed pipelines do not become DAGs",
}
DISPROVED_BY_A_TASK = frozenset({"unreachable", "scheduler", "metadatabase"})
"""Causes that are over when Airflow runs a task."""
_MOST_CHARACTERS = 300
_WARNINGS = frozenset({"dag_processor"})


@dataclass(frozen=True)
class PausedFacts:
    """What decides whether a paused DAG is wrong.

    Attributes:
        is_wanted: Whether the pipeline is wanted running, and was started before.
        lives: Whether its application lives.
    """

    is_wanted: bool
    lives: bool


def airflow_findings(health: AirflowHealth | None, now: float) -> tuple[Finding, ...]:
    """Return what is wrong with Airflow itself; nothing where none is known, or it was stopped on purpose."""
    if health is None:
        return ()
    evidence: dict[str, Fact] = {"address": health.address}
    if health.problem is not None:
        problem = first_line(health.problem)[:_MOST_CHARACTERS]
        what = f"{problem}; the streams continue, but while Airflow is down, an application that ends is not started again"
        return (
            Finding(
                cause="unreachable", severity=Severity.CRITICAL, what=what, since=now, evidence=evidence, runbook="airflow-down"
            ),
        )
    return tuple(
        Finding(
            cause=name,
            severity=Severity.WARNING if name in _WARNINGS else Severity.CRITICAL,
            what=f"Airflow gives no sign of life of: {told_components(health.components, (name,))}; the streams continue, "
            f"but {_MEANS[name]}",
            since=now,
            evidence=evidence,
            runbook="airflow-down",
        )
        for name in health.dead
    )


def paused_findings(pipeline: str, health: AirflowHealth, facts: PausedFacts, now: float) -> tuple[Finding, ...] | None:
    """Return what is wrong with a pipeline's DAG in Airflow; None where that is not known.

    Args:
        pipeline: Its name.
        health: Of the Airflow.
        facts: Of the pipeline.
        now: Epoch seconds.
    """
    if health.paused is None:
        return None
    dag = f"ingest__{pipeline}"
    if not facts.is_wanted or not health.paused.get(dag, False):
        return ()
    what = str(situations.dag_paused(pipeline))
    if facts.lives:
        what = (
            f"it runs, but its DAG {dag} is paused, so nothing starts it again when it ends; unpause it: "
            f"{situations.start_command(pipeline)}"
        )
    found = Finding(
        cause="dag-paused",
        severity=Severity.WARNING,
        what=what,
        since=now,
        evidence={"dag_id": dag, "address": health.address},
        runbook=situations.dag_paused(pipeline).runbook,
    )
    return (found,)
