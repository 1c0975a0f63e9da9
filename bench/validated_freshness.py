"""Freshness beside validation: one stream, windows with validation and windows without, alternating; and what validation costs.

In a window with validation the real application runs, in a process of its own, behind everything else, on what landed since the
last run. Writes ``docs/benchmarks/validated-freshness.md``.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from maintenance_arms import run_batch
from windows import Run, arguments_of, measure, what_was_run, windows_table, write_page

from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.submission import validation_command, validation_orders
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

DELTA = ["delta:bench.events"]
EXPECTATIONS: list[dict[str, Any]] = [
    {"expect": "expect_column_values_to_not_be_null", "kwargs": {"column": "device"}, "tables": DELTA},
    {"expect": "expect_column_values_to_be_between", "kwargs": {"column": "value", "min_value": 0}, "tables": DELTA},
    {"expect": "expect_column_values_to_match_regex", "kwargs": {"column": "event_id", "regex": "^.+$"}, "tables": DELTA},
    {"expect": "rows_to_satisfy", "rule": "length(device) > 0", "tables": DELTA},
    {"expect": "unique_over_window", "columns": ["event_id"], "over_seconds": 60, "tables": DELTA},
    {"expect": "fresh", "max_seconds": 60},
    {"expect": "usual_volume", "severity": "info"},
]


def rows_of(run: Run, table: str) -> int:
    """Return how many rows of a table a run validated."""
    return sum(one["rows"] for one in run["ranges"] if one["table"] == table)


def main() -> None:
    """Run all windows and write the page."""
    arguments = arguments_of(argparse.ArgumentParser(description=__doc__), "validated-freshness.md")
    file = ExpectationFile.model_validate({"pipeline": "bench", "expectations": EXPECTATIONS})
    rss: list[int] = []

    def work(spec: PipelineSpec, settings: Settings, name: str) -> Run:
        return run_batch(validation_command(validation_orders(spec, settings, file, name), settings), settings, name, rss)

    def said_of(run: Run) -> str:
        return f"{sum(one['rows'] for one in run['ranges']):,} rows in {run['ended_at'] - run['started_at']:.1f} s"

    windows, judgements = measure(arguments, {}, work, said_of)
    runs = [run for window in windows for run in window.runs]
    ranges = [one for run in runs for one in run["ranges"]]
    millions = sum(one["rows"] for one in ranges) / 1e6
    asked = sum(len(one["results"]) for one in ranges)
    held = sum(result["passed"] for one in ranges for result in one["results"])
    waits = [one["at"] - one["to_ms"] / 1000 for one in ranges]
    lines = ["# Freshness beside validation", "", *what_was_run(arguments, "bench-validated-freshness", "validation")]
    lines += windows_table(windows, "validation", "rows validated by the runs", rows_of)
    lines += [
        "",
        f"{len(runs)} validation runs of {len(ranges)} ranges asked {asked} expectations, of which {held} held. From a range's",
        f"newest commit to its verdict: {statistics.median(waits):.1f} s (median), at most {max(waits):.1f} s. "
        f"{sum(run['cpu_seconds'] for run in runs) / millions:.0f} CPU",
        f"seconds per million rows, the starts included; JVM and Python took at most {max(rss):,} MB.",
        "",
    ]
    write_page(arguments, [*lines, *(f"- {table}: {found}" for table, found in judgements.items())])


if __name__ == "__main__":
    main()
