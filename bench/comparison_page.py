"""The pages of the comparison: a table and a chart per load, and the ratios that the project is held to."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from bars import draw
from drain_page import ratio, section
from kept_runs import COMPARISON, DRAIN, STEADY, kept

Record = dict[str, Any]
MAIN_RATE, HIGH_RATE = 2000, 20000
_FIGURES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")


@dataclass(frozen=True)
class Row:
    """Medians of one arm's table under one load, over its repeats."""

    arm: str
    table: str
    load: tuple[int, int, int]
    figures: dict[str, float]
    lowest_mean_ms: float
    highest_mean_ms: float
    commits_per_minute: float
    files_per_minute: float
    kilobytes_per_file: float
    cpu_seconds_per_million: float
    cores: float
    peak_rss_megabytes: float
    seen_share: float
    repeats: int


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Return one row per load, arm and table."""
    groups: dict[tuple[tuple[int, int, int], str, str], list[Record]] = {}
    for record in records:
        load = (record["load"]["rate"], record["load"]["partitions"], record["load"]["record_bytes"])
        for table in record["tables"]:
            groups.setdefault((load, record["arm"], table), []).append(record)
    return [_row(load, arm, table, group) for (load, arm, table), group in groups.items()]


def _row(load: tuple[int, int, int], arm: str, table: str, group: list[Record]) -> Row:
    def median(figure: Any) -> float:
        return statistics.median(figure(record) for record in group)

    def of_table(name: str) -> float:
        return median(lambda record: record["tables"][table][name])

    means = [record["tables"][table]["mean_ms"] for record in group]
    return Row(
        arm,
        table,
        load,
        {name: of_table(name) for name in _FIGURES},
        min(means),
        max(means),
        median(lambda r: r["tables"][table]["commits"] / r["seconds"] * 60),
        median(lambda r: r["tables"][table]["files"] / r["seconds"] * 60),
        median(lambda r: r["tables"][table]["bytes"] / r["tables"][table]["files"] / 1000),
        median(lambda r: r["cpu_seconds"] / (load[0] * r["seconds"]) * 1e6),
        median(lambda r: r["cpu_seconds"] / r["seconds"]),
        median(lambda r: r["peak_rss_megabytes"]),
        median(lambda r: r["tables"][table]["rows"] / (load[0] * r["seconds"])),
        len(group),
    )


def interpolated(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """Return y at x on the line through the points; None outside of them (with 5 % of grace)."""
    ordered = sorted(points)
    if not ordered or x < 0.95 * ordered[0][0] or x > 1.05 * ordered[-1][0]:
        return None
    x = min(max(x, ordered[0][0]), ordered[-1][0])
    for (x0, y0), (x1, y1) in pairwise(ordered):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return ordered[0][1]


def targets(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of ratios; a line whose arms were not run is left out."""
    lines = ["| what | measured ÷ peer | target |", "|---|---|---|"]

    def get(arm: str, table: str, rate: int = MAIN_RATE) -> Row | None:
        return next((row for row in _of(rows, arm, rate) if (row.arm, row.table) == (arm, table)), None)

    def ratios(own: Row | None, peer: Row | None) -> str | None:
        if own is None or peer is None:
            return None
        mean, p99 = (own.figures[name] / peer.figures[name] for name in ("mean_ms", "p99_ms"))
        return f"mean {mean:#.2g}, p99 {p99:#.2g} ({peer.arm})"

    own, both = get("lakebound:iceberg:0ms", "iceberg"), [get("lakebound:both:0ms", name) for name in ("delta", "iceberg")]
    slower = max((row for row in both if row is not None), key=lambda row: row.figures["mean_ms"], default=None)
    high, flink = get("lakebound:iceberg:0ms", "iceberg", HIGH_RATE), _best_flink(rows, MAIN_RATE)
    named = [
        ("one Iceberg table, 2,000/s, against Flink at its best interval", ratios(own, flink), "≤ 0.8"),
        ("the same at 20,000/s", ratios(high, _best_flink(rows, HIGH_RATE)), "≤ 1.0"),
        ("Delta and Iceberg both (the slower), 2,000/s, against Flink writing Iceberg only", ratios(slower, flink), "≤ 1.2"),
        ("Delta, 2,000/s, against plain Spark → Delta with defaults",
         ratios(get("lakebound:delta:0ms", "delta"), get("spark:delta", "delta")), "≤ 0.05"),
    ]  # fmt: skip
    for what, name, target in (("CPU s per million rows", "cpu_seconds_per_million", "≤ 1.0"),
                               ("files per minute", "files_per_minute", "≤ 0.5")):  # fmt: skip
        named.append((f"{what}, 2,000/s, against Flink at the same mean freshness", _at_flinks_best(rows, name), target))
    return lines + [f"| {what} | {said} | {target} |" for what, said, target in named if said is not None]


