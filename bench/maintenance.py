"""What a commit costs as a table grows, with maintenance beside it and without, and what reading costs before and after.

Each arm commits the same small batches to a Delta and an Iceberg table, at a steady pace. In the arm with maintenance the real
application runs again and again in a process of its own, at the lowest priority. Writes ``docs/benchmarks/maintenance.md`` and
``maintenance.svg``.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from curve import Curve, draw
from maintenance_arms import Arm, Stream, maintain, read_seconds, run_arm

from lakebound.settings import load_settings
from lakebound.tables.places import places_of

EARLY, LATE = (500, 1500), (4000, 5000)
"""The commits that are compared: the first hundreds warm the process up."""


def mean_between(stream: Stream, window: tuple[int, int]) -> float:
    """Return the mean milliseconds of the commits in a window."""
    return statistics.fmean(stream.milliseconds[slice(*window)])


def smooth(values: Sequence[float], width: int = 50) -> list[tuple[float, float]]:
    """Return one point per so many commits: their median."""
    return [
        (start + width, statistics.median(values[start : start + width])) for start in range(0, len(values) - width + 1, width)
    ]


def page(arms: Sequence[Arm], reads: dict[str, dict[str, tuple[float, float]]], arguments: argparse.Namespace) -> str:
    """Return the page of results."""
    lines = [
        "# Maintenance",
        "",
        f"`make bench-maintenance` on {date.today()}, {platform.machine()}, {os.cpu_count()} cores:",
        f"{arguments.commits:,} commits of {arguments.rows} rows to each table, {arguments.per_second:g} per second;",
        f"every version is kept for {arguments.keep_all_seconds:g} s.",
        "",
        "![files and milliseconds per commit](maintenance.svg)",
        "",
        f"Mean milliseconds of a commit, of commits {EARLY[0]:,} to {EARLY[1]:,} and {LATE[0]:,} to {LATE[1]:,}.",
        "",
        "| table | arm | early | late | late ÷ early | live files at the end | refused commits |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        for name, stream in arm.streams.items():
            early, late = mean_between(stream, EARLY), mean_between(stream, LATE)
            files = stream.files[-1][1] if stream.files else 0
            lines.append(
                f"| {name} | {arm.name} | {early:.1f} | {late:.1f} | {late / early:.2f} | {files:,} | {stream.conflicts} |"
            )
    lines += ["", "Seconds to read two columns of all rows, and the rows of one device (PyArrow, best of three).", ""]
    lines += ["| table | when | full scan | selective |", "|---|---|---|---|"]
    for when, found in reads.items():
        lines += [f"| {name} | {when} | {full:.2f} | {selective:.2f} |" for name, (full, selective) in found.items()]
    for arm in arms:
        if arm.runs:
            lines += ["", *runs_table(arm)]
    return "\n".join([*lines, ""])


def runs_table(arm: Arm) -> list[str]:
    """Return what the maintenance runs did, in sum per kind of step."""
    lines = [
        f"{len(arm.runs)} maintenance runs; JVM and Python took at most {arm.peak_rss_megabytes:,} MB.",
        "",
        "| step | done | lost | conflicts | before → after, in sum | bytes rewritten | seconds: median, max |",
        "|---|---|---|---|---|---|---|",
    ]
    steps = [step for run in arm.runs for step in run["steps"]]  # type: ignore[attr-defined]
    for kind in sorted({step["step"]["kind"] for step in steps}):
        those = [step for step in steps if step["step"]["kind"] == kind]
        seconds = [step["seconds"] for step in those]
        counts = [sum(step["outcome"] == outcome for step in those) for outcome in ("done", "lost")]
        before, after = sum(step["files_before"] for step in those), sum(step["files_after"] for step in those)
        lines.append(
            f"| {kind} | {counts[0]} | {counts[1]} | {sum(step['conflicts'] for step in those)} | {before:,} → {after:,} "
            f"| {sum(step['bytes_rewritten'] for step in those):,} | {statistics.median(seconds):.1f}, {max(seconds):.1f} |"
        )
    return lines


def chart(arms: Sequence[Arm]) -> str:
    """Return the curves of all arms."""
    curves = [Curve(f"{name}, {arm.name}", smooth(stream.milliseconds)) for arm in arms for name, stream in arm.streams.items()]
    return draw("Milliseconds of a commit", "commits", "ms, median of 50", curves)


def main() -> None:
    """Run both arms, maintain the bare one once, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--per-second", type=float, default=8.0)
    parser.add_argument("--keep-all-seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    docs = Path(__file__).parents[1] / "docs" / "benchmarks"
    with tempfile.TemporaryDirectory(prefix="lakebound-bench-") as folder:
        base = replace(load_settings(), home=Path(folder))
        maintained, _, _ = run_arm("maintained", base, arguments)
        bare, settings, spec = run_arm("bare", base, arguments)
        places = places_of(settings, "default")
        reads = {"before": {table.id: read_seconds(table, places) for table in spec.tables}}
        rss = list[int]()
        bare.runs.append(maintain(spec, settings, "afterwards", rss))
        bare.peak_rss_megabytes = max(rss, default=0)
        reads["after one run"] = {table.id: read_seconds(table, places) for table in spec.tables}
    text = page([bare, maintained], reads, arguments)
    (docs / "maintenance.md").write_text(text)
    (docs / "maintenance.svg").write_text(chart([bare, maintained]))
    print(text)


if __name__ == "__main__":
    main()
