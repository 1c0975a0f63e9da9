"""The operators behind the DAG ``recover``: plan what the form asks for, and apply what was approved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, get_args

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator

from lakebound.errors import LakeboundError
from lakebound.operations.recovery.plan import RequestedRepair
from lakebound.settings import load_settings
from lakebound_airflow.pipelines import spec_of

ACTIONS: list[str] = list(get_args(RequestedRepair))
"""What the DAG's form offers."""

Context = Mapping[str, Any]


class NotApprovedError(LakeboundError):
    """The task that applies a plan runs, and nobody has approved the plan in this run."""

    def __init__(self, pipeline: str, task_id: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: nothing was applied, because the task {task_id} has no approval; marking that task as "
            f"success does not approve the plan. Trigger the DAG again"
        )


class PlanRepairOperator(BaseOperator):
    """Plans what the run's form asks for; XCom: ``form``, ``hash``, ``markdown`` and ``plan``. Writes nothing."""

    ui_color = "#dae8fc"

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan it.

        Raises:
            PlanRefusedError: There is nothing to do, or it would do harm.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.operations.recovery.form import RepairForm, plan_repair

        settings, now_ms = load_settings(), round(time.time() * 1000)
        asked = RepairForm.model_validate(dict(context["params"]))
        spec = spec_of(asked.pipeline, settings)
        form = asked.settled(spec, settings, now_ms)
        plan = plan_repair(form, spec, settings, now_ms)
        self.log.info("plan %s\n%s", plan.hash, plan.markdown())
        return {
            "form": form.model_dump(mode="json"),
            "hash": plan.hash,
            "markdown": plan.markdown(),
            "plan": plan.model_dump(mode="json"),
        }


class ApplyRepairOperator(BaseOperator):
    """Applies the plan that was approved, if its facts still hold; XCom: the incident.

    It trusts the answer of the approval and the form of the plan, never the run's parameters or the state of a task.

    Args:
        plan_task_id: Of the ``PlanRepairOperator``.
        approval_task_id: Of the ``ApprovalOperator``.
    """

    ui_color = "#ffe6cc"

    def __init__(self, *, plan_task_id: str, approval_task_id: str, **kwargs: Any) -> None:
        # A person looks at an interrupted repair before it is done again.
        kwargs["retries"] = 0
        super().__init__(**kwargs)
        self.plan_task_id = plan_task_id
        self.approval_task_id = approval_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Apply it.

        Raises:
            NotApprovedError: Nobody approved it.
            PlanChangedError: The facts have changed since; nothing was applied.
            PlanRefusedError: There is no such plan any more, as when it was applied before; nothing was applied.
        """
        from lakebound.operations.recovery.form import RepairForm, apply_repair

        planned = context["ti"].xcom_pull(task_ids=self.plan_task_id)
        form = RepairForm.model_validate(planned["form"])
        by = approver(context["ti"].xcom_pull(task_ids=self.approval_task_id))
        if by is None:
            raise NotApprovedError(form.pipeline, self.approval_task_id)
        settings = load_settings()
        spec = spec_of(form.pipeline, settings)
        incident = apply_repair(form, spec, settings, planned["hash"], round(time.time() * 1000), by=by)
        self.log.info("%s; incident %s", incident.outcome, incident.id)
        return incident.model_dump(mode="json")


def approver(answer: Any) -> str | None:
    """Return who approved, from the answer that an ``ApprovalOperator`` left; None where it is no approval."""
    if not isinstance(answer, Mapping) or list(answer.get("chosen_options") or ()) != [ApprovalOperator.APPROVE]:
        return None
    user = answer.get("responded_by_user")
    name = (user.get("name") or user.get("id")) if isinstance(user, Mapping) else user
    return str(name) if name else None
