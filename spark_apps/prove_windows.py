"""Entry point: compute the closed windows of a pipeline again from Kafka, and compare them with its tables; writes nothing.

It reads orders from its standard input, a line of JSON: ``{"run_spec": {...}, "tables": ["delta:iot.minutes"]}``.
It prints a line ``{"pipeline": "x", "tables": {...}}`` with what ``lakebound_spark.check.closed_windows`` found.
"""

from __future__ import annotations

import json
import sys

from lakebound.landing.run_spec import RunSpec
from lakebound_spark.check.closed_windows import compare_tables
from lakebound_spark.entry import answer
from lakebound_spark.session import make_session


def main() -> int:
    """Compare what is asked for, and return the exit code."""
    orders = json.loads(sys.stdin.readline())
    run = RunSpec.model_validate(orders["run_spec"])
    found = compare_tables(make_session("lakebound-prove", log_level="ERROR"), run, orders["tables"])
    answer(run.spec.pipeline, {"tables": {table: one.model_dump(mode="json") for table, one in found.items()}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
