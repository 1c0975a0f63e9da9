"""Sends alerts: a message when a problem begins, and a message when it is resolved. It runs every minute.

It reads the pipelines' files, their state folders, and the findings of the doctor, validation, maintenance and the streams. It
sends messages through the channels of `include/alerts.yaml`; without that file, through the connection `lakebound_webhook`. A
message that a channel does not accept is kept and sent again. The first run after 00:10 UTC also makes
the daily report of all pipelines (`lakebound report`) and sends it. This DAG reads neither tables nor Kafka. `lakebound alerts`
lists the open alerts.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable

from lakebound_airflow.defaults import TASK_DEFAULTS
from lakebound_airflow.operators.alerts import AlertsOperator

with DAG(
    dag_id="alerts",
    description="Sends a message when a problem begins and when it is resolved",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("* * * * *", timezone="UTC", run_immediately=timedelta(minutes=1)),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=TASK_DEFAULTS,
    tags=["lakebound", "alerts"],
):
    AlertsOperator(task_id="round", execution_timeout=timedelta(minutes=5))
