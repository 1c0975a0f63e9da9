"""The reports that are kept: ``<LAKEBOUND_HOME>/reports/<day>.json``, and the page beside it; the youngest 90 days."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from pydantic import ValidationError

from lakebound.alerts.wording import Links
from lakebound.control.folder import read_json, write_text
from lakebound.control.rollups import HOUR
from lakebound.errors import LakeboundError
from lakebound.report.facts import read_day
from lakebound.report.model import DayReport, day_before, end_of
from lakebound.report.page import markdown_of
from lakebound.report.summary import report_of
from lakebound.settings import Settings

KEPT_DAYS = 90


class NoSuchDayError(LakeboundError):
    """There is no report of the day that was asked for, and none can be made."""

    def __init__(self, day: date, reason: str) -> None:
        super().__init__(f"there is no report for {day.isoformat()}: {reason}")


def reports_folder(settings: Settings) -> Path:
    """Return where the reports are."""
    return settings.home / "reports"


def keep_report(settings: Settings, report: DayReport, links: Links) -> None:
    """Write a report and its page, and remove those that are too old.

    Args:
        settings: Of this machine.
        report: Of a day that is over.
        links: Where the runbooks are.

    Raises:
        OSError: The disk does not take it.
    """
    folder = reports_folder(settings)
    write_text(folder / f"{report.day.isoformat()}.md", markdown_of(report, links))
    write_text(folder / f"{report.day.isoformat()}.json", report.model_dump_json())
    oldest = report.day - timedelta(days=KEPT_DAYS - 1)
    for file in (*folder.glob("*.json"), *folder.glob("*.md")):
        with suppress(ValueError, OSError):  # another file, or one that another process has removed
            if date.fromisoformat(file.stem) < oldest:
                file.unlink()


def report_of_day(settings: Settings, day: date | None, now: float) -> DayReport:
    """Return the report that is kept of a day; where there is none, a new one.

    Args:
        settings: Of this machine.
        day: In UTC; None: the last one that is over, or the day so far where this is the first one with figures.
        now: Epoch seconds.

    Raises:
        NoSuchDayError: The day has not begun, or its figures are not kept any more.
    """
    if day is None:
        last = report_of_day(settings, day_before(now), now)
        today = last if last.has_figures else report_of_day(settings, last.day + timedelta(days=1), now)
        return today if today.has_figures else last
    if day > day_before(now) + timedelta(days=1):
        raise NoSuchDayError(day, "this day has not begun; days are in UTC")
    kept = _read(settings, day)
    if kept is not None:
        return kept
    if end_of(day) < now - HOUR.kept_seconds:
        reason = f"figures are kept for {HOUR.kept_seconds // 86_400} days, and reports for {KEPT_DAYS}"
        raise NoSuchDayError(day, f"{reason}; give a later day")
    return report_of(read_day(settings, day, now))


def _read(settings: Settings, day: date) -> DayReport | None:
    try:
        body = read_json(reports_folder(settings) / f"{day.isoformat()}.json")
        return None if body is None else DayReport.model_validate(body)
    except (OSError, ValueError, ValidationError):
        return None
