"""The operator behind ``validate__<pipeline>``: validates what landed, in one Spark application."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound_airflow.backends.connection import with_connection
from lakebound_airflow.operators.batch import BatchOperator, BatchRun, Context, StarvedRunError
from lakebound_airflow.pipelines import control_of, spec_of

if TYPE_CHECKING:
    from lakebound.inspection.validation.by_hand import ByHand
    from lakebound.inspection.validation.expectations import ExpectationFile
    from lakebound.inspection.validation.submission import ValidationOrders
    from lakebound.inspection.validation.verdict import ValidationReport

VALIDATION_CONN_ID = "lakebound_validation"


class NotValidatedError(LakeboundError):
    """Tables could not be validated."""

    def __init__(self, report: ValidationReport) -> None:
        super().__init__(
            f"pipeline {report.pipeline!r}: some rows could not be validated; the next run tries again:\n"
            + "\n".join(report.problems)
        )


class ValidateOperator(BatchOperator):
    """Validates one pipeline's tables; XCom and asset events: a summary.

    Args:
        pipeline: Its name.
    """

    ui_color = "#fff2cc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, conn_id=VALIDATION_CONN_ID, verb="validate", noun="validation", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Run it.

        Raises:
            AirflowSkipException: Nothing is due, or another validation of the pipeline is under way.
            NoExpectationsError: The pipeline has no file of expectations.
            NotValidatedError: A table could not be validated.
            NotWithSharedStateError: Machines share the state in an object store, and the record of validation would not be.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.inspection.validation.expectation_files import NoExpectationsError, expectations_path, load_expectations
        from lakebound.inspection.validation.history import refuse_shared
        from lakebound.inspection.validation.submission import validation_orders

        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        by_hand = _by_hand(spec, context.get("params") or {})
        try:
            refuse_shared(control_of(self.pipeline, settings))
            file = load_expectations(spec, settings)
            rows = None if file is None or by_hand is not None else self._rows_due(spec, file, settings)
        except Exception as exc:
            problem = first_line(redacted(exc, TOLD_TO_ITS_CALLER))
            self._record_end(settings, by_hand, f"the validation could not be planned: {problem}")
            raise
        if file is None:
            raise NoExpectationsError(self.pipeline, expectations_path(self.pipeline, settings))
        if by_hand is None and rows is None:
            raise AirflowSkipException(f"nothing landed in the tables of {self.pipeline} since the last validation")
        ordered = partial(validation_orders, spec, settings, file, by_hand=by_hand, rows=rows)
        has_ordinary_share = self.is_waited_for(context) or self._is_late(settings, file)
        try:
            report = self._run(ordered(self.run_id(context), is_waited_for=has_ordinary_share), settings)
        except StarvedRunError as exc:
            self.log.warning("%s", exc)
            report = self._run(ordered(self.run_id(context), is_waited_for=True), settings)
        summary = _summary(report)
        self._announce(context, report, summary)
        if by_hand is None:
            self._tell(settings)
        if report.problems:
            raise NotValidatedError(report)
        return summary

    def _run(self, orders: ValidationOrders, settings: Settings) -> ValidationReport:
        """Run one application to its end, and return its report."""
        from lakebound.inspection.validation.lateness import is_starved
        from lakebound.inspection.validation.report_file import read_report
        from lakebound.inspection.validation.submission import APPLICATION, validation_conf
        from lakebound.inspection.validation.waiting_file import run_begun

        record_end = partial(self._record_end, settings, orders.by_hand)
        installed = with_connection(self.conn_id, settings)
        run = BatchRun(APPLICATION, orders, validation_conf(orders, installed), read_report, record_end, is_starved)
        with run_begun(orders.control, orders.app_id) if orders.by_hand is None else nullcontext():
            return self.run_application(run, installed)[0]

    def _is_late(self, settings: Settings, file: ExpectationFile) -> bool:
        """Whether rows have waited so long that the run is no work any more that may wait until the machine is idle."""
        from lakebound.inspection.validation.lateness import is_late
        from lakebound.inspection.validation.waiting_file import read_waiting

        return is_late(read_waiting(control_of(self.pipeline, settings)), file.every_seconds, time.time())

    def _tell(self, settings: Settings) -> None:
        """Have the alerts made of the result now: on a busy machine the next run of the DAG ``alerts`` may be minutes away.

        It hides no result that the messages cannot be sent; the DAG sends them later.
        """
        from lakebound.alerts.look import look_at
        from lakebound_airflow.notifications.alerts import tell

        try:
            look_at(spec_of(self.pipeline, settings), settings)
            tell(settings)
        except Exception as exc:
            # The class alone: the text of an error from below may hold an address.
            self.log.error("the alerts were not sent; the DAG alerts sends them later: %s", type(exc).__name__)

    def _rows_due(self, spec: PipelineSpec, file: ExpectationFile, settings: Settings) -> int | None:
        """Return how many rows are due; None where nothing is: no run is waited for any more, whatever became of the last."""
        from lakebound.inspection.validation.findings_file import write_open_findings
        from lakebound.inspection.validation.history import read_history
        from lakebound.inspection.validation.planning import plan_validation

        if due := plan_validation(spec, places_of(settings, spec.warehouse), file):
            return sum(one.rows for one in due)
        control = control_of(self.pipeline, settings)
        write_open_findings(control, spec, file, read_history(control))
        return None

    def _record_end(self, settings: Settings, by_hand: ByHand | None, problem: str) -> None:
        """Say that what is due was not validated, for the alerts; a folder that cannot be written hides no reason."""
        from lakebound.inspection.validation.findings_file import add_failed_run

        if by_hand is not None:
            return
        try:
            add_failed_run(control_of(self.pipeline, settings), problem)
        except OSError as exc:
            self.log.error("the failure of the validation could not be recorded: %s", exc)

    def _announce(self, context: Context, report: ValidationReport, summary: dict[str, Any]) -> None:
        """Give the events of the task's outlets the summary, and keep there up to where each table was validated.

        What was validated stands in the pipeline's state folder; the asset's own store only shows it in Airflow.
        """
        store = context.get("asset_state_store")
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = summary
            for one in report.ranges:
                if store is not None and one.claim:
                    store[outlet].set(one.table, one.last)


def _by_hand(spec: PipelineSpec, params: Mapping[str, Any]) -> ByHand | None:
    """Return what the form asks for, or None for what is due."""
    from lakebound.inspection.validation.by_hand import ByHand

    table, suite, first, last = (params.get(name) or None for name in ("table", "suite", "first", "last"))
    if not (table or suite or first or last):
        return None
    tables = tuple(one.id for one in spec.tables) if table is None else (table,)
    if (first or last) and len(tables) > 1:
        raise AirflowException("versions need a table, because each table has its own versions; set the parameter table")
    return ByHand(tables=tables, suite=suite, first=first, last=last)


def _summary(report: ValidationReport) -> dict[str, Any]:
    return {
        "pipeline": report.pipeline,
        "run_id": report.run_id,
        "evaluated": report.evaluated,
        "passed": report.passed,
        "rows": sum(one.rows for one in report.ranges),
        "tables": {one.table: one.span for one in report.ranges},
        "failed": [
            f"{one.table}: {found.label}: {found.sentence}"
            for one in report.ranges
            for found in one.results
            if not found.passed
        ],
        "data_docs": [one.data_docs for one in report.ranges if one.data_docs],
        "stopped": report.stopped,
    }
