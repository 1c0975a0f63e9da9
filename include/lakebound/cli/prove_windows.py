"""What Spark does of ``lakebound prove --deep``: it computes closed windows again from Kafka, and compares the rows."""

from __future__ import annotations

import json

from lakebound.cli.small_spark import small_spark
from lakebound.control.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.inspection.proof.windows import ComparedWindows
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_resources import planning_conf, spark_resources
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

APPLICATION = "prove_windows.py"
LIMIT_SECONDS = 6 * 3600.0


class WindowsNotComputedError(LakeboundError):
    """The windows could not be computed again: Spark did not start, or ended without an answer."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: Spark could not compute its closed windows again: {reason}. `lakebound prove {pipeline}` "
            f"without --deep compares the entries"
        )


def compare_windows(spec: PipelineSpec, settings: Settings, tables: list[str]) -> dict[str, ComparedWindows]:
    """Return what the rows of closed windows say, by the table's id. A stream may run meanwhile.

    Args:
        spec: The pipeline, which has a state.
        settings: This machine's.
        tables: Ids of the tables that are to be compared.

    Raises:
        WindowsNotComputedError: Spark gave no answer.
    """
    run = make_run_spec(spec, settings, Desired(), f"prove-{spec.pipeline}")
    orders = json.dumps({"run_spec": run.model_dump(mode="json", by_alias=True), "tables": tables})
    with small_spark(
        settings,
        APPLICATION,
        [orders],
        limit_seconds=LIMIT_SECONDS,
        failure=WindowsNotComputedError,
        secrets=run.secret_variables,
        conf=_conf(spec, settings),
    ) as answers:
        body = answers.of(spec.pipeline)
    return {table: ComparedWindows.model_validate(found) for table, found in body["tables"].items()}


def _conf(spec: PipelineSpec, settings: Settings) -> dict[str, str]:
    """Return Spark's settings: it gets the memory of the stream's driver, and all rows of closed windows come there at once."""
    return {
        **planning_conf(settings, spec.spark),
        "spark.driver.memory": spark_resources(settings, spec.spark).driver_memory,
        "spark.driver.maxResultSize": "0",
        "spark.sql.shuffle.partitions": "4",
    }
