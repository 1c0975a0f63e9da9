"""Announces the hours of the tables that are complete: an asset event per table and hour.

An hour is complete when it is over, `complete_hours.grace` has passed, and everything that Kafka had by then has landed. The
application finds that out. A DAG that is scheduled with `lakebound_airflow.complete_hours.complete_hours` then runs for exactly
that hour. If rows land later for an hour that was announced, there is a further event. A run that has nothing to announce is
skipped.

If you trigger this DAG with `hours`, it announces these hours again. DAGs that missed hours while they were paused ask for this
by themselves.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from lakebound_airflow.assets import complete_hours_asset, hours_due_asset
from lakebound_airflow.defaults import START_DATE, pipeline_dag
from lakebound_airflow.operators.complete_hours import AnnounceHourOperator, DueHoursOperator, RecordHoursOperator
from lakebound_airflow.pipelines import valid_specs

RETRIES = {"retries": 3, "retry_delay": timedelta(seconds=10)}

for spec in valid_specs():
    if spec.complete_hours is None:
        continue
    tables = [table.id for table in spec.tables]
    with DAG(
        **pipeline_dag("hours", spec, __doc__, **RETRIES),
        description=f"Announces complete hours of the tables of {spec.pipeline}",
        schedule=[hours_due_asset(spec.pipeline)],
        start_date=START_DATE,
        max_active_runs=1,
        is_paused_upon_creation=False,
        params={
            "table": Param(None, type=["null", "string"], enum=[None, *tables], title="Table", section="Announce again"),
            "hours": Param(
                None,
                type=["null", "array"],
                title="Hours",
                description_md="Such as 2026-11-25T10, or 2026-11-25 with `unit: day`; one per line.",
                section="Announce again",
            ),
        },
    ):
        for table in tables:
            name = table.replace(":", "_", 1)
            due = DueHoursOperator(task_id=f"due_{name}", pipeline=spec.pipeline, table=table)
            announce = AnnounceHourOperator.partial(
                task_id=f"announce_{name}",
                pipeline=spec.pipeline,
                table=table,
                outlets=[complete_hours_asset(spec.pipeline, table)],
                # One after the other: DAGs get the hours in their order, and SQLite is not fought for.
                max_active_tis_per_dagrun=1,
                map_index_template="{{ task.announcement['hour'] }}",
            ).expand(announcement=due.output)
            record = RecordHoursOperator(task_id=f"record_{name}", pipeline=spec.pipeline, table=table, announced=due.output)
            announce >> record
