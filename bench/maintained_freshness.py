"""Freshness beside maintenance: one stream, windows with maintenance and windows without, alternating.

In a window with maintenance the real application runs, in a process of its own, behind everything else. At the end the tables
are held against Kafka's own offsets. Writes ``docs/benchmarks/maintained-freshness.md``.
"""

from __future__ import annotations

import argparse
import statistics

from maintenance_arms import maintain
from windows import Run, arguments_of, measure, what_was_run, windows_table, write_page

from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

MAINTENANCE = {
    "cooldown_seconds": 0,
    # The table is not partitioned, so its only partition is always hot.
    "compaction": {"hot_min_small_files": 100},
}


def files_removed(run: Run, table: str) -> int:
    """Return by how many files a run's compactions made a table smaller."""
    compactions = [step for step in run["steps"] if step["step"]["kind"] == "compact" and step["step"]["table"] == table]
    return sum(step["files_before"] - step["files_after"] for step in compactions)


def main() -> None:
    """Run all windows and write the page."""
    arguments = arguments_of(argparse.ArgumentParser(description=__doc__), "maintained-freshness.md")
    rss: list[int] = []

    def work(spec: PipelineSpec, settings: Settings, name: str) -> Run:
        return maintain(spec, settings, name, rss)

    def said_of(run: Run) -> dict[str, int]:
        return {table: files_removed(run, table) for table in {step["step"]["table"] for step in run["steps"]}}

    # The observer looks at the commits of a window when it is over.
    maintenance = {**MAINTENANCE, "history": {"keep_all_snapshots": 1_000_000}}
    windows, judgements = measure(arguments, {"maintenance": maintenance}, work, said_of)
    runs = [run for window in windows for run in window.runs]
    steps = [step for run in runs for step in run["steps"]]
    seconds = [sum(step["seconds"] for step in run["steps"]) for run in runs]
    lines = ["# Freshness beside maintenance", "", *what_was_run(arguments, "bench-maintained-freshness", "maintenance")]
    lines += windows_table(windows, "maintenance", "files removed by the runs", files_removed)
    lines += [
        "",
        f"{len(runs)} maintenance runs; their steps took {statistics.median(seconds):.1f} s (median) and at most",
        f"{max(seconds):.1f} s; {sum(step['conflicts'] for step in steps)} conflicts, "
        f"{sum(step['outcome'] == 'lost' for step in steps)} steps lost to the writer; JVM and Python took at most",
        f"{max(rss):,} MB.",
        "",
    ]
    write_page(arguments, [*lines, *(f"- {table}: {found}" for table, found in judgements.items())])


if __name__ == "__main__":
    main()
