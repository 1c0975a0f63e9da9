"""The maintenance application of one pipeline: it looks at the tables, plans, and carries the plan out, all by itself.

It is told no plan: one that was made a while ago may be wrong by now. Spark's context is started when the first step needs it.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import suppress

from pyspark.sql import SparkSession

from lakebound.operations.maintenance.health_look import record_health_now
from lakebound.operations.maintenance.next_run import plan_and_note
from lakebound.operations.maintenance.past_reading import record_run
from lakebound.operations.maintenance.run import only_run, run_steps
from lakebound.operations.maintenance.steps import MaintenancePlan, RunReport, StepReport
from lakebound.operations.maintenance.submission import PROGRESS, MaintenanceOrders
from lakebound.operations.maintenance.table_engine import TableEngine
from lakebound_spark.jvm import obey_signals
from lakebound_spark.maintain.iceberg_actions import IcebergActions
from lakebound_spark.priority import lower_priority
from lakebound_spark.session import make_session

log = logging.getLogger(__name__)


class Maintenance:
    """One run."""

    def __init__(self, orders: MaintenanceOrders) -> None:
        self._orders = orders
        self._session: SparkSession | None = None
        self._asked = threading.Event()

    def plan(self) -> MaintenancePlan:
        """Return what a run would do now."""
        return plan_and_note(self._orders.spec, self._orders.places)

    def run(self) -> RunReport:
        """Run to the end, and return what was done; that is also added to the pipeline's reports.

        Raises:
            MaintenanceRunsError: Another run is under way.
            LakeboundError: What planning raises.
        """
        orders = self._orders
        self._go_behind()
        obey_signals(self._ask)
        with only_run(orders.control):
            plan = self.plan()
            log.info("%s%d steps for pipeline %s", PROGRESS, len(plan.steps), plan.pipeline)
            try:
                report = run_steps(
                    plan,
                    TableEngine(orders.control, orders.places, orders.app_id, self._start_spark),
                    {table.id: table for table in (*orders.spec.tables, orders.spec.quarantine_table)},
                    orders.control,
                    run_id=orders.app_id,
                    is_stopping=self._asked.is_set,
                    tell=_tell,
                    wait=self._wait,
                )
            finally:
                if self._session is not None:
                    with suppress(Exception):  # a JVM that died has no context to stop
                        self._session.stop()
            record_run(orders.control, report)
            record_health_now(orders.spec, orders.places)
        return report

    def _start_spark(self) -> IcebergActions:
        self._session = make_session(f"lakebound-maintain-{self._orders.spec.pipeline}")
        obey_signals(self._ask)
        self._go_behind()
        return IcebergActions(self._session, self._orders.places, self._orders.control)

    def _go_behind(self) -> None:
        if not self._orders.is_waited_for:
            lower_priority()

    def _wait(self, seconds: float) -> None:
        self._asked.wait(seconds)

    def _ask(self, number: signal.Signals) -> None:
        log.info("%s%s: ending after this step", PROGRESS, number.name)
        self._asked.set()


def _tell(report: StepReport) -> None:
    step = report.step
    line = f"{PROGRESS}{step.table}: {step.kind}: {report.outcome} in {report.seconds:.1f} s"
    if report.files_before or report.files_after:
        line += f", {report.files_before} -> {report.files_after}"
    told = report.problem or report.note
    log.info("%s%s", line, f"; {told}" if told else "")
