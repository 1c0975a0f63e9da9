"""The operators behind ``maintain__<pipeline>``: look whether there is something to do, and do it in one Spark application."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError
from lakebound.landing.spark_command import app_name, spark_environment
from lakebound.settings import Settings, load_settings
from lakebound.tables.places import places_of
from lakebound_airflow.hooks.spark_submit import NiceSparkSubmitHook
from lakebound_airflow.pipelines import control_of, spec_of

if TYPE_CHECKING:
    from lakebound.operations.maintenance.steps import MaintenancePlan, RunReport
    from lakebound.operations.maintenance.submission import MaintenanceOrders

MAINTENANCE_CONN_ID = "lakebound_maintenance"

Context = Mapping[str, Any]


class StepsFailedError(LakeboundError):
    """Steps of a maintenance run failed."""

    def __init__(self, report: RunReport) -> None:
        failed = [step for step in report.steps if step.outcome == "failed"]
        lines = [f"{step.step.table}: {step.step.kind}: {step.problem}" for step in failed]
        super().__init__(
            f"maintenance of {report.pipeline}: {len(failed)} of {len(report.steps)} steps failed; no record was lost, and "
            f"the next run tries them again\n" + "\n".join(lines)
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
        from lakebound.operations.maintenance.planning import plan_now

        settings = load_settings()
        spec, places = spec_of(self.pipeline, settings), places_of(settings)
        plan: MaintenancePlan = plan_now(spec, places)
        record_health_now(spec, places)
        for warning in plan.warnings:
            self.log.warning(warning)
        for line in plan.left:
            self.log.info("left alone: %s", line)
        for step in plan.steps:
            self.log.info("%s: %s: %s", step.table, step.kind, step.reason)
        if not plan.steps:
            raise AirflowSkipException(f"nothing is due for {self.pipeline}")
        return plan.model_dump(mode="json")


class MaintainOperator(SparkSubmitOperator):
    """Maintains one pipeline's tables; XCom and asset events: what each step did. The application plans anew by itself.

    It runs on one core at the lowest priority. It may be killed anywhere, and be run again.

    Args:
        pipeline: Its name.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#d5e8d4"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        # What it is asked to do is settled when it runs; a retry finds the tables as they then are.
        super().__init__(conn_id=MAINTENANCE_CONN_ID, **kwargs)
        self.pipeline = pipeline
        self.durable = False

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run it.

        Raises:
            AirflowSkipException: Another maintenance run of the pipeline is under way.
            StepsFailedError: Steps failed; those that were only slower than the stream are no failure.
        """
        from lakebound.landing.batch_command import ANOTHER_RUN
        from lakebound.operations.maintenance.past_reading import read_run
        from lakebound.operations.maintenance.submission import APPLICATION, maintenance_orders

        settings = load_settings()
        control = control_of(self.pipeline, settings)
        spec = spec_of(self.pipeline, settings)
        run_id = f"maintain-{self.pipeline}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{context['ti'].try_number}"
        self._hook = hook = self._nice_hook(maintenance_orders(spec, settings, run_id), settings)
        try:
            hook.submit(str(settings.apps / APPLICATION))
        except AirflowException:
            if hook.exit_code == ANOTHER_RUN:
                raise AirflowSkipException(f"another maintenance run of {self.pipeline} is under way") from None
            if not (found := read_run(control, run_id)):
                self._record_end(control, run_id, f"it ended with exit code {hook.exit_code} and without its report")
                raise
            raise StepsFailedError(found) from None
        report = read_run(control, run_id)
        if report is None:
            self._record_end(control, run_id, "it ended without its report")
            raise AirflowException(f"maintenance run {run_id} ended without its report; its log is above")
        self._announce(context, report)
        return report.model_dump(mode="json")

    def _record_end(self, control: ControlFolder, run_id: str, problem: str) -> None:
        """Keep that a run died, for the alerts; a folder that cannot be written hides no reason."""
        from lakebound.operations.maintenance.past_reading import record_run
        from lakebound.operations.maintenance.steps import RunReport

        now_ms = time.time_ns() // 1_000_000
        report = RunReport(pipeline=self.pipeline, run_id=run_id, started_at_ms=now_ms, ended_at_ms=now_ms, problem=problem)
        try:
            record_run(control, report)
        except OSError as exc:
            self.log.error("the end of %s could not be recorded: %s", run_id, exc)

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

    def _nice_hook(self, orders: MaintenanceOrders, settings: Settings) -> NiceSparkSubmitHook:
        from lakebound.landing.batch_command import DRIVER_MEMORY, MASTER, batch_conf
        from lakebound.operations.maintenance.submission import maintenance_arguments

        return NiceSparkSubmitHook(
            environment=spark_environment(settings),
            default_master=MASTER,
            conf=batch_conf(orders, settings),
            conn_id=self._conn_id,
            driver_memory=DRIVER_MEMORY,
            name=app_name(orders.app_id),
            application_args=maintenance_arguments(orders),
        )
