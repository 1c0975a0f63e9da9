"""Tells people what is wrong, once, and that it is over: a round of alerts every minute.

It looks at the pipelines' folders of state and at what doctor, validation, maintenance and the streams found, and sends by the
channels of `include/alerts.yaml` (without that file: the connection `lakebound_webhook`). A message that a channel does not
take stays, and is tried again. It asks neither tables nor Kafka. `lakebound alerts` lists what is open.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable

from lakebound_airflow.defaults import TASK_DEFAULTS
from lakebound_airflow.operators.alerts import AlertsOperator

with DAG(
    dag_id="alerts",
    description="Tells people what is wrong, once, and that it is over",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("* * * * *", timezone="UTC", run_immediately=timedelta(minutes=1)),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=TASK_DEFAULTS,
    tags=["lakebound", "alerts"],
):
    AlertsOperator(task_id="round", execution_timeout=timedelta(minutes=5))
