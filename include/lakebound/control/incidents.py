"""Incidents: what went wrong, what was done about it, by whom; kept as one JSON file each, the newest first."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from lakebound.control.bounds import Moment
from lakebound.control.folder import ControlFolder, StateFile, files_in, read_json, write_json
from lakebound.control.progress import Outcome
from lakebound.errors import CrashLoopError, error_named
from lakebound.first_line import first_line
from lakebound.frozen import FrozenRecord
from lakebound.ledger.lost import LostRange

IncidentKind = Literal["unclean_end", "repair", "refused", "crash_loop", "rewind"]


class Incident(FrozenRecord):
    """One incident. Times are epoch seconds."""

    id: str
    pipeline: str
    kind: IncidentKind
    at: Moment
    what: str = Field(description="One sentence.")
    runbook: str | None = None
    facts: dict[str, Any] = Field(default_factory=dict)
    plan: dict[str, Any] | None = Field(default=None, description="As it was approved.")
    asked_by: str | None = Field(default=None, description="Who asked for the repair, where that is known.")
    approved_by: str | None = None
    outcome: str = ""
    loses: tuple[LostRange, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What a person decided, and who it was.

    Attributes:
        asked_by: Who asked for the repair; None where nobody did, or it is not known.
        approved_by: Who approved it; None when nobody had to.
        plan: The approved plan as JSON, with its hash; None when nothing was planned.
        loses: Ranges of offsets that are given up.
    """

    asked_by: str | None = None
    approved_by: str | None = None
    plan: dict[str, Any] | None = None
    loses: Sequence[LostRange] = ()


NOBODY = Decision()


def record_incident(
    control: ControlFolder,
    kind: IncidentKind,
    what: str,
    *,
    runbook: str | None = None,
    facts: dict[str, Any] | None = None,
    outcome: str = "",
    decision: Decision = NOBODY,
) -> Incident:
    """Write an incident and return it.

    Args:
        control: State folder of the pipeline.
        kind: What sort of incident it is; lists of incidents show it.
        what: One sentence on what went wrong or was done.
        runbook: Name of the page in ``include/runbooks``, without its ending; None when no page is about it.
        facts: What explains the incident, by name, as JSON values; None when there is nothing more to say.
        outcome: How it ended, in words.
        decision: Why it was done; nobody's, where the pipeline did it by itself.
    """
    now = time.time()
    incident = Incident(
        id=f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}-{uuid.uuid4().hex[:6]}",
        pipeline=control.pipeline,
        kind=kind,
        at=now,
        what=what,
        runbook=runbook,
        facts=facts or {},
        plan=decision.plan,
        asked_by=decision.asked_by,
        approved_by=decision.approved_by,
        outcome=outcome,
        loses=tuple(decision.loses),
    )
    write_json(control.incidents / f"{incident.id}.json", incident.model_dump(mode="json"), durable=True)
    return incident


def record_refusal(control: ControlFolder, outcome: Outcome) -> Incident | None:
    """Write down that an application refused to start; None when the newest incident says just that already."""
    newest = next(iter(read_incidents(control)), None)
    kind: IncidentKind = "crash_loop" if issubclass(error_named(outcome.error_class), CrashLoopError) else "refused"
    if newest is not None and (newest.kind, newest.what) == (kind, outcome.reason):
        return None
    facts = {"app_id": outcome.app_id, "error_class": outcome.error_class}
    return record_incident(control, kind, outcome.reason, runbook=outcome.runbook, facts=facts, outcome="a person must decide")


def read_incidents(control: ControlFolder) -> list[Incident]:
    """Return the pipeline's incidents, newest first."""
    return [Incident.model_validate(read_json(file)) for file in _newest_first(control)]


def newest_incidents(control: ControlFolder, most: int) -> tuple[list[Incident], list[str]]:
    """Return the newest incidents, newest first, and a line for each file among them that cannot be read.

    Reads only these files: a pipeline may have hundreds.

    Args:
        control: State folder of the pipeline.
        most: How many of the files to read at most.
    """
    found: list[Incident] = []
    problems: list[str] = []
    for file in _newest_first(control)[:most]:
        try:
            body = read_json(file)
            if body is not None:  # it was tidied away since
                found.append(Incident.model_validate(body))
        except (OSError, ValueError) as exc:
            problems.append(f"{file} cannot be read: {first_line(exc)}")
    return found, problems


def _newest_first(control: ControlFolder) -> list[StateFile]:
    """Return the files; their names begin with a time."""
    return files_in(control.incidents, "*.json")[::-1]
