"""The first tasks of a DAG that runs for complete hours: take the hour once, and ask for those that were missed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from lakebound.control.complete_hours import CompleteHours, after
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.control.taken_hours import KEPT_HOURS, TakenHours, missed, take
from lakebound.settings import load_settings
from lakebound_airflow.assets import complete_hours_asset
from lakebound_airflow.operators.complete_hours import told
from lakebound_airflow.pipelines import control_of

Context = Mapping[str, Any]


class TakeHourOperator(BaseOperator):
    """Takes the hour that the run is about; XCom: ``hour``, ``start``, ``end``, ``version`` and the rest of its event.

    An event may come twice, and those that a paused DAG missed are asked for again, for all DAGs: the run that has nothing
    new to read skips. A later version of the same hour is new.

    Args:
        pipeline: Its name.
        table: Id of the table.
    """

    ui_color = "#d5e8d4"

    def __init__(self, *, pipeline: str, table: str, **kwargs: Any) -> None:
        # One at a time: what was taken is one value, read and written.
        super().__init__(inlets=[complete_hours_asset(pipeline, table)], max_active_tis_per_dag=1, **kwargs)
        self.pipeline = pipeline
        self.table = table

    def execute(self, context: Context) -> dict[str, Any]:
        """Take it.

        Raises:
            AirflowSkipException: Another run has taken it, and no rows came since.
            AirflowException: The run has no partition key, or no event and no announcement says what to read.
        """
        asset = complete_hours_asset(self.pipeline, self.table)
        found = _event_of(context, self.pipeline, self.table)
        store, key = context["asset_state_store"][asset], _taken_key(context)
        now = take(_taken(store.get(key)), found["hour"], found["number"], _short(context))
        if now is None:
            raise AirflowSkipException(
                f"another run has already taken {found['hour']} of {self.table}, and no rows have landed since"
            )
        store.set(key, {"since": now.since, "hours": {hour: list(by) for hour, by in now.hours.items()}})
        return found


class AskForMissedHoursOperator(TriggerDagRunOperator):
    """Has ``hours__<pipeline>`` announce again what this DAG missed while it was paused; skips where that is nothing.

    Args:
        pipeline: Its name.
        table: Id of the table.
        take_task_id: The task that took the hour.
    """

    def __init__(self, *, pipeline: str, table: str, take_task_id: str, **kwargs: Any) -> None:
        asset = complete_hours_asset(pipeline, table)
        super().__init__(trigger_dag_id=f"hours__{pipeline}", inlets=[asset], max_active_tis_per_dag=1, **kwargs)
        self.pipeline = pipeline
        self.table = table
        self.take_task_id = take_task_id

    def execute(self, context: Context) -> None:
        """Ask.

        Raises:
            AirflowSkipException: Nothing was missed.
        """
        taken_hour = context["ti"].xcom_pull(task_ids=self.take_task_id)
        hours = read_complete_hours(control_of(self.pipeline, load_settings())) or CompleteHours()
        store = context["asset_state_store"][complete_hours_asset(self.pipeline, self.table)]
        taken, asked_key, now = _taken(store.get(_taken_key(context))) or TakenHours(), _asked_key(context), time.time()
        asked = {hour: (int(number), float(at)) for hour, (number, at) in (store.get(asked_key) or {}).items()}
        wanted = missed(taken, after(hours, self.table, 0), taken_hour["number"], asked, now)
        if not wanted:
            raise AirflowSkipException("no hour was missed")
        latest = sorted({**asked, **{one.hour: (one.number, now) for one in wanted}}.items(), key=lambda one: one[1][1])
        store.set(asked_key, {hour: list(by) for hour, by in latest[-KEPT_HOURS:]})
        self.log.info("missed and asked for: %s", ", ".join(one.hour for one in wanted))
        self.conf = {"table": self.table, "hours": [one.hour for one in wanted]}
        super().execute(context)  # type: ignore[arg-type]


def _taken_key(context: Context) -> str:
    """Return where, in the asset's store, stands what the DAG of a task took."""
    return f"taken/{context['dag'].dag_id}"


def _asked_key(context: Context) -> str:
    """Return where, in the asset's store, stands what the DAG of a task asked for."""
    return f"asked/{context['dag'].dag_id}"


def _event_of(context: Context, pipeline: str, table: str) -> dict[str, Any]:
    """Return the newest of the events that made the run; of a run by hand, what is announced of its hour."""
    key = context["dag_run"].partition_key
    if not key:
        raise AirflowException("the run has no partition key: trigger it with one, such as 2026-11-25T10")
    asset = complete_hours_asset(pipeline, table)
    events = context.get("triggering_asset_events") or {}
    extras = [event.extra for event in events.get(asset, ()) if event.extra.get("hour") == key]
    if extras:
        return dict(max(extras, key=lambda extra: int(extra["number"])))
    hours = read_complete_hours(control_of(pipeline, load_settings())) or CompleteHours()
    for one in after(hours, table, 0):
        if one.hour == key:
            return told(hours, pipeline, table, one)
    raise AirflowException(f"{key} of {table} is not complete yet, or was announced too long ago")


def _taken(stored: Any) -> TakenHours | None:
    if not stored:
        return None
    return TakenHours(int(stored["since"]), {hour: (int(number), str(by)) for hour, (number, by) in stored["hours"].items()})


def _short(context: Context) -> str:
    return sha256(context["dag_run"].run_id.encode()).hexdigest()[:8]
