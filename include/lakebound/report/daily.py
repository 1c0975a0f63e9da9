"""Makes each day's report once, soon after the day is over, and queues its message; the next round of alerts sends it.

Whoever runs rounds of alerts asks for it: the DAG ``alerts`` and ``lakebound watch``. The state of the alerts remembers the
last day, in the same write as the message, so of two that ask at once only one makes it, and none is told twice.
"""

from __future__ import annotations

from datetime import date

from lakebound.alerts.load import load_alerts_or_default
from lakebound.alerts.model import EVERYTHING, REPORT, Message, MessageKind, ToldAlert
from lakebound.alerts.routes import by_channel
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.alerts.wording import Links
from lakebound.control.findings import Severity
from lakebound.report.facts import read_day
from lakebound.report.kept import keep_report
from lakebound.report.model import DayReport, day_before, start_of
from lakebound.report.page import message_text_of, totals_of
from lakebound.report.summary import report_of
from lakebound.settings import Settings

SETTLES_SECONDS = 600.0
"""So long after midnight the figures of the last seconds are written, also by an application whose disk was busy."""


def due_day(state: AlertState, now: float) -> date | None:
    """Return the day of which a report is due; None where it was made. Days before it are not made up for. Pure.

    Args:
        state: Of the alerts; it has the last day that was reported.
        now: Epoch seconds.
    """
    day = day_before(now - SETTLES_SECONDS)
    return day if state.reported_day is None or state.reported_day < day else None


def report_if_due(settings: Settings, now: float) -> DayReport | None:
    """Make, keep and queue the report of the last day where nobody has; return it, or None where it was not due.

    Where no pipeline has ever been reported and none ran, nothing is said: a new installation begins silently.

    Args:
        settings: Of this machine.
        now: Epoch seconds.

    Raises:
        OSError: The disk of the state does not take it; the next call tries again.
    """
    store = AlertStore(settings.home)
    if due_day(store.read(), now) is None:
        return None
    with store.changing():
        state = store.read()
        day = due_day(state, now)
        if day is None:
            return None
        alerts, _ = load_alerts_or_default(settings)
        report = report_of(read_day(settings, day, now))
        after = state.model_copy(update={"reported_day": day})
        if report.has_figures or state.reported_day is not None:
            keep_report(settings, report, Links(runbooks=alerts.runbooks))
            for channel, message in by_channel(message_of(report), alerts).items():
                after = after.queued(channel, message)
        store.write(after)
        return report


def message_of(report: DayReport) -> Message:
    """Return the message: figures alone, and no text of an incident."""
    told = ToldAlert(
        id=f"{REPORT}/{report.day.isoformat()}",
        source=REPORT,
        cause=REPORT,
        severity=Severity.INFO,
        what=message_text_of(report),
        since=start_of(report.day),
        evidence={"day": report.day.isoformat(), **totals_of(report)},
    )
    return Message(
        id=f"{REPORT}-{report.day.isoformat()}", kind=MessageKind.REPORT, pipeline=EVERYTHING, at=report.made_at, alerts=(told,)
    )