def drain_targets(drained: list[Record]) -> list[str]:
    """Return the table's lines about a backlog."""
    named = [
        ("backlog drain, rows/s, one Iceberg table, against Flink", ratio(drained, "lakebound:iceberg:0ms"), "≥ 1.0"),
        ("the same, Delta and Iceberg both, against Flink writing Iceberg only", ratio(drained, "lakebound:both:0ms"), ""),
    ]
    return [f"| {what} | {said} | {target} |" for what, said, target in named if said is not None]


def steady_targets(runs: Sequence[Record]) -> list[str]:
    """Return the table's lines about one stream that runs long beside maintenance."""
    lines = []
    for run in runs:
        page = f"[`{run['freshness']}`](benchmarks/steady-{run['freshness']}.md)"
        ratios = ", ".join(f"{one['p99_ms'] / one['p50_ms']:.2f} ({name})" for name, one in run["tables"].items())
        lines.append(f"| p99 ÷ p50 over {run['seconds'] / 60:g} minutes beside maintenance, {page} | {ratios} | ≤ 2.5 |")
        costs = [(name, one["commit_ms"].get("100"), one["commit_ms"].get("10000")) for name, one in run["tables"].items()]
        ratios = ", ".join(f"{late / early:.2f} ({name})" for name, early, late in costs if early and late)
        if ratios:
            lines.append(f"| the 10,000th commit against the 100th, {page} | {ratios} | as cheap |")
    return lines


def _of(rows: Sequence[Row], arms: str, rate: int) -> list[Row]:
    """Return the rows whose arm's name begins so, under the load that the targets speak of, or the same at another rate."""
    return [row for row in rows if row.load == (rate, 2, 180) and row.arm.startswith(arms)]


def _best_flink(rows: Sequence[Row], rate: int) -> Row | None:
    return min(_of(rows, "flink:", rate), key=lambda row: row.figures["mean_ms"], default=None)


def _at_flinks_best(rows: Sequence[Row], name: str) -> str | None:
    """Return Lakebound's cost ÷ Flink's at the mean freshness of Flink's best interval, between its own intervals."""
    peer = _best_flink(rows, MAIN_RATE)
    if peer is None:
        return None
    points = [(row.figures["mean_ms"], getattr(row, name)) for row in _of(rows, "lakebound:iceberg:", MAIN_RATE)]
    own = interpolated(points, peer.figures["mean_ms"])
    cost = getattr(peer, name)
    return None if own is None else f"{own / cost:.2f} ({own:,.0f} ÷ {cost:,.0f}, {peer.arm})"


def load_name(load: tuple[int, int, int]) -> str:
    """Return a load in words."""
    return f"{load[0]:,} records/s of {load[2]:,} B into {load[1]} partitions"


