"""Which findings are about the same thing, and which follow from another: one trouble, one alert. Pure.

A broker that is away shows as an application that waits, as a doctor's finding, later as a dead application, as lag and as
records that are not fresh. The first two are one *concern*, told once; the others follow from it and are told only if they
are still there some time after it is over.
"""

from __future__ import annotations

from lakebound.control.airflow_health import COMPONENTS
from lakebound.control.findings import Finding, Severity
from lakebound.control.runbooks import RUNBOOKS

DISK_FULL = "disk-full"
OUTAGE, CRASH_LOOP, DEAD, STALL, LAG = "broker-unavailable", "crash-loop", "application-dead", "stall", "lag"
FLOOD, FRESHNESS = "quarantine-flood", "objectives:freshness"
CATALOG, STORE, CLOCK = "table-unreadable", "target-store", "doctor:clocks-differ"
TOPIC_MISSING, TOPIC_RECREATED = "topic-missing", "topic-recreated"
PAUSED, AIRFLOW_AWAY = "airflow:dag-paused", "airflow:unreachable"

INCIDENTS = "incidents"

IMMEDIATE = frozenset({"stream", "watch", INCIDENTS})
"""Sources that saw an event, such as the end of an application: there is nothing to be waited for, and it is named once."""

_RESULTS = "validation"
_NO_RESULTS = frozenset({"run", "late"})
"""Causes of validation's findings that are no results: the next run may end them."""

LOOKS_AT_A_START = frozenset({"schema"})
"""Sources that look when an application starts, and not again while it runs: their last look is never too old."""

WEEKLY = frozenset({"unknown_fields"})
"""Sources whose alerts are said again once a week at most, as nothing is in a hurry."""

_LOOKERS = frozenset({"doctor", "stream", "application", INCIDENTS, "objectives"})
"""Sources that look at the same pipeline from different sides. What two of them name with one runbook is one concern."""

_KEEP_FROM_RUNNING = frozenset(name for name, page in RUNBOOKS.items() if page.keeps_from_running)
_SHARED = _KEEP_FROM_RUNNING | {CRASH_LOOP, DEAD, STALL, LAG, FLOOD}

_NOTHING_RUNS = _KEEP_FROM_RUNNING | {CRASH_LOOP}
_FOLLOWS = {
    CRASH_LOOP: frozenset({OUTAGE, DISK_FULL}),
    DEAD: _NOTHING_RUNS,
    # An application that is silent lives: only what it waits for can be behind it.
    STALL: frozenset({OUTAGE, DISK_FULL}),
    LAG: _NOTHING_RUNS | {DEAD, STALL},
    FRESHNESS: _NOTHING_RUNS | {DEAD, STALL, LAG},
    # The guard of a crash loop pauses the DAG.
    PAUSED: _NOTHING_RUNS | {DEAD},
    **{f"airflow:{component}": frozenset({AIRFLOW_AWAY}) for component in COMPONENTS},
}
"""From what each usually follows."""

_STAYS = frozenset({CRASH_LOOP})
"""What does not pass by itself when its cause is over: it is told then at once."""


_OUTAGES = frozenset({OUTAGE, CATALOG, STORE})
_WAITS = frozenset({("application", "waiting"), ("doctor", "broker-unavailable"), ("doctor", "application-waiting")})


def is_waited_out(source: str, finding: Finding) -> bool:
    """Whether it is a server that does not answer, and the application waits for it: nobody is needed while it is short."""
    return finding.runbook in _OUTAGES and (source, finding.cause) in _WAITS


def is_event_of_outage(source: str, concern: str, severity: Severity) -> bool:
    """Whether an outage ended an application, which is started again: others may be hit, so the message waits a moment."""
    return source in IMMEDIATE and concern in _OUTAGES and severity is not Severity.CRITICAL


def is_result(lead: str) -> bool:
    """Whether an alert is about the result of a validation, which no later look changes: there is nothing to be waited for.

    Args:
        lead: Source and cause of the alert.
    """
    source, _, cause = lead.partition(":")
    return source == _RESULTS and cause not in _NO_RESULTS


def concern_of(source: str, finding: Finding) -> str:
    """Return what the finding is about, within its pipeline: its runbook where sources share one, else source and cause."""
    shares = source in _LOOKERS and finding.severity is not Severity.INFO
    if shares and finding.runbook in _SHARED:
        return finding.runbook or ""
    return f"{source}:{finding.cause}"


def follows(concern: str, other: str) -> bool:
    """Whether the first usually follows from the other."""
    return other in _FOLLOWS.get(concern, ())


def tells_again(source: str, concern: str, other: str) -> bool:
    """Whether it is the end of an application that was ended for the other: the next start writes that down as unclean.

    Args:
        source: What found it: the name of a source of findings.
        concern: What it is about.
        other: What the other alert of the pipeline is about.
    """
    return (source, concern, other) == (INCIDENTS, DEAD, STALL)


def is_symptom(concern: str) -> bool:
    """Whether there may be something that it follows from, and which may show a little later."""
    return concern in _FOLLOWS


def passes(concern: str) -> bool:
    """Whether it passes by itself once what it followed from is over."""
    return concern not in _STAYS
