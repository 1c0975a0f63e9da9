"""The page of the comparison: a table and a chart per work and load, and the ratios that the project is held to."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from arm_names import WORKS, Work
from bars import draw
from comparison_ratios import MAIN_RATE, drain_targets, steady_targets, targets
from comparison_rows import FIGURES, Record, Row, rows_of
from drain_page import section
from kept_runs import COMPARISON, DRAIN, STEADY, kept

MAIN_LOAD = (MAIN_RATE, 2, 180)
WORK_NAMES: dict[Work, str] = {
    "encode": "A transform that encodes",
    "enrich": "A transform that joins a reference table",
    "dirty": "One record of a hundred cannot be decoded",
    "avro": "Values in Avro, with a schema registry",
    "protobuf": "Values in Protobuf, with a schema registry",
    "plain": "No transform",
}


def load_name(load: tuple[int, int, int]) -> str:
    """Return a load in words."""
    return f"{load[0]:,} records/s of {load[2]:,} B into {load[1]} partitions"


def _load_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| arm | table | mean ms (spread) | p50 | p95 | p99 | max | commits/min | files/min | kB/file "
        "| CPU s per 10⁶ records | cores | peak MB | rows seen | lanes | syncs/s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mean = f"{row.figures['mean_ms']:,.0f} ({row.lowest_mean_ms:,.0f} to {row.highest_mean_ms:,.0f})"
        rest = " | ".join(f"{row.figures[name]:,.0f}" for name in FIGURES[1:])
        lines.append(
            f"| {row.arm} | {row.table} | {mean} | {rest} | {row.commits_per_minute:,.0f} | {row.files_per_minute:,.0f} "
            f"| {row.kilobytes_per_file:,.0f} | {row.cpu_seconds_per_million:,.0f} | {row.cores:.2f} "
            f"| {row.peak_rss_megabytes:,.0f} | {row.seen_share:.1%}{_told_difference(row)} | {row.lanes} | {row.syncs} |"
        )
    return lines


def _told_difference(row: Row) -> str:
    return f"; **{row.differing:,} rows are missing or too many**" if row.differing else ""


def _range_of(records: Sequence[Record], name: str) -> str:
    found = sorted({round(record[name]) for record in records})
    return " to ".join(str(one) for one in dict.fromkeys(found[:1] + found[-1:]))


def write_pages(docs: Path) -> None:
    """Write ``benchmarks.md`` and a chart per work and load from all runs that are kept in a folder of docs."""
    records, drained, steady = (kept(docs / "benchmarks" / log.name) for log in (COMPARISON, DRAIN, STEADY))
    rows = rows_of(records)
    lines = [
        *_head(records, rows),
        "",
        "## Ratios",
        "",
        *targets(rows),
        *drain_targets(drained),
        *steady_targets(steady),
        *_FOOT,
    ]
    for work in WORKS:
        loads = {row.load for row in rows if row.work == work}
        for load in sorted(loads, key=lambda one: (one != MAIN_LOAD, one)):
            lines += _section(docs, work, load, [row for row in rows if (row.work, row.load) == (work, load)])
    (docs / "benchmarks.md").write_text("\n".join([*lines, *section(drained), ""]))


def _section(docs: Path, work: Work, load: tuple[int, int, int], rows: Sequence[Row]) -> list[str]:
    """Return the lines about one work under one load, and write its chart."""
    chosen = sorted(rows, key=lambda row: row.figures["mean_ms"])
    picture = f"comparison-{'' if work == 'plain' else f'{work}-'}{'-'.join(map(str, load))}.svg"
    bars = [(f"{row.arm} ({row.table})" if ":both:" in row.arm else row.arm, row.figures["mean_ms"], row.figures["p99_ms"])
            for row in chosen]  # fmt: skip
    (docs / "benchmarks" / picture).write_text(draw(f"Mean / p99 freshness, {load_name(load)}", bars, "ms"))
    title = load_name(load) if work == "plain" else f"{WORK_NAMES[work]}: {load_name(load)}"
    return ["", f"## {title}", "", f"![freshness](benchmarks/{picture})", "", *_load_table(chosen)]


def _head(records: Sequence[Record], rows: Sequence[Row]) -> list[str]:
    cost = statistics.median(record["generator_cpu_seconds"] / record["seconds"] for record in records) if records else 0.0
    repeats = max((row.repeats for row in rows), default=0)
    seconds, warm_up = (_range_of(records, name) for name in ("seconds", "warm_up_seconds"))
    return [
        "# Lakebound and its peers",
        "",
        f"Made by `make bench`, last run {max((record['at'] for record in records), default='never')}; {os.cpu_count()} cores,",
        f"{platform.machine()}; {seconds} s each after {warm_up} s of warm-up, up to {repeats} repeats, medians; broker, "
        f"generator ({cost:.2f} cores, median)",
        "and observer on the same machine. Freshness is from a record's CreateTime to the moment at which an outside observer",
        "(`bench/visible.py`, the same for all) first sees its commit. CPU and memory are of all processes of an arm.",
        "Names: `lakebound:TABLES:FRESHNESS`, `flink:CHECKPOINT INTERVAL`, `connect:COMMIT INTERVAL`, `spark:FORMAT` is plain",
        "`writeStream` with its defaults, `tuned` the same tuned. There is no Flink → Delta here: no artifact of it for",
        "Flink 2 is in the registries. Arms with a transform, how rows are compared, what *lanes* and *syncs/s* are, and how",
        "to run a part of this: [how it is measured](benchmarks/how-it-is-measured.md).",
        "",
        f"Versions: pyspark {version('pyspark')}, deltalake {version('deltalake')}, pyiceberg {version('pyiceberg')}, "
        f"delta-spark {version('delta-spark')}, Iceberg 1.12.0 (Spark, Connect) and 1.11.0 (Flink), Flink 2.1.3, Kafka and",
        "Kafka Connect 4.2.1, Java 17. How each is configured: `bench/arms.py`, `bench/peers/`. Every run:",
        "[comparison.jsonl](benchmarks/comparison.jsonl).",
    ]


_FOOT = [
    "",
    "Why p99 is missed at `0ms` beside maintenance, and what was tried:",
    "[decision 12](decisions/0012-a-slow-commit-gets-a-turn.md).",
    "What a pipeline costs at one record per second: [at rest](benchmarks/at-rest.md).",
    "Avro and Protobuf beside JSON, and beside Flink with Avro: [value formats](benchmarks/value-formats.md).",
]
