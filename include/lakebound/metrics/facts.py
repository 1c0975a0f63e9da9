"""Reads what the metrics are made of. A file that cannot be read hides nothing but itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lakebound.alerts.model import EVERYTHING, Alert
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control.applications import living_submission, pipelines_with_state
from lakebound.control.desired import read_desired
from lakebound.control.findings import Finding, Findings, read_sources
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, readable_progress
from lakebound.control.rollup_files import read_totals
from lakebound.control.rollups import NO_FIGURES, Figures, Totals
from lakebound.errors import UnknownPipelineError
from lakebound.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class PipelineMetrics:
    """One pipeline.

    Attributes:
        is_up: Whether an application of it lives.
        is_wanted: Whether one is wanted to.
        progress: The latest; None where there is none that can be read.
        figures: All that its applications did so far.
        findings: What is wrong now, as those say who look.
    """

    pipeline: str
    is_up: bool = False
    is_wanted: bool = True
    progress: Progress | None = None
    figures: Figures = NO_FIGURES
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class MetricFacts:
    """All that the metrics tell.

    Attributes:
        pipelines: By name.
        alerts: Those that are open.
        alert_round_at: When a round of alerts last ended, in epoch seconds; 0 if there was none.
        read_at: Now, in epoch seconds.
    """

    pipelines: tuple[PipelineMetrics, ...]
    alerts: tuple[Alert, ...] = ()
    alert_round_at: float = 0.0
    read_at: float = field(default_factory=time.time)


def read_metric_facts(settings: Settings, only: Sequence[str] = ()) -> MetricFacts:
    """Return what the state says of every pipeline that ever ran here.

    Args:
        settings: Of this machine.
        only: Names of pipelines; none: all. Open alerts are then those of these pipelines, and those about no single one.

    Raises:
        UnknownPipelineError: One of these has no state here.
    """
    folders = pipelines_with_state(settings)
    known = {folder.pipeline for folder in folders}
    for name in only:
        if name not in known:
            raise UnknownPipelineError(name, sorted(known), settings.home / "pipelines")
    state = AlertStore(settings.home).look() or AlertState()
    return MetricFacts(
        pipelines=tuple(_read(folder) for folder in folders if not only or folder.pipeline in only),
        alerts=tuple(alert for alert in state.memory.open if not only or alert.pipeline in (*only, EVERYTHING)),
        alert_round_at=state.round_at,
    )


def _read(control: ControlFolder) -> PipelineMetrics:
    totals = _tried(lambda: read_totals(control), None) or Totals(since=0.0)
    nothing: tuple[list[Findings], list[str]] = ([], [])
    sources, _ = _tried(lambda: read_sources(control), nothing)
    return PipelineMetrics(
        pipeline=control.pipeline,
        is_up=_tried(lambda: living_submission(control), None) is not None,
        is_wanted=_tried(lambda: read_desired(control).wants_app, True),
        progress=_tried(lambda: readable_progress(control), None),
        figures=totals.figures,
        findings=tuple(finding for source in sources for finding in source.findings),
    )


def _tried(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except (OSError, ValueError):
        return otherwise
