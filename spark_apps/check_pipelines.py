"""Entry point: check the plans of pipelines (schema, transform, tables) without reading Kafka; existing tables are looked at.

It reads orders from its standard input, a line of JSON each: ``{"run_spec": {...}, "conditions": ["total > 0"]}``. For each it
prints a line ``{"pipeline": "x", ...}`` with what ``lakebound_spark.check.plan`` found, as soon as it is found.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from lakebound.landing.run_spec import RunSpec
from lakebound_spark.check.plan import check


def main() -> int:
    """Check what is asked for, and return the exit code."""
    session = SparkSession.builder.appName("lakebound-check").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        orders = json.loads(line)
        run = RunSpec.model_validate(orders["run_spec"])
        found = check(session, run, orders["conditions"])
        print(json.dumps({"pipeline": run.spec.pipeline, **found.body()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
