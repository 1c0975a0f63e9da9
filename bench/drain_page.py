"""The section of the comparison's page about a backlog."""

from __future__ import annotations

import statistics
from typing import Any

from arm_names import Work, parse

LARGE_BYTES = 32 * 1024 * 1024


def rate(runs: list[dict[str, Any]], arm: str) -> float | None:
    """Return an arm's rows per second, into its slowest table; the median over its repeats."""
    rates = [min(table["rows_per_second"] for table in run["tables"].values()) for run in runs if run["arm"] == arm]
    return statistics.median(rates) if rates else None


def best_flink(runs: list[dict[str, Any]], work: Work) -> tuple[str, float] | None:
    """Return Flink's best interval with a work, and its rate."""
    arms = {run["arm"] for run in runs if run["arm"].startswith("flink:") and parse(run["arm"]).work == work}
    return max(((arm, rate(runs, arm) or 0.0) for arm in arms), key=lambda one: one[1], default=None)


def ratio(runs: list[dict[str, Any]], arm: str) -> str | None:
    """Return an arm's rate ÷ Flink's with the same work, in words."""
    own, peer = rate(runs, arm), best_flink(runs, parse(arm).work)
    return None if own is None or peer is None else f"{own / peer[1]:.2f} ({own:,.0f} ÷ {peer[1]:,.0f} rows/s, {peer[0]})"


def section(runs: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the section; none where nothing was drained."""
    if not runs:
        return []
    records = max(run["records"] for run in runs)
    lines = [
        "",
        f"## A backlog of {records:,} records of 180 B in 2 partitions",
        "",
        "Rows per second are from the first commit to the last, as an outside reader sees them; the start of the JVM is in the",
        "seconds beside it. A row into two tables counts once. The last file of a backlog is as small as what is left of it.",
        f"Last run {max(run['at'] for run in runs)}; every run: [drain.jsonl](benchmarks/drain.jsonl).",
        "",
        "| arm | table | rows/s (spread) | rows per CPU second | first commit after s | all after s | commits | files "
        "| MiB per file (median) | bytes in files ≥ 32 MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in dict.fromkeys(run["arm"] for run in runs):
        own = [run for run in runs if run["arm"] == arm]
        lines += [_line(arm, name, own) for name in own[0]["tables"]]
    return lines


def _line(arm: str, name: str, runs: list[dict[str, Any]]) -> str:
    tables = [run["tables"][name] for run in runs]
    rates = [table["rows_per_second"] for table in tables]

    def median(figure: Any) -> float:
        return statistics.median(figure(table) for table in tables)

    per_cpu = statistics.median(run["records"] / run["cpu_seconds"] for run in runs)
    large = median(lambda t: sum(size for size in t["files_bytes"] if size >= LARGE_BYTES) / sum(t["files_bytes"]))
    middle = median(lambda t: statistics.median(t["files_bytes"])) / 1024**2
    return (
        f"| {arm} | {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) | {per_cpu:,.0f} "
        f"| {median(lambda t: t['first_commit_seconds']):.1f} | {median(lambda t: t['all_seconds']):.1f} "
        f"| {median(lambda t: t['commits']):.0f} | {median(lambda t: len(t['files_bytes'])):.0f} | {middle:.1f} | {large:.0%} |"
    )
