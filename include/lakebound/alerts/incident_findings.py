"""Incidents that applications and repairs recorded since the last look: each is named once, for a short time. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.alerts.concerns import INCIDENTS
from lakebound.control.findings import Finding, Severity
from lakebound.control.incidents import Incident

SOURCE = INCIDENTS
STANDS_SECONDS = 120.0
_FIRST_LOOK_SECONDS = 900.0


def incident_findings(incidents: Iterable[Incident], looked_at: float | None, now: float) -> tuple[Finding, ...]:
    """Return the recent incidents.

    Args:
        incidents: Of the pipeline.
        looked_at: When this was asked before: what happened since is named however long that is ago.
        now: Epoch seconds.
    """
    after = (now - _FIRST_LOOK_SECONDS if looked_at is None else looked_at) - STANDS_SECONDS
    return tuple(_finding(incident) for incident in incidents if incident.at > after)


def _finding(incident: Incident) -> Finding:
    by_itself = incident.approved_by is None
    asks = incident.kind in ("refused", "crash_loop")
    severity = Severity.CRITICAL if asks else Severity.WARNING if by_itself else Severity.INFO
    runbook = incident.runbook or ("application-dead" if incident.kind == "unclean_end" else None)
    return Finding(
        cause=incident.id,
        severity=severity,
        what=f"{incident.kind}: {incident.what}",
        since=incident.at,
        evidence={"incident": incident.id, "asked_by": incident.asked_by, "approved_by": incident.approved_by},
        runbook=runbook,
        done=incident.outcome,
    )
