"""What a validation application is told, and the spark-submit command that starts it: small, and behind everything else."""

from __future__ import annotations

from lakebound.control.desired import Desired
from lakebound.inspection.validation.by_hand import ByHand
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.landing.batch_command import BatchOrders, application_command, batch_conf, in_its_place
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.landing.spark_command import QUICK_START, driver_java_options
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

APPLICATION = "validate.py"

PROGRESS = "validate: "
"""Starts a line of the log that a person who waits wants to see."""

QUICK_ROWS = 100_000
"""Maximum rows of a run that ends before the JVM's second compiler saves more than it costs (20 of 52 CPU seconds)."""


class ValidationOrders(BatchOrders):
    """One validation run's orders: those of an application, whose id names the run.

    Attributes:
        expectations: What is expected, as the file said when the run was submitted.
        by_hand: A range that a person names; None: what is due.
        rows: How many are due, as far as it was known at the start.
    """

    expectations: ExpectationFile
    by_hand: ByHand | None = None
    rows: int | None = None


def validation_orders(
    spec: PipelineSpec,
    settings: Settings,
    file: ExpectationFile,
    app_id: str,
    *,
    by_hand: ByHand | None = None,
    rows: int | None = None,
    is_waited_for: bool = False,
) -> ValidationOrders:
    """Return the orders of a validation run that is about to be submitted; the arguments are those of the class.

    Args:
        spec: Pipeline whose tables are validated.
        settings: This machine's settings; the orders repeat its places.
        file: Expectations as they are at this moment; a later change of the file does not reach the run.
        app_id: Id of the application that will run.
        by_hand: Range that a person named; None validates what is due.
        rows: How many rows are due; None when that is not known.
        is_waited_for: Whether a person waits for the end: the run then gets an ordinary share of the cores.
    """
    run = make_run_spec(spec, settings, Desired(), app_id, reads_records=False)
    fields = {name: getattr(run, name) for name in RunSpec.model_fields}
    return ValidationOrders(**fields, expectations=file, by_hand=by_hand, rows=rows, is_waited_for=is_waited_for)


def validation_conf(orders: ValidationOrders, settings: Settings) -> dict[str, str]:
    """Return the Spark settings of a validation application: those of maintenance, for many small files."""
    is_quick = orders.rows is not None and orders.rows <= QUICK_ROWS
    collector = f"-XX:+UseSerialGC {QUICK_START}" if is_quick else "-XX:+UseSerialGC"
    return {
        **batch_conf(orders, settings),
        "spark.driver.extraJavaOptions": driver_java_options(settings, collector, local=True),
        # A commit's files are small, and one core reads them: a task per file would cost more than the reading.
        "spark.sql.files.openCostInBytes": str(64 * 1024),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.autoBroadcastJoinThreshold": str(32 * 1024 * 1024),
        # Conditions are asked of whatever landed, also of rows that their `where` excludes: what cannot be computed, such as
        # the first of no items, is null and not the end of the run.
        "spark.sql.ansi.enabled": "false",
    }


def validation_command(orders: ValidationOrders, settings: Settings) -> list[str]:
    """Return the command that starts the application, behind everything else unless a person waits for it."""
    command = application_command(settings.apps / APPLICATION, orders, settings, validation_conf(orders, settings))
    return in_its_place(command, orders)
