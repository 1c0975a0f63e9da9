"""Maintains a pipeline's tables: compacts files, rewrites manifests, expires history, and finds orphan files.

It runs after a number of commits or after a time, as the `maintenance` block of the pipeline's YAML says. The task `plan` reads
only metadata, and skips the task `run` when nothing is due. `run` is one Spark application on one core with the lowest
priority. Each of its commits keeps the ledger entry of the table. It removes nothing that the ledger, a rewind or a registered
reader still needs. It can be killed at any time and run again. The connection `lakebound_maintenance` sets the Spark to use
(default: this machine). The pool of the same name limits how many of these tasks run at the same time.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, AssetOrTimeSchedule, DeltaTriggerTimetable

from lakebound.spec.maintenance import MAINTENANCE_POOL
from lakebound_airflow.assets import maintained_asset, maintenance_asset
from lakebound_airflow.defaults import START_DATE, pipeline_dag
from lakebound_airflow.operators.maintain import MaintainOperator, PlanMaintenanceOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    policy = spec.maintenance
    if not policy.enabled:
        continue
    due = maintenance_asset(spec.pipeline, spec.main_table.id, every_commits=policy.every_commits)
    with DAG(
        **pipeline_dag("maintain", spec, __doc__),
        description=f"Compacts, expires and cleans up the tables of {spec.pipeline}",
        schedule=AssetOrTimeSchedule(timetable=DeltaTriggerTimetable(timedelta(seconds=policy.every_seconds)), assets=[due]),
        start_date=START_DATE,
        max_active_runs=1,
        is_paused_upon_creation=False,
    ):
        plan = PlanMaintenanceOperator(task_id="plan", pipeline=spec.pipeline, pool=MAINTENANCE_POOL)
        run = MaintainOperator(
            task_id="run",
            pipeline=spec.pipeline,
            pool=MAINTENANCE_POOL,
            priority_weight=1,
            execution_timeout=timedelta(hours=6),
            outlets=[maintained_asset(spec.pipeline)],
        )
        plan >> run
