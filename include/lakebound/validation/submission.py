"""What a validation application is told, and the spark-submit command that starts it: small, and behind everything else."""

from __future__ import annotations

from lakebound.desired import Desired
from lakebound.maintenance.submission import MaintenanceOrders, background_command, maintenance_conf
from lakebound.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings
from lakebound.spec import PipelineSpec
from lakebound.validation.by_hand import ByHand
from lakebound.validation.expectations import ExpectationFile

APPLICATION = "validate.py"

PROGRESS = "validate: "
"""Starts a line of the log that a person who waits wants to see."""

ANOTHER_RUN = 3
"""Exit code of a run that ended at once, because another one of the pipeline is under way."""


class ValidationOrders(RunSpec):
    """One validation run's orders: those of an application, whose id names the run.

    Attributes:
        expectations: What is expected, as the file said when the run was submitted.
        by_hand: A range that a person names; None: what is due.
    """

    expectations: ExpectationFile
    by_hand: ByHand | None = None


def validation_orders(
    spec: PipelineSpec, settings: Settings, file: ExpectationFile, app_id: str, *, by_hand: ByHand | None = None
) -> ValidationOrders:
    """Return the orders of a validation run that is about to be submitted."""
    run = make_run_spec(spec, settings, Desired(), app_id)
    fields = {name: getattr(run, name) for name in RunSpec.model_fields}
    return ValidationOrders(**fields, expectations=file, by_hand=by_hand)


def validation_conf(orders: ValidationOrders, settings: Settings) -> dict[str, str]:
    """Return the Spark settings of a validation application: those of maintenance, for many small files."""
    own = {name: getattr(orders, name) for name in RunSpec.model_fields}
    return {
        **maintenance_conf(MaintenanceOrders(**own), settings),
        # A commit's files are small, and one core reads them: a task per file would cost more than the reading.
        "spark.sql.files.openCostInBytes": str(64 * 1024),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.autoBroadcastJoinThreshold": str(32 * 1024 * 1024),
        # Conditions are asked of whatever landed, also of rows that their `where` excludes: what cannot be computed, such as
        # the first of no items, is null and not the end of the run.
        "spark.sql.ansi.enabled": "false",
    }


def validation_arguments(orders: ValidationOrders) -> list[str]:
    """Return the application's own arguments."""
    return ["--run-spec", orders.model_dump_json(by_alias=True)]


def validation_command(orders: ValidationOrders, settings: Settings) -> list[str]:
    """Return the command that starts the application, behind everything else."""
    conf = validation_conf(orders, settings)
    return background_command(settings.apps / APPLICATION, orders, conf, validation_arguments(orders))
