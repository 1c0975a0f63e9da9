"""The operators behind ``hours__<pipeline>``: what is due, an event per hour, and the note that it was announced.

They announce first and take note then: a task that is killed between gives an event a second time, never none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from lakebound.control.complete_hours import Announcement, CompleteHours, after
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.settings import load_settings
from lakebound_airflow.assets import complete_hours_asset, hours_due_asset
from lakebound_airflow.pipelines import control_of
from lakebound_airflow.triggers.hours import RECORDED

MOST_AT_ONCE = 500
"""Airflow maps a task at most 1024 times; the watcher tells of what is left."""

Context = Mapping[str, Any]


class DueHoursOperator(BaseOperator):
    """Looks which hours of a table are to be announced; XCom: the ``extra`` of each event.

    Args:
        pipeline: Its name.
        table: Id of the table.
    """

    ui_color = "#d5e8d4"

    def __init__(self, *, pipeline: str, table: str, **kwargs: Any) -> None:
        super().__init__(inlets=[hours_due_asset(pipeline)], **kwargs)
        self.pipeline = pipeline
        self.table = table

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return what is due, and what the form of the run asks for again.

        Raises:
            AirflowSkipException: Nothing is.
        """
        hours = read_complete_hours(control_of(self.pipeline, load_settings())) or CompleteHours()
        store = context["asset_state_store"][hours_due_asset(self.pipeline)]
        noted = int(store.get(f"{RECORDED}{self.table}", 0) or 0)
        due = after(hours, self.table, noted)[:MOST_AT_ONCE]
        params = context.get("params") or {}
        wanted = set(params.get("hours") or ()) if params.get("table") in (None, self.table) else set()
        # Only what is noted is given again: beyond it, the note of a wanted hour would pass over those that wait before it.
        again = [one for one in after(hours, self.table, 0) if one.hour in wanted and one.number <= noted]
        if not due and not again:
            raise AirflowSkipException(f"there is no hour of {self.table} to announce")
        return [told(hours, self.pipeline, self.table, one) for one in (*due, *again)]


class AnnounceHourOperator(BaseOperator):
    """Gives the event of one hour. It is mapped, so its outlet is named where it is: Airflow gives that to each instance.

    Args:
        pipeline: Its name.
        table: Id of the table.
        announcement: The ``extra`` of the event.
    """

    ui_color = "#d5e8d4"
    template_fields: Sequence[str] = ("announcement",)

    def __init__(self, *, pipeline: str, table: str, announcement: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.table = table
        self.announcement = announcement

    def execute(self, context: Context) -> str:
        """Give it; return the hour."""
        event = context["outlet_events"][complete_hours_asset(self.pipeline, self.table)]
        event.extra = self.announcement
        event.add_partitions(self.announcement["hour"])
        return str(self.announcement["hour"])


class RecordHoursOperator(BaseOperator):
    """Notes up to which hour a table was announced.

    Args:
        pipeline: Its name.
        table: Id of the table.
        announced: What was announced.
    """

    ui_color = "#d5e8d4"
    template_fields: Sequence[str] = ("announced",)

    def __init__(self, *, pipeline: str, table: str, announced: Any, **kwargs: Any) -> None:
        super().__init__(inlets=[hours_due_asset(pipeline)], **kwargs)
        self.pipeline = pipeline
        self.table = table
        self.announced = announced

    def execute(self, context: Context) -> int:
        """Note it; return the number of the last announcement."""
        store, key = context["asset_state_store"][hours_due_asset(self.pipeline)], f"{RECORDED}{self.table}"
        number = max(int(store.get(key, 0) or 0), *(int(one["number"]) for one in self.announced))
        store.set(key, number)
        return number


def told(hours: CompleteHours, pipeline: str, table: str, one: Announcement) -> dict[str, Any]:
    """Return what the event of an hour carries.

    Args:
        hours: The pipeline's complete hours.
        pipeline: Its name.
        table: Id of the table.
        one: The announcement.
    """
    start_ms, end_ms = hours.span.bounds_ms(one.hour)
    return {
        "pipeline": pipeline,
        "table": table,
        "hour": one.hour,
        "start": _moment(start_ms),
        "end": _moment(end_ms),
        "column": hours.column,
        "version": one.version,
        "further": one.further,
        "number": one.number,
    }


def _moment(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat()
