"""The operator behind ``validate__<pipeline>``: validates what landed, in one Spark application."""

from __future__ import annotations

from collections.abc import Mapping
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
from lakebound_airflow.operators.batch import BatchOperator, BatchRun, Context
from lakebound_airflow.pipelines import control_of, spec_of

if TYPE_CHECKING:
    from lakebound.inspection.validation.by_hand import ByHand
    from lakebound.inspection.validation.expectations import ExpectationFile
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
        from lakebound.inspection.validation.report_file import read_report
        from lakebound.inspection.validation.submission import APPLICATION, validation_conf, validation_orders

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
        is_waited_for = self.is_waited_for(context)
        orders = validation_orders(
            spec, settings, file, self.run_id(context), by_hand=by_hand, rows=rows, is_waited_for=is_waited_for
        )
        record_end = partial(self._record_end, settings, by_hand)
        installed = with_connection(self.conn_id, settings)
        run = BatchRun(APPLICATION, orders, validation_conf(orders, installed), read_report, record_end)
        report, _ = self.run_application(run, installed)
        summary = _summary(report)
        self._announce(context, report, summary)
        if report.problems:
            raise NotValidatedError(report)
        return summary

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
