"""The validation application of one pipeline: Spark reads what landed, Great Expectations judges it, bad rows are copied."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.control.folder import write_json, write_text
from lakebound.inspection.validation.by_hand import validate_by_hand
from lakebound.inspection.validation.page import page_of
from lakebound.inspection.validation.quarantine_copies import commit_copies, has_copies
from lakebound.inspection.validation.report_file import remove_older_runs, write_report
from lakebound.inspection.validation.run import Batch, result_folder, run_validation
from lakebound.inspection.validation.submission import PROGRESS, ValidationOrders
from lakebound.inspection.validation.verdict import ExpectationResult, RangeVerdict, ValidatedRange, ValidationReport
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.table import open_table
from lakebound_spark.batch.lanes import PLAIN, write_by_cluster
from lakebound_spark.jvm import obey_signals
from lakebound_spark.priority import lower_priority
from lakebound_spark.session import SessionStart, guard_conditions
from lakebound_spark.validate.copies import Copies

# Great Expectations takes seconds to import: what needs it is imported while the session starts.
if TYPE_CHECKING:
    from lakebound_spark.validate.gx import Suite
    from lakebound_spark.validate.questions import Prepared

MAX_COLLECTED_KEYS = 50_000
"""Failing rows whose keys are collected into the driver, some MB; the rows of more are found by sorting."""

log = logging.getLogger(__name__)


class SparkEvaluator:
    """Evaluates ranges in one session, which is started with the first.

    Args:
        orders: The run's.
        start: Returns the session.
    """

    def __init__(self, orders: ValidationOrders, start: Any) -> None:
        self._orders = orders
        self._start = start
        self._session: SparkSession | None = None
        self._suite: Suite | None = None
        self._plain: DataFrame | None = None
        self._number = 0
        self._fetched = Copies()

    def evaluate(self, batch: Batch) -> RangeVerdict:
        """Return the verdict on a range; its results and its page are written."""
        started = time.monotonic()
        if self._session is None:
            _progress("starting Spark and Great Expectations")
            self._session = self._start()
            started = _progress("both have started", since=started)
        from lakebound_spark.validate.rows import cached_rows

        held, asked = f"{batch.due.rows:,} rows in {len(batch.files):,} files", len(batch.expectations)
        _progress(f"{batch.table.id}: reading {held}, for {asked} expectations")
        self._number += 1
        self._fetched.drop()
        folder = result_folder(self._orders.control, self._orders.app_id)
        folder /= f"{batch.table.id.replace(':', '_')}-{self._number}"
        schema = open_table(batch.table, self._orders.places).schema()
        prepared, frame, rows = cached_rows(self._session, batch, self._orders.places, self._fetched, schema)
        try:
            started = _progress(f"{batch.table.id}: {rows:,} rows are read, Great Expectations judges them", since=started)
            results, bodies = self._ask(prepared, frame, batch)
            if any(result.problem for result in results):
                # Where it is the session that died, this fails, too: the range is then not validated, and taken again.
                frame.count()
            # What failed is looked up again when it is copied: from the frame that is still at hand.
            self._plain = prepared.plain
        finally:
            frame.unpersist()
        _progress(f"{batch.table.id}: judged", since=started)
        file = folder / "result.json"
        versions = [one.version for one in batch.due.landings]
        body = {"table": batch.table.id, "versions": versions, "rows": rows, "suites": bodies}
        write_json(file, body)
        order = {one.label: number for number, one in enumerate(batch.expectations)}
        results = sorted([*results, *prepared.problems], key=lambda result: order[result.label])
        page = folder / "index.html"
        write_text(page, page_of(body, results, prepared.skipped))
        return RangeVerdict(
            results=tuple(results),
            skipped=prepared.skipped,
            rows=rows,
            missing_rows=batch.missing_rows,
            result_file=str(file),
            data_docs=str(page),
        )

    def copy_failing(self, batch: Batch, failures: Sequence[ExpectationResult]) -> int:
        """Copy the failing rows to the quarantine, with the expectation's name as the reason; once for each range."""
        quarantine = open_table(self._orders.spec.quarantine_table, self._orders.places)
        if has_copies(quarantine, batch.claim, batch.due.newest.committed_at_ms):
            return 0
        assert self._suite is not None and self._plain is not None
        parts = [self._copies(self._suite.failing_rows(one.label), self._plain, one) for one in failures]
        copies = reduce(DataFrame.unionByName, parts)
        written = write_by_cluster(copies, [quarantine], f"validation-{batch.claim}", PLAIN)
        files = written.files.get(quarantine.spec.id, [])
        if files:
            attempts = self._orders.spec.limits.commit_attempts
            commit_copies(quarantine, self._orders.spec.pipeline, files, batch.claim, attempts=attempts)
        return written.rows

    def stop(self) -> None:
        """End the session."""
        if self._session is not None:
            with suppress(Exception):  # a JVM that died has no context to stop
                self._session.stop()
        self._fetched.drop()

    def _ask(self, prepared: Prepared, frame: DataFrame, batch: Batch) -> tuple[list[ExpectationResult], list[dict[str, Any]]]:
        from lakebound_spark.validate.gx import Suite
        from lakebound_spark.validate.questions import names_only

        results: list[ExpectationResult] = []
        bodies: list[dict[str, Any]] = []
        name = batch.table.id.replace(":", "_").replace(".", "_")
        asked = [(name, frame, prepared.questions), (f"{name}_columns", names_only(prepared.plain), prepared.column_questions)]
        for suite_name, rows, questions in asked:
            if not questions:
                continue
            suite = Suite(suite_name, rows, questions)
            found, body = suite.run()
            results += found
            bodies.append(body)
            if questions is prepared.questions:
                self._suite = suite
        return results, bodies

    def _copies(self, failing: DataFrame, plain: DataFrame, result: ExpectationResult) -> DataFrame:
        """Return failing rows as rows of the quarantine; their whole rows are looked up by where they came from."""
        keys = failing.select(KAFKA_COLUMN).distinct()
        # Spark would judge by the size of compressed files; the keys of a whole range do not fit into the driver.
        is_few = (result.unexpected or 0) <= MAX_COLLECTED_KEYS
        rows = plain.join(keys.hint("broadcast" if is_few else "merge"), KAFKA_COLUMN, "left_semi")
        columns = [name for name in plain.columns if name != KAFKA_COLUMN]
        ordinal = (-1 - F.coalesce(F.col(f"{KAFKA_COLUMN}.ordinal"), F.lit(0))).cast("int")
        return rows.select(
            F.col(KAFKA_COLUMN).withField("ordinal", ordinal).alias(KAFKA_COLUMN),
            F.lit(result.label).alias("reason"),
            F.lit(f"the record landed, and is not as expected: {result.label}").alias("error"),
            F.lit(None).cast("binary").alias("key"),
            F.to_json(F.struct(*columns)).cast("binary").alias("value"),
        )


