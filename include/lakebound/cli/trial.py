"""``lakebound try``: Spark decodes and transforms some records of a pipeline's topics, and says what it would land."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakebound.cli.small_spark import small_spark
from lakebound.control.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_resources import planning_conf
from lakebound.ledger.intervals import Interval
from lakebound.settings import Settings
from lakebound.spec.load import path_of
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import placed_problems, told
from lakebound.spec.state import check_stateless

APPLICATION = "try_pipeline.py"
LIMIT_SECONDS = 300.0


class TrialFailedError(LakeboundError):
    """The records could not be tried: Spark did not start, or ended without an answer."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: Spark could not try its records: {reason}")


def try_pipeline(
    spec: PipelineSpec,
    settings: Settings,
    *,
    records: int,
    newest: bool,
    rows: int,
    against_landed: bool = False,
    between: Mapping[str, Mapping[int, Interval]] | None = None,
) -> dict[str, Any]:
    """Return what Spark says of the records: the body of ``lakebound_spark.check.trial.Trial``.

    Args:
        spec: The pipeline.
        settings: This machine's.
        records: Maximum number of records to read.
        newest: The newest; else the oldest.
        rows: Number of rows to show of each table.
        against_landed: Read records that have landed, and compare what they give with the table's rows.
        between: Read only records of these offsets, per topic and partition; None: of all.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        TrialFailedError: It gave no answer.
    """
    check_stateless(spec, "trial")
    run = make_run_spec(spec, settings, Desired(), f"try-{spec.pipeline}")
    body = run.model_dump(mode="json", by_alias=True)
    how = {"records": records, "newest": newest, "rows": rows, "against_landed": against_landed, "between": between}
    orders = json.dumps({"run_spec": body, **how})
    secrets = run.secret_variables
    with small_spark(
        settings,
        APPLICATION,
        [orders],
        limit_seconds=LIMIT_SECONDS,
        failure=TrialFailedError,
        secrets=secrets,
        conf=planning_conf(settings, spec.spark),
    ) as answers:
        body = answers.of(spec.pipeline)
    path = path_of(spec.pipeline, settings)
    return body | {"problems": [told(one, spec, path, settings.apps) for one in placed_problems(body["problems"])]}
