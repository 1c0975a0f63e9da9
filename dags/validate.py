"""Validates landed rows soon after their commit, each commit once, with `include/expectations/<pipeline>.yaml`.

It runs when the pipeline's first table has new commits, at most every `every_seconds`, and on demand. One Spark application on
one core with the lowest priority reads exactly the files that the commits added, and Great Expectations checks their rows. A
failed expectation becomes a finding and an alert. The task itself fails only when something could not be validated.

If you trigger this DAG without parameters, it validates what is due. With a table, a suite or versions, it validates that range
again and prints the result, but does not record it and does not act on it. The connection `lakebound_validation` sets the Spark
to use (default: this machine).
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from lakebound_airflow.assets import validated_asset, validation_asset
from lakebound_airflow.defaults import START_DATE, pipeline_dag
from lakebound_airflow.operators.validate import ValidateOperator
from lakebound_airflow.pipelines import expectations_of, valid_specs

for spec in valid_specs():
    expected = expectations_of(spec)
    if expected is None or not spec.tables:
        continue
    tables = [table.id for table in spec.tables]
    suites = sorted({one.suite for one in expected.expectations})
    due = validation_asset(spec.pipeline, spec.tables[0].id, every_seconds=expected.every_seconds)
    with DAG(
        **pipeline_dag("validate", spec, __doc__),
        description=f"Validates the rows that landed in the tables of {spec.pipeline}",
        schedule=[due],
        start_date=START_DATE,
        max_active_runs=1,
        is_paused_upon_creation=False,
        params={
            "table": Param(
                None, type=["null", "string"], enum=[None, *tables], title="Table", section="Validate a range again"
            ),
            "suite": Param(
                None, type=["null", "string"], enum=[None, *suites], title="Suite", section="Validate a range again"
            ),
            "first": Param(
                None,
                type=["null", "string"],
                title="From version",
                description_md="Delta version or Iceberg snapshot id. If the pipeline has several tables, give the table, too.",
                section="Validate a range again",
            ),
            "last": Param(None, type=["null", "string"], title="To version", section="Validate a range again"),
        },
    ):
        ValidateOperator(
            task_id="validate",
            pipeline=spec.pipeline,
            priority_weight=1,
            execution_timeout=timedelta(hours=2),
            outlets=[validated_asset(spec.pipeline)],
        )
