"""Proves a pipeline's landing, hourly and by hand: is every readable offset landed, filtered or quarantined exactly once?

`deep` checks the rows of the tables, and not their ledgers only; that reads the tables' offset columns. The task fails
with what is missing or doubled.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from lakebound_airflow.assets import table_asset
from lakebound_airflow.defaults import START_DATE, TASK_DEFAULTS, describe, tags
from lakebound_airflow.operators.prove import ProveOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    with DAG(
        dag_id=f"prove__{spec.pipeline}",
        description=f"Proves that {spec.pipeline} landed every record once",
        doc_md=describe(__doc__, spec),
        schedule="@hourly",
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args=TASK_DEFAULTS,
        tags=tags("prove", spec),
        params={"deep": Param(False, type="boolean", title="Deep", description_md="Check rows, not ledgers only.")},
    ):
        ProveOperator(
            task_id="prove",
            pipeline=spec.pipeline,
            inlets=[table_asset(spec.pipeline, table.id) for table in spec.tables],
        )
