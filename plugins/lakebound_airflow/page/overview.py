"""The overview: a row per pipeline, what needs a person first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from lakebound.alerts.concerns import IMMEDIATE
from lakebound.alerts.model import Alert, rank
from lakebound.control.findings import Severity
from lakebound.control.state_text import cut_text
from lakebound.frozen import Frozen
from lakebound_airflow.page.html_tables import TOLD_CHARS, told_problems
from lakebound_airflow.page.state import PipelineState

_ENDED_BY_A_PERSON = frozenset({"crash-loop", "dag-paused", "last-start-refused"})
"""Situations that do not end by themselves."""


class Need(StrEnum):
    """How much a pipeline needs a person; the order is the order of the rows."""

    NOW = "now"
    TODAY = "today"
    WAITS = "waits"
    NONE = "none"
    STOPPED = "stopped"


_NEEDS = list(Need)


class OverviewRow(Frozen):
    """One pipeline. The fields that ``PipelineStatus`` has, too, mean the same.

    Attributes:
        why: What the need rests on; empty where nothing is wrong.
        freshness_p99_seconds: Of the records of the last five minutes, as the application says.
        bad_share: The part of the recent records that went to quarantine, from 0 to 1.
        alerts: How many are open.
        worst_alert: The severity of the worst of them.
    """

    pipeline: str
    need: Need
    why: str
    desired: str
    app: str
    alive: bool
    outdated: bool
    situation: str | None
    lag_records: int | None
    freshness_seconds: float | None
    is_idle: bool
    freshness_p99_seconds: float | None
    last_commit_age_seconds: float | None
    bad_share: float | None
    alerts: int
    worst_alert: Severity | None


class Overview(Frozen):
    """All rows, and what is wrong beyond single ones; ``at`` is epoch seconds."""

    at: float
    pipelines: tuple[OverviewRow, ...]
    problems: tuple[str, ...] = ()


def overview_of(states: Sequence[PipelineState], problems: Sequence[str], now: float) -> Overview:
    """Return the overview: sorted by need, then by severity of alerts, then by lag, then by name.

    Args:
        states: The pipelines that the viewer may see.
        problems: What is wrong beyond single pipelines.
        now: Epoch seconds.
    """
    rows = sorted((row_of(state) for state in states), key=_order)
    return Overview(at=now, pipelines=tuple(rows), problems=told_problems(problems))


def row_of(state: PipelineState) -> OverviewRow:
    """Return the row of one pipeline."""
    status, progress = state.status, state.facts.progress
    need, why = need_of(state)
    worst = max((alert.severity for alert in state.alerts), key=rank, default=None)
    return OverviewRow(
        pipeline=status.pipeline,
        need=need,
        why=cut_text(why, TOLD_CHARS),
        desired=status.desired,
        app=status.app,
        alive=status.alive,
        outdated=status.outdated,
        situation=status.situation,
        lag_records=status.lag_records,
        freshness_seconds=status.freshness_seconds,
        is_idle=status.is_idle,
        freshness_p99_seconds=progress.freshness_p99_seconds if progress and status.alive else None,
        last_commit_age_seconds=status.last_commit_age_seconds,
        bad_share=status.recent.share if status.recent else None,
        alerts=len(state.alerts),
        worst_alert=worst,
    )


def need_of(state: PipelineState) -> tuple[Need, str]:
    """Return how much the pipeline needs a person, and the sentence that says why.

    A critical alert, or a situation that only a person ends, is for now. A warning, a file that is wrong or unreadable, and an
    application that is silent, or was asked to start and never did, are for today. What ends by itself waits. A pipeline that
    nobody has started, such as an example, is stopped. What keeps it from landing now is
    the reason rather than an event that is over, such as a kill after which another application was started.
    """
    status, situation, note = state.status, state.situation, _note(state)
    worst = min(state.alerts, key=lambda alert: (-rank(alert.severity), _is_of_the_past(alert), alert.since), default=None)
    why = note if worst is None or (situation is not None and _is_of_the_past(worst)) else worst.what
    if worst is not None and worst.severity is Severity.CRITICAL:
        return Need.NOW, why
    if situation is not None and situation.name in _ENDED_BY_A_PERSON:
        return Need.NOW, note
    if worst is not None and worst.severity is Severity.WARNING:
        return Need.TODAY, why
    for is_wrong, why in _for_today(state, note):
        if is_wrong:
            return Need.TODAY, why
    if status.desired != "running":
        return Need.STOPPED, status.reason
    if status.situation == "never-started":
        return Need.STOPPED, note
    if situation is not None or not status.alive:
        return Need.WAITS, note or "no application runs now"
    return Need.NONE, worst.what if worst is not None else ""


def _is_of_the_past(alert: Alert) -> bool:
    """Whether an alert is about an event, or about something that nobody finds any more."""
    return alert.lead.partition(":")[0] in IMMEDIATE or alert.gone_since is not None


def _for_today(state: PipelineState, note: str) -> tuple[tuple[bool, str], ...]:
    status, unreadable = state.status, (*state.facts.unreadable, *state.problems)
    return (
        (bool(unreadable), next(iter(unreadable), "")),
        (state.facts.spec is None, "no valid YAML file declares it (lakebound check)"),
        (status.situation == "never-started" and status.is_asked_for, note),
        (status.app.startswith("silent"), f"its application is {status.app}"),
    )


def _note(state: PipelineState) -> str:
    """Return the situation in a sentence; without one, how the last application ended."""
    if state.situation is not None:
        return str(state.situation)
    return state.status.notes[-1] if state.status.notes and not state.status.alive else ""


def _order(row: OverviewRow) -> tuple[int, int, int, str]:
    return _NEEDS.index(row.need), -rank(row.worst_alert), -(row.lag_records or 0), row.pipeline
