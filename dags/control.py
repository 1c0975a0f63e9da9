"""Says what a person wants of a pipeline, and waits until it is so.

| action | what happens |
| --- | --- |
| start | the application runs; also ends a hold |
| stop | the batch in flight ends, then the application; nothing starts it again |
| hold | as stop, and only *start* or *stop* ends it: no restart, no bounded run, no repair |
| restart | the application ends at a batch boundary and starts with the YAML and the transform as they are now |
| bounded_run | lands up to the offsets (exclusive) or the time given, then stops |

`freshness` overrides the pipeline's own line until the next action; empty means its own line.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from lakebound_airflow.defaults import START_DATE, TASK_DEFAULTS, describe, tags
from lakebound_airflow.operators.control import ACTIONS, ControlOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    with DAG(
        dag_id=f"control__{spec.pipeline}",
        description=f"Starts, stops, restarts, holds {spec.pipeline}",
        doc_md=describe(__doc__, spec),
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        is_paused_upon_creation=False,
        default_args=TASK_DEFAULTS,
        tags=tags("control", spec),
        params={
            "action": Param(
                "restart",
                type="string",
                enum=ACTIONS,
                title="Action",
                description_md="What is wanted of the pipeline.",
            ),
            "freshness": Param(
                None,
                type=["null", "string"],
                title="Freshness",
                description_md=f"Instead of its own `{spec.freshness}`: an interval such as `500ms`, or `available_now`.",
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
                description_md="Bounded run: records older than this time are landed.",
                section="Bounded run",
            ),
            "reason": Param("", type="string", title="Reason", description_md="For whoever looks at it next."),
            "wait_seconds": Param(600, type="number", exclusiveMinimum=0, title="Wait for how long (s)"),
        },
    ):
        ControlOperator(task_id="control", pipeline=spec.pipeline)