def _load_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| arm | table | mean ms (spread) | p50 | p95 | p99 | max | commits/min | files/min | kB/file "
        "| CPU s per 10⁶ rows | cores | peak MB | rows seen |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mean = f"{row.figures['mean_ms']:,.0f} ({row.lowest_mean_ms:,.0f} to {row.highest_mean_ms:,.0f})"
        rest = " | ".join(f"{row.figures[name]:,.0f}" for name in _FIGURES[1:])
        lines.append(
            f"| {row.arm} | {row.table} | {mean} | {rest} | {row.commits_per_minute:,.0f} | {row.files_per_minute:,.0f} "
            f"| {row.kilobytes_per_file:,.0f} | {row.cpu_seconds_per_million:,.0f} | {row.cores:.2f} "
            f"| {row.peak_rss_megabytes:,.0f} | {row.seen_share:.1%} |"
        )
    return lines


def _range_of(records: Sequence[Record], name: str) -> str:
    found = sorted({round(record[name]) for record in records})
    return " to ".join(str(one) for one in dict.fromkeys(found[:1] + found[-1:]))


def write_pages(docs: Path) -> None:
    """Write ``benchmarks.md`` and a chart per load from all runs that are kept."""
    records, drained = kept(COMPARISON), kept(DRAIN)
    rows = rows_of(records)
    cost = statistics.median(record["generator_cpu_seconds"] / record["seconds"] for record in records) if records else 0.0
    repeats = max((row.repeats for row in rows), default=0)
    seconds, warm_up = (_range_of(records, name) for name in ("seconds", "warm_up_seconds"))
    lines = [
        "# Lakebound and its peers",
        "",
        f"Made by `make bench`, last run {max((record['at'] for record in records), default='never')}; {os.cpu_count()} cores,",
        f"{platform.machine()}; {seconds} s each after {warm_up} s of warm-up, up to {repeats} repeats, medians; broker, "
        f"generator ({cost:.2f} cores, median)",
        "and observer on the same machine. Freshness is from a record's CreateTime to the moment at which an outside observer",
        "(`bench/visible.py`, the same for all) first sees its commit. CPU and memory are of all processes of an arm.",
        "Names: `lakebound:TABLES:FRESHNESS`, `flink:CHECKPOINT INTERVAL`, `connect:COMMIT INTERVAL`, `spark:FORMAT` is plain",
        "`writeStream` with its defaults, `tuned` the same tuned. There is no Flink → Delta here: no artifact of it for",
        "Flink 2 is in the registries.",
        "",
        f"Versions: pyspark {version('pyspark')}, deltalake {version('deltalake')}, pyiceberg {version('pyiceberg')}, "
        f"delta-spark {version('delta-spark')}, Iceberg 1.12.0 (Spark, Connect) and 1.11.0 (Flink), Flink 2.1.3, Kafka and",
        "Kafka Connect 4.2.1, Java 17. How each is configured: `bench/arms.py`, `bench/peers/`. Every run:",
        "[comparison.jsonl](benchmarks/comparison.jsonl).",
        "",
        "## Ratios",
        "",
        *targets(rows),
        *drain_targets(drained),
        *steady_targets(kept(STEADY)),
        "",
        "Why p99 is missed at `0ms` beside maintenance, and what was tried:",
        "[decision 12](decisions/0012-a-slow-commit-gets-a-turn.md).",
        "What a pipeline costs at one record per second: [at rest](benchmarks/at-rest.md).",
    ]
    for load in sorted({row.load for row in rows}, key=lambda one: (one != (MAIN_RATE, 2, 180), one)):
        chosen = sorted((row for row in rows if row.load == load), key=lambda row: row.figures["mean_ms"])
        picture = f"comparison-{'-'.join(map(str, load))}.svg"
        bars = [(f"{row.arm} ({row.table})" if ":both:" in row.arm else row.arm, row.figures["mean_ms"], row.figures["p99_ms"])
                for row in chosen]  # fmt: skip
        (docs / "benchmarks" / picture).write_text(draw(f"Mean / p99 freshness, {load_name(load)}", bars, "ms"))
        lines += ["", f"## {load_name(load)}", "", f"![freshness](benchmarks/{picture})", "", *_load_table(chosen)]
    (docs / "benchmarks.md").write_text("\n".join([*lines, *section(drained), ""]))
