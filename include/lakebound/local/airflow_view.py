"""What can be seen of Airflow from here, and the one thing that ``lakebound start`` does there."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime

import httpx

from lakebound.control.starters import AirflowView
from lakebound.errors import LakeboundError
from lakebound.local.airflow_client import AirflowClient
from lakebound.local.stack import airflow_of
from lakebound.settings import Settings


def look_at_airflow(settings: Settings, pipeline: str, *, unpause: bool) -> AirflowView:
    """Return Airflow as it is seen from here; an Airflow that cannot be reached is a view, too, and no error.

    Args:
        settings: This machine's.
        pipeline: Its ingest DAG is looked at.
        unpause: Whether to unpause it.
    """
    airflow = airflow_of(settings)
    if airflow.record is None:
        return AirflowView(f"no Airflow was started from {settings.home}")
    if not airflow.is_running:
        return AirflowView(f"the embedded Airflow of {settings.home} does not run")
    try:
        with airflow.client() as client:
            return _look(client, f"ingest__{pipeline}", unpause=unpause)
    except (LakeboundError, httpx.HTTPError, OSError, ValueError) as exc:
        return AirflowView(f"Airflow cannot be reached ({exc})")


def _look(client: AirflowClient, dag_id: str, *, unpause: bool) -> AirflowView:
    scheduler = client.health().get("scheduler") or {}
    beat = scheduler.get("latest_scheduler_heartbeat")
    view = AirflowView(
        scheduler_is_alive=scheduler.get("status") == "healthy",
        scheduler_age_seconds=time.time() - datetime.fromisoformat(beat).timestamp() if beat else None,
        is_paused=client.is_paused(dag_id),
    )
    if not (view.is_paused and unpause):
        return view
    client.unpause(dag_id)
    return replace(view, is_paused=False, was_unpaused=True)
