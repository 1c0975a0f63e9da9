"""Keeps a pipeline's tables small: compacts files, rewrites manifests, expires history, looks for orphans.

Runs after so many commits, or after so long, by the `maintenance` block of the pipeline's YAML. `plan` looks at metadata only,
and skips the rest when nothing is due. `run` is one Spark application on one core at the lowest priority; each of its commits
carries the ledger's entry on, and it takes nothing away that the ledger, a rewind or a registered reader still needs. It may be
killed anywhere and run again. The connection `lakebound_maintenance` says on which Spark (without it: on this machine); the
pool of the same name how many of these run at a time.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, AssetOrTimeSchedule, DeltaTriggerTimetable

from lakebound.spec.maintenance import MAINTENANCE_POOL
from lakebound_airflow.assets import maintained_asset, maintenance_asset
from lakebound_airflow.defaults import START_DATE, TASK_DEFAULTS, describe, tags
from lakebound_airflow.operators.maintain import MaintainOperator, PlanMaintenanceOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    policy = spec.maintenance
    if not policy.enabled:
        continue
    due = maintenance_asset(spec.pipeline, spec.tables[0].id, every_commits=policy.every_commits)
    with DAG(
        dag_id=f"maintain__{spec.pipeline}",
        description=f"Keeps the tables of {spec.pipeline} small",
        doc_md=describe(__doc__, spec),
        schedule=AssetOrTimeSchedule(timetable=DeltaTriggerTimetable(timedelta(seconds=policy.every_seconds)), assets=[due]),
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args=TASK_DEFAULTS,
        tags=tags("maintain", spec),
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
