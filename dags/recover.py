"""Repairs a pipeline in five steps: plan, approval, apply, doctor, proof.

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

The task `plan` writes nothing. The task `approve` shows the plan and waits under *Required Actions* for at most twelve hours.
Nothing is applied if the plan is rejected, if the approval times out, or if the facts have changed since. An applied plan is
recorded as an incident (`lakebound incidents`).
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param

from lakebound_airflow.defaults import TASK_DEFAULTS
from lakebound_airflow.operators.health import HealthOperator
from lakebound_airflow.operators.prove import ProveOperator
from lakebound_airflow.operators.recover import ACTIONS, ApplyRepairOperator, PlanRepairOperator
from lakebound_airflow.pipelines import valid_specs

APPROVAL_TIMEOUT = timedelta(hours=12)

with DAG(
    dag_id="recover",
    description="Plans a repair, waits for approval, applies it, then examines and proves the pipeline",
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
        "deep": Param(
            True,
            type="boolean",
            title="Deep proof",
            description_md="The proof at the end checks the rows, not only the ledgers.",
        ),
    },
):
    plan = PlanRepairOperator(task_id="plan")
    approve = ApprovalOperator(
        task_id="approve",
        subject="{{ params.action }} {{ params.pipeline }}",
        body="{{ ti.xcom_pull(task_ids='plan')['markdown'] }}",
        response_timeout=APPROVAL_TIMEOUT,
    )
    apply = ApplyRepairOperator(task_id="apply", plan_task_id="plan", approval_task_id="approve")
    doctor = HealthOperator(task_id="doctor", pipeline="{{ params.pipeline }}")
    prove = ProveOperator(task_id="prove", pipeline="{{ params.pipeline }}")
    plan >> approve >> apply >> doctor >> prove
