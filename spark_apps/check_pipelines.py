"""Entry point: check the plans of pipelines (schema, transform, tables) without reading Kafka; existing tables are looked at.

It reads orders from its standard input, a line of JSON each: ``{"run_spec": {...}, "conditions": ["total > 0"]}``. For each it
prints a line ``{"pipeline": "x", ...}`` with what ``lakebound_spark.check.plan`` found, as soon as it is found.
"""

from __future__ import annotations

import json
import sys

from lakebound.landing.run_spec import RunSpec
from lakebound_spark.check.plan import check
from lakebound_spark.entry import answer
from lakebound_spark.session import hadoop_settings, make_session


def main() -> int:
    """Check what is asked for, and return the exit code."""
    session = make_session("lakebound-check", log_level="ERROR")
    for line in sys.stdin:
        orders = json.loads(line)
        run = RunSpec.model_validate(orders["run_spec"])
        with hadoop_settings(session, run.spec.spark.conf):
            answer(run.spec.pipeline, check(session, run, orders["conditions"]).body())
    return 0


if __name__ == "__main__":
    sys.exit(main())
