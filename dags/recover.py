"""Repairs a pipeline in three tasks: `repair` (plan, approval, apply), `doctor`, `prove`.

| action | when |
| --- | --- |
| auto | the action that the doctor recommends |
| resume | the pipeline is held, in a crash loop or stalled, and the tables are correct |
| rebase | the ledger entries of a table do not match its rows: it was restored by hand, or another tool expired its history |
| accept_loss | Kafka has deleted offsets that were not landed |
| new_incarnation | a topic was deleted and created again |
| drop_zombie | an application must not write any more |
| repoint | an Iceberg catalog was restored from an older copy: it names older metadata than a table's newest |
| rewind, undo_rewind | the tables go back to a time, or the last rewind is undone |
| redo | after a bad deploy: the code on disk makes the rows of a range of offsets again, of the same records |
| undo_redo | the rows come back that the newest redo replaced |

The task `repair` first makes a plan and writes nothing. Then it shows the plan under *Required Actions* and waits for an answer
for at most twelve hours: *Approve* with the plan's hash, or *Reject*. It applies exactly the plan that was approved. It applies
nothing if the plan is rejected, if nobody answers in time, if the task is marked as success, or if the facts have changed
since. If the task is cleared, it plans and asks again.

A redo is a Spark application on the worker's machine, beside the stream or in a held pipeline; the task waits for its end. If
the task is ended, the application ends after its current batch. What it has committed stays: trigger the DAG again with the
same range, and it does the rest.

If the pipeline's YAML has `approvers`, only these users may approve. The user who triggered the run may not approve it
(`LAKEBOUND_SELF_APPROVAL=allow` permits that). An applied plan is recorded as an incident that names who asked and who approved
(`lakebound incidents`).
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from lakebound_airflow.defaults import TASK_DEFAULTS
from lakebound_airflow.operators.health import HealthOperator
from lakebound_airflow.operators.prove import ProveOperator
from lakebound_airflow.operators.recover import ACTIONS, RepairOperator
from lakebound_airflow.pipelines import valid_specs

APPROVAL_TIMEOUT = timedelta(hours=12)
BOUND = '`earliest`, `latest`, a time (`2026-11-20T14:05`, UTC, or `10m ago`) or offsets (`{"topic": {"0": 100}}`).'

with DAG(
    dag_id="recover",
    description="Plans a repair, waits for its approval, applies it, then examines and proves the pipeline",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    is_paused_upon_creation=False,
    default_args=TASK_DEFAULTS,
    tags=["lakebound", "recover"],
    params={
        "pipeline": Param(
            type="string",
            minLength=1,
            title="Pipeline",
            examples=[spec.pipeline for spec in valid_specs()],
            description_md="Name of the pipeline.",
        ),
        "action": Param(
            "auto", type="string", enum=ACTIONS, title="Action", description_md="See the documentation of this DAG."
        ),
        "to": Param(
            None,
            type=["null", "string"],
            title="Back to",
            description_md="Rewind: a time such as `2026-11-20T14:05` (UTC), or `10m ago`.",
            section="Rewind",
        ),
        "table": Param(
            None,
            type=["null", "string"],
            title="Only this table",
            description_md="Rewind: name or `format:name`. Empty: all tables and the quarantine.",
            section="Rewind",
        ),
        "source": Param(
            None,
            type=["null", "string"],
            title="What this code landed",
            description_md="Redo: hash of a version of the code, as `lakebound ledger PIPELINE --by-source` shows it.",
            section="Redo",
        ),
        "range_from": Param(
            None,
            type=["null", "string"],
            title="From",
            description_md=f"Redo, in place of a hash: {BOUND}",
            section="Redo",
        ),
        "range_to": Param(
            None,
            type=["null", "string"],
            title="To (exclusive)",
            description_md=f"Redo: {BOUND} Empty: `latest`.",
            section="Redo",
        ),
        "deep": Param(
            True,
            type="boolean",
            title="Deep proof",
            description_md="The proof at the end checks the rows, not only the ledgers.",
        ),
    },
):
    repair = RepairOperator(
        task_id="repair", task_display_name="repair: plan, approval, apply", response_timeout=APPROVAL_TIMEOUT
    )
    doctor = HealthOperator(task_id="doctor", pipeline="{{ params.pipeline }}")
    prove = ProveOperator(task_id="prove", pipeline="{{ params.pipeline }}")
    repair >> doctor >> prove
