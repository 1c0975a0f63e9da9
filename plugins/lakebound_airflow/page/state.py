"""Reads what the page shows of pipelines: the files of their state folders, and the open alerts. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lakebound.alerts.model import Alert
from lakebound.alerts.store import AlertStore
from lakebound.control.findings import Findings, read_sources
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Incident, newest_incidents
from lakebound.control.quarantine_samples import Samples, newest_samples, read_samples
from lakebound.control.situations import Situation
from lakebound.control.status import PipelineStatus, StatusFacts, read_facts, situation_of, status_of
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines

INCIDENTS_SHOWN = 10


def ingest_dag(pipeline: str) -> str:
    """Return the id of the DAG by which a pipeline runs, and by which access to it is decided."""
    return f"ingest__{pipeline}"


@dataclass(frozen=True)
class PipelineState:
    """One pipeline, read at one moment.

    Attributes:
        facts: What its files say.
        status: What follows from them, as ``lakebound status`` says it.
        situation: What keeps it from landing; None where nothing does.
        alerts: Those of the pipeline that are open, the worst first.
        findings: What each source last found.
        problems: Files that cannot be read.
    """

    facts: StatusFacts
    status: PipelineStatus
    situation: Situation | None = None
    alerts: tuple[Alert, ...] = ()
    findings: tuple[Findings, ...] = ()
    problems: tuple[str, ...] = ()


def read_states(
    names: Collection[str], settings: Settings, loaded: LoadedPipelines, paused: Mapping[str, bool], now: float
) -> tuple[list[PipelineState], list[str]]:
    """Return the state of each pipeline, and what could not be read of all of them.

    Args:
        names: The pipelines.
        settings: Of this machine.
        loaded: What the YAML files declare.
        paused: Whether a DAG is paused, by its id; what is not in it is not known.
        now: Epoch seconds.
    """
    kept = AlertStore(settings.home).look()
    alerts: defaultdict[str, list[Alert]] = defaultdict(list)
    for alert in kept.memory.open if kept is not None else ():
        for part in kept.memory.parts_of(alert) if kept is not None else ():
            alerts[part.pipeline].append(part)
    problems = ["the file of alerts cannot be read, so no alert is shown (lakebound alerts)"] if kept is None else []
    found = []
    for name in sorted(names):
        facts = read_facts(name, loaded.specs.get(name), settings)
        facts = replace(facts, is_paused=paused.get(ingest_dag(name)))
        findings, unreadable = read_sources(ControlFolder(settings.home, name))
        status, situation = status_of(facts, now), situation_of(facts, now)
        found.append(PipelineState(facts, status, situation, tuple(alerts[name]), tuple(findings), tuple(unreadable)))
    return found, problems


def read_kept_samples(control: ControlFolder, kept: int, now: float) -> tuple[Samples, list[str]]:
    """Return the samples of the quarantine, newest first, and what could not be read; no text of an error, it may quote one.

    Args:
        control: State folder of the pipeline.
        kept: How many of each reason its YAML asks for; with 0, what an earlier application left is not shown.
        now: Epoch seconds.
    """
    if not kept:
        return (), []
    try:
        return newest_samples(read_samples(control, now), kept, now), []
    except (OSError, ValueError) as exc:
        return (), [f"{control.quarantine_samples} cannot be read: {type(exc).__name__}"]


def read_newest_incidents(pipeline: str, settings: Settings) -> tuple[list[Incident], list[str]]:
    """Return the newest incidents of a pipeline, and a line for each that cannot be read."""
    return newest_incidents(ControlFolder(settings.home, pipeline), INCIDENTS_SHOWN)
