"""The operators behind ``maintain__<pipeline>``: look whether there is something to do, and do it in one Spark application."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
from lakebound.tables.places import places_of
from lakebound_airflow.backends.connection import with_connection
from lakebound_airflow.operators.batch import BatchOperator, BatchRun, Context
from lakebound_airflow.pipelines import spec_of

if TYPE_CHECKING:
    from lakebound.operations.maintenance.steps import MaintenancePlan, RunReport

MAINTENANCE_CONN_ID = "lakebound_maintenance"


class StepsFailedError(LakeboundError):
    """Steps of a maintenance run failed."""

    def __init__(self, report: RunReport) -> None:
        failed = [step for step in report.steps if step.outcome == "failed"]
        lines = [f"{step.step.table}: {step.step.kind}: {step.problem}" for step in failed]
        super().__init__(
            f"maintenance of {report.pipeline}: {len(failed)} of {len(report.steps)} steps failed. No record was lost, and "
            f"the next run tries the steps again:\n" + "\n".join(lines)
        )


class PlanMaintenanceOperator(BaseOperator):
    """Says what a maintenance run would do now; XCom: the plan. Skipped, with all that follows, where there is nothing to do.

    Args:
        pipeline: Its name.
    """

    ui_color = "#dae8fc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan it from the tables' metadata, and keep how healthy they are.

        Raises:
            AirflowSkipException: Nothing is due.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.operations.maintenance.health_look import record_health_now
        from lakebound.operations.maintenance.next_run import plan_and_note

        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        places = places_of(settings, spec.warehouse)
        plan: MaintenancePlan = plan_and_note(spec, places)
        record_health_now(spec, places)
        for warning in plan.warnings:
            self.log.warning(warning)
        if plan.left:
            self.log.info("left as they are: %d; lakebound maintain %s --plan says which", len(plan.left), self.pipeline)
        for step in plan.steps:
            self.log.info("%s: %s: %s", step.table, step.kind, step.reason)
        if not plan.steps:
            raise AirflowSkipException(f"nothing is due for {self.pipeline}")
        return _without_values(plan.model_dump(mode="json", exclude={"left"}))


class MaintainOperator(BatchOperator):
    """Maintains one pipeline's tables; XCom and asset events: what each step did. The application makes its own plan.

    Args:
        pipeline: Its name.
    """

    ui_color = "#d5e8d4"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, conn_id=MAINTENANCE_CONN_ID, verb="maintain", noun="maintenance run", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Run it.

        Raises:
            AirflowSkipException: Another maintenance run of the pipeline is under way.
            StepsFailedError: Steps failed; those that were only slower than the stream are no failure.
        """
        from lakebound.landing.batch_command import batch_conf
        from lakebound.operations.maintenance.past_reading import read_run
        from lakebound.operations.maintenance.submission import APPLICATION, maintenance_orders

        settings = load_settings()
        # What it is asked to do is settled when it runs; a retry finds the tables as they then are.
        spec, is_waited_for = spec_of(self.pipeline, settings), self.is_waited_for(context)
        orders = maintenance_orders(spec, settings, self.run_id(context), is_waited_for=is_waited_for)
        record_end = partial(self._record_end, orders.control, orders.app_id)
        installed = with_connection(self.conn_id, settings)
        run = BatchRun(APPLICATION, orders, batch_conf(orders, installed), read_run, record_end)
        report, ended_well = self.run_application(run, installed)
        if not ended_well:
            raise StepsFailedError(report)
        self._announce(context, report)
        return _without_values(report.model_dump(mode="json"))

    def _record_end(self, control: ControlFolder, run_id: str, problem: str) -> None:
        """Keep that a run died, for the alerts; a folder that cannot be written hides no reason."""
        from lakebound.operations.maintenance.past_reading import record_run
        from lakebound.operations.maintenance.steps import RunReport

        now_ms = time.time_ns() // 1_000_000
        report = RunReport(pipeline=self.pipeline, run_id=run_id, started_at_ms=now_ms, ended_at_ms=now_ms, problem=problem)
        try:
            record_run(control, report)
        except OSError as exc:
            self.log.error("the end of run %s could not be recorded: %s", run_id, exc)

    def _announce(self, context: Context, report: RunReport) -> None:
        """Give the events of the task's outlets what was done."""
        for outlet in self.outlets:
            done = [step for step in report.steps if step.outcome == "done"]
            context["outlet_events"][outlet].extra = {
                "pipeline": report.pipeline,
                "run_id": report.run_id,
                "steps": [f"{step.step.table}: {step.step.kind}: {step.files_before} -> {step.files_after}" for step in done],
                "bytes_rewritten": sum(step.bytes_rewritten for step in done),
                "conflicts": sum(step.conflicts for step in report.steps),
            }


def _without_values(body: dict[str, Any]) -> dict[str, Any]:
    """Return a plan or a report without partitions and paths: what a record holds may be a partition's name."""
    for found in body["steps"]:
        found.pop("removed", None)
        found.get("step", found).pop("partition", None)
    return body
