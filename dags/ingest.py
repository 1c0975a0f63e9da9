"""Lands a pipeline's topics in its tables.

`stream` has the Spark application in its care: it starts it, or finds it running, and is deferred as long as it runs.
While the pipeline is stopped or held it stays deferred and nothing runs. Clear or mark the task to stop the application
gracefully; stop the pipeline with its `control__` DAG. Pausing this DAG keeps the application running and keeps it from
being started again.

`guard` fails the run only when the application failed without having landed a record. The next start is made after a pause,
which grows with each such run; after so many of them in a row Airflow pauses the DAG, and the webhook is called.
"""

from __future__ import annotations

from airflow.sdk import DAG

from lakebound_airflow.defaults import START_DATE, TASK_DEFAULTS, describe, tags
from lakebound_airflow.operators.guard import CrashLoopGuard
from lakebound_airflow.operators.stream import StreamOperator
from lakebound_airflow.pipelines import valid_specs

for spec in valid_specs():
    with DAG(
        dag_id=f"ingest__{spec.pipeline}",
        description=spec.description or f"Lands {', '.join(spec.topics)}",
        doc_md=describe(__doc__, spec),
        schedule="@continuous" if spec.runs_continuously else spec.schedule,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        max_consecutive_failed_dag_runs=spec.limits.max_failed_starts,
        default_args=TASK_DEFAULTS,
        tags=tags("ingest", spec),
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