class Validation:
    """One run."""

    def __init__(self, orders: ValidationOrders) -> None:
        self._orders = orders
        self._asked = threading.Event()

    def run(self) -> ValidationReport:
        """Run to the end, and return what was found.

        Raises:
            ValidationRunsError: Another run is under way.
        """
        orders = self._orders
        self._go_behind()
        obey_signals(self._ask)
        evaluator = SparkEvaluator(orders, self._start_spark)
        try:
            report = self._validate(evaluator)
            write_report(orders.control, report)
            return report
        finally:
            evaluator.stop()
            remove_older_runs(orders.control, orders.expectations.keep_runs)

    def _validate(self, evaluator: SparkEvaluator) -> ValidationReport:
        orders = self._orders
        if orders.by_hand is not None:
            return validate_by_hand(
                orders.spec, orders.places, orders.expectations, evaluator, orders.by_hand, run_id=orders.app_id, tell=_tell
            )
        return run_validation(
            orders.spec,
            orders.places,
            orders.expectations,
            evaluator,
            run_id=orders.app_id,
            is_stopping=self._asked.is_set,
            tell=_tell,
        )

    def _start_spark(self) -> SparkSession:
        starting = SessionStart(f"lakebound-validate-{self._orders.spec.pipeline}")
        import_module("lakebound_spark.validate.rows")
        session = starting.wait()
        guard_conditions(session)
        obey_signals(self._ask)
        self._go_behind()
        return session

    def _go_behind(self) -> None:
        if not self._orders.is_waited_for:
            lower_priority()

    def _ask(self, number: signal.Signals) -> None:
        log.info("%s%s: ending after this range", PROGRESS, number.name)
        self._asked.set()


def _progress(what: str, *, since: float | None = None) -> float:
    """Log what a person who waits wants to see, with the seconds since a moment; return the time of now."""
    now = time.monotonic()
    log.info("%s%s%s", PROGRESS, what, "" if since is None else f" ({now - since:.1f} s)")
    return now


def _tell(one: ValidatedRange) -> None:
    failed = [result for result in one.results if not result.passed]
    held = f"{one.passed} of {one.evaluated} expectations hold"
    log.info("%s%s: versions %s, %d rows: %s", PROGRESS, one.table, one.span, one.rows, held)
    for result in failed:
        log.info("%s%s: %s: %s: %s", PROGRESS, one.table, result.severity.value, result.label, result.sentence)
