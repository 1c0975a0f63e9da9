"""Lands a pipeline's topics in its tables.

The task `stream` supervises the Spark application: it starts the application, or attaches to a running one, and is deferred
while the application runs. While the pipeline is stopped or held, the task stays deferred and no application runs. Clear or
mark the task to stop the application gracefully. Stop the pipeline with `lakebound stop`, or with its `control__` DAG. If you
pause this DAG, the application keeps running, but it is not started again when it ends.

The task `guard` counts the runs in a row whose application failed and had landed no record. The next start follows after a
pause, which grows with each such run. The run that reaches `limits.max_failed_starts` is the last one: Airflow pauses the DAG,
and an alert is sent. When the cause is removed, use `lakebound start`, or unpause the DAG. Runs that were ended by an
outage (a broker, a catalog or a disk that does not answer) do not count: the next start follows by itself.
"""

from __future__ import annotations

from airflow.sdk import DAG

from lakebound.control.crash_loop import failed_runs_limit
from lakebound_airflow.defaults import START_DATE, pipeline_dag
from lakebound_airflow.operators.guard import CrashLoopGuard
from lakebound_airflow.operators.stream import StreamOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    with DAG(
        **pipeline_dag("ingest", spec, __doc__),
        description=spec.description or f"Lands {', '.join(spec.topics)}",
        schedule="@continuous" if spec.runs_continuously else spec.schedule,
        start_date=START_DATE,
        max_active_runs=1,
        max_consecutive_failed_dag_runs=failed_runs_limit(spec.limits.max_failed_starts),
    ):
        stream = StreamOperator(task_id="stream", pipeline=spec.pipeline)
        guard = CrashLoopGuard(
            task_id="guard",
            pipeline=spec.pipeline,
            limit=spec.limits.max_failed_starts,
            pause_seconds=spec.limits.failed_start_pause_seconds,
            stream_task_id="stream",
        )
        stream >> guard
