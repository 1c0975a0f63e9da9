"""Proves that every readable offset was landed, filtered or quarantined exactly once. It runs hourly and on demand.

With `deep` it checks the rows of the tables, not only their ledgers; for this it reads the offset columns of the tables. The
task fails if offsets are missing or duplicated, and names them.
"""

from __future__ import annotations

from datetime import timedelta
from zlib import crc32

from airflow.sdk import DAG, CronTriggerTimetable, Param

from lakebound_airflow.defaults import pipeline_dag
from lakebound_airflow.operators.prove import ProveOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    # Each at a minute of its own, so that not all prove at once; and without a start date, which would have Airflow make
    # up for the hour before a pipeline was there.
    minute = crc32(spec.pipeline.encode()) % 60
    with DAG(
        **pipeline_dag("prove", spec, __doc__),
        description=f"Proves that {spec.pipeline} landed every record exactly once",
        schedule=CronTriggerTimetable(f"{minute} * * * *", timezone="UTC", run_immediately=timedelta(minutes=2)),
        max_active_runs=1,
        is_paused_upon_creation=False,
        params={"deep": Param(False, type="boolean", title="Deep", description_md="Check the rows, not only the ledgers.")},
    ):
        ProveOperator(task_id="prove", pipeline=spec.pipeline)
