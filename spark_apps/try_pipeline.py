"""Entry point: decode and transform some records of a pipeline's topics, and say what would become of them; writes nothing.

It reads orders from its standard input, a line of JSON: ``{"run_spec": {...}, "records": 1000, "newest": true, "rows": 3,
"against_landed": false, "between": null}``.
It prints a line ``{"pipeline": "x", ...}`` with what ``lakebound_spark.check.trial`` found.
"""

from __future__ import annotations

import json
import sys

from lakebound.errors import LakeboundError
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sampling import read_sample
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.placed import PlacedProblem
from lakebound_spark.check.landed import first_table, landed_until
from lakebound_spark.check.trial import Trial, try_records
from lakebound_spark.entry import answer
from lakebound_spark.session import make_session


def main() -> int:
    """Try what is asked for, and return the exit code."""
    orders = json.loads(sys.stdin.readline())
    run = RunSpec.model_validate(orders["run_spec"])
    spec = run.spec
    try:
        # Before Spark starts: a topic that is not there is told at once.
        table = first_table(run) if orders["against_landed"] else None
        between = orders["between"]
        since, until = (None, landed_until(table) if table is not None else None) if between is None else _bounds(between)
        how = {"newest": orders["newest"], "reader": spec.pipeline, "until": until, "since": since}
        sample = read_sample(spec.connection, spec.topics, orders["records"], **how)
    except LakeboundError as exc:
        found = Trial(problems=[PlacedProblem(str(exc), ("topics",))])
    else:
        found = try_records(make_session("lakebound-try", log_level="ERROR"), run, sample, orders["rows"], table)
    answer(spec.pipeline, found.body())
    return 0


def _bounds(between: dict[str, dict[str, list[int]]]) -> tuple[NextOffsets, NextOffsets]:
    """Return the first offset of each partition, and the offset after the last one."""
    first, last = (
        {topic: {int(p): ends[number] for p, ends in parts.items()} for topic, parts in between.items()} for number in (0, 1)
    )
    return first, last


if __name__ == "__main__":
    sys.exit(main())
