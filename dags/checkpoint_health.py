"""Runs the doctor on every pipeline every five minutes: tables, ledger, Kafka, lease and application. It never writes.

A task fails only when a person must act; the error has the finding and the runbook. Findings that the next start repairs are in
the log and in the XCom `diagnosis`. If a run does not end in time, an alert is sent, because nobody watches the
pipelines then.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, AsyncCallback, CronTriggerTimetable, DeadlineAlert, DeadlineReference

from lakebound_airflow.defaults import TASK_DEFAULTS
from lakebound_airflow.notifications.alerts import health_is_late
from lakebound_airflow.operators.health import HEALTH_INTERVAL, HealthOperator
from lakebound_airflow.pipelines import valid_specs

pipelines = [spec.pipeline for spec in valid_specs()]

with DAG(
    dag_id="checkpoint_health",
    description="Checks every pipeline, and fails where a person must act",
    doc_md=__doc__,
    schedule=CronTriggerTimetable(
        f"*/{HEALTH_INTERVAL // timedelta(minutes=1)} * * * *", timezone="UTC", run_immediately=timedelta(minutes=2)
    ),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=TASK_DEFAULTS,
    tags=["lakebound", "health"],
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=2 * HEALTH_INTERVAL,
        callback=AsyncCallback(health_is_late, kwargs={"minutes": 2 * HEALTH_INTERVAL // timedelta(minutes=1)}),
        name="checkpoint_health is late",
    ),
):
    HealthOperator.partial(
        task_id="examine", map_index_template="{{ task.pipeline }}", execution_timeout=HEALTH_INTERVAL
    ).expand(pipeline=pipelines)
