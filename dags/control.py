"""Sets the desired state of a pipeline, and waits until the pipeline has reached it.

The command `lakebound control` does the same, also while Airflow's scheduler is down.

| action | what happens |
| --- | --- |
| start | the application runs; this also ends a hold |
| stop | the application ends after the current batch, and is not started again |
| hold | like stop; only *start* or *stop* ends the hold, and restart, bounded run and repair are refused |
| restart | the application ends after the current batch and starts again with the current YAML and transform |
| bounded_run | lands records up to the given offsets (exclusive) or the given time, then stops |

`freshness` replaces the freshness in the pipeline's YAML until the next action. Leave it empty to use the YAML.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from lakebound_airflow.defaults import START_DATE, pipeline_dag
from lakebound_airflow.operators.control import ACTIONS, ControlOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    with DAG(
        **pipeline_dag("control", spec, __doc__),
        description=f"Starts, stops, restarts or holds {spec.pipeline}",
        schedule=None,
        start_date=START_DATE,
        is_paused_upon_creation=False,
        params={
            "action": Param(
                "restart",
                type="string",
                enum=ACTIONS,
                title="Action",
                description_md="What the pipeline must do.",
            ),
            "freshness": Param(
                None,
                type=["null", "string"],
                title="Freshness",
                description_md=f"Replaces `{spec.freshness}` of the YAML: `500ms`, `real_time`, `available_now` and so on.",
            ),
            "offsets": Param(
                None,
                type=["null", "object"],
                title="Until offsets",
                description_md='Bounded run: `{"topic": {"0": 1200}}`, exclusive.',
                section="Bounded run",
            ),
            "until_time": Param(
                None,
                type=["null", "string"],
                format="date-time",
                title="Until time",
                description_md="Bounded run: land the records that are older than this time.",
                section="Bounded run",
            ),
            "reason": Param("", type="string", title="Reason", description_md="Shown in `lakebound status`."),
            "wait_seconds": Param(600, type="number", exclusiveMinimum=0, title="Maximum wait (s)"),
        },
    ):
        ControlOperator(task_id="control", pipeline=spec.pipeline)
