"""The operator behind the DAG ``recover``: one task plans, asks a person, and applies what that person approved."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Never, get_args

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput

from lakebound.operations.recovery.approval import REJECT, ApprovalRule, NotApprovedError, approved_hash, options_for
from lakebound.operations.recovery.plan import RequestedRepair
from lakebound.settings import load_settings, self_approval_is_allowed
from lakebound.spec.pipeline import PipelineSpec
from lakebound_airflow.pipelines import spec_of

if TYPE_CHECKING:
    from airflow.sdk.api.datamodels._generated import HITLDetailRequest

    from lakebound.operations.backfill.running import RunningBackfill

ACTIONS: list[str] = list(get_args(RequestedRepair))
"""What the DAG's form offers."""

Context = Mapping[str, Any]

_POLL_SECONDS = 1.0


class RepairOperator(HITLOperator):
    """Plans what the run's form asks for, waits until a person approves that plan, and applies it; XCom: the incident.

    The possible answers are "Approve HASH" and "Reject". Airflow keeps question and answer in its database, and hands the
    answer to ``execute_complete``. Neither goes through XCom, which other tasks and users may write. So only the plan that a
    person chose can be applied. A task that is cleared plans and asks again. A task that is marked as success, or that nobody
    answers in time, applies nothing.

    Args:
        response_timeout: How long it waits for the answer.
    """

    ui_color = "#ffe6cc"
    template_fields = ()

    def __init__(self, *, response_timeout: timedelta, **kwargs: Any) -> None:
        # A person looks at an interrupted repair before it is done again.
        kwargs["retries"] = 0
        super().__init__(subject="A repair", options=[REJECT], response_timeout=response_timeout, **kwargs)
        self._running: RunningBackfill | None = None

    def execute(self, context: Context) -> Never:
        """Plan, and ask. Writes nothing.

        Raises:
            LakeboundError: There is nothing to do, or it would do harm.
            NotApprovedError: Nobody could approve it.
            TaskAwaitingInput: How Airflow is told to wait for the answer.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.operations.form.asked import RepairForm
        from lakebound.operations.form.kinds import plan_repair

        settings, now_ms = load_settings(), round(time.time() * 1000)
        asked = RepairForm.model_validate(dict(context["params"]))
        spec = spec_of(asked.pipeline, settings)
        rule = _rule(spec, context)
        rule.check_can_be_asked()
        plan = plan_repair(asked.settled(spec, settings, now_ms), spec, settings, now_ms)
        form = plan.form
        self.subject = f"{form.action} {form.pipeline}"
        self.body = f"{plan.page}\n\n{rule.sentence()}"
        self.options = options_for(plan.hash)
        assigned = rule.eligible if _ids_are_names() else ()
        self.log.info("plan %s\n%s", plan.hash, self.body)
        self._ask(context, form.pipeline, assigned)
        # The form is settled: it plans the same whenever it is read. The run's own parameters are not looked at again.
        raise TaskAwaitingInput(
            method_name="execute_complete", kwargs={"form": form.model_dump(mode="json")}, timeout=self.response_timeout
        )

    def execute_complete(  # type: ignore[override]  # Airflow passes what ``execute`` left beside the answer
        self, context: Context, event: dict[str, Any], form: dict[str, Any]
    ) -> dict[str, Any]:
        """Apply the plan that the answer names, if it is an approval and the plan's facts still hold.

        Args:
            context: Airflow's context of the task.
            event: The answer, as Airflow's database has it.
            form: The settled form of the plan.

        Raises:
            NotApprovedError: Nobody answered in time, or somebody who may not approve.
            AirflowSkipException: The plan was rejected.
            PlanChangedError: The facts have changed since; nothing was applied.
            PlanRefusedError: There is no such plan any more, as when it was applied before; nothing was applied.
            RedoNotCompletedError: A redo ended before all of the plan was done; the same plan does the rest.
        """
        from lakebound.operations.form.asked import RepairForm
        from lakebound.operations.form.kinds import Approval, apply_repair

        settled = RepairForm.model_validate(form)
        if "error" in event:
            raise NotApprovedError(settled.pipeline, f"nobody answered ({event['error_type']}). Trigger the DAG again")
        by, approved = _answered_by(event), approved_hash(event["chosen_options"])
        if approved is None:
            raise AirflowSkipException(
                f"pipeline {settled.pipeline!r}: {by or 'somebody'} rejected the plan; nothing was applied"
            )
        settings = load_settings()
        spec = spec_of(settled.pipeline, settings)
        rule = _rule(spec, context)
        approver = rule.checked(by)
        now_ms = round(time.time() * 1000)
        approval = Approval(approved, by=approver, asked_by=rule.asked_by, now_ms=now_ms, follow=self._follow)
        incident = apply_repair(settled, spec, settings, approval)
        self.log.info("%s; incident %s", incident.outcome, incident.id)
        return incident.model_dump(mode="json")

    def on_kill(self) -> None:
        """Ask an application that was started to end after its batch: it has a session of its own, and outlives the task."""
        if self._running is not None:
            self._running.ask_to_end(reason="its task in Airflow was ended", by="airflow")

    def _follow(self, running: RunningBackfill) -> int:
        """Wait until the application has ended, and return its exit code; what it says stays in its own log."""
        self._running, told = running, 0
        self.log.info("%s; its log: %s", running.orders.app_id, running.submission.log)
        while (code := running.process.poll()) is None:
            time.sleep(_POLL_SECONDS)
            with suppress(OSError, ValueError):  # how far it has got is only told
                result = running.progress()
                if result is not None and result.chunks_done > told:
                    told = result.chunks_done
                    self.log.info("batch %d of %d; %d records read", told, result.chunks, result.read)
        return code

    def _ask(self, context: Context, pipeline: str, assigned: Sequence[str]) -> None:
        """Write the question into Airflow's database, and refuse to wait when Airflow shows another one.

        The question of a task that was cleared stays as it was first asked (``upsert_hitl_detail`` in Airflow's execution API
        removes its answer only): a person would be shown the old plan.
        """
        from airflow.sdk.api.datamodels._generated import HITLUser
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

        question = CreateHITLDetailPayload(
            ti_id=context["ti"].id,
            options=self.options,
            subject=self.subject,
            body=self.body,
            params={},
            assigned_users=[HITLUser(id=name, name=name) for name in assigned],
        )
        shown = SUPERVISOR_COMMS.send(question)
        if not isinstance(shown, HITLDetailRequestResult) or _essence(shown) != _essence(question):
            raise NotApprovedError(
                pipeline, "the plan, or who may approve it, has changed since this run first asked. Trigger the DAG again"
            )


def _essence(question: HITLDetailRequest) -> tuple[list[str], list[str]]:
    """Return what makes two questions the same: the plan, and who may approve it. Estimates in the text may differ."""
    return question.options, [user.id for user in question.assigned_users or []]


def _answered_by(event: Mapping[str, Any]) -> str | None:
    """Return the name of who answered, as Airflow knows it; None where it does not say."""
    user = event.get("responded_by_user")
    return (user.get("name") or user.get("id")) if isinstance(user, Mapping) else None


def _rule(spec: PipelineSpec, context: Context) -> ApprovalRule:
    asked_by = context["dag_run"].triggering_user_name
    return ApprovalRule(spec.pipeline, asked_by, spec.approvers, self_approval_is_allowed())


def _ids_are_names() -> bool:
    """Return whether Airflow would compare ``approvers`` with who answers: it does so by ids, which elsewhere are numbers.

    Where they are not names, ``execute_complete`` compares after the answer.
    """
    return str(conf.get("core", "auth_manager", fallback="")).endswith(".SimpleAuthManager")
