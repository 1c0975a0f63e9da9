"""Freshness of both tables seen by an outside reader, against the same loop without ledger, lease and progress.

The arms run one after the other, alternating, on one broker, with a generator in a process of its own. Writes
``docs/benchmarks/freshness.md``.
"""

from __future__ import annotations

import os
import platform
import statistics
from dataclasses import replace
from datetime import date
from pathlib import Path

from rounds import Plan, Result, make_page, measure
from running import pipeline, producing, running_application

from lakebound.control.desired import Desired
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import APPLICATION, spark_submit_command
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

ARMS = ("bare loop", "lakebound")
PARTITIONS = 4
START_DEADLINE_SECONDS = 120.0


def run_arm(arm: str, number: int, plan: Plan, base: Settings, broker: Broker) -> Result:
    """Run one arm in a home and topic of its own."""
    topic = f"bench-{number}"
    create_topics(broker.bootstrap_servers, {topic: PARTITIONS})
    settings = replace(base, home=base.home / f"run-{number}", warehouse=base.home / f"run-{number}" / "warehouse")
    spec = pipeline(topic, broker.bootstrap_servers)
    run = make_run_spec(spec, settings, Desired(), f"bench-{number}")
    command = spark_submit_command(run, settings)
    if arm == "bare loop":
        command[command.index(str(settings.apps / APPLICATION))] = str(Path(__file__).with_name("bare_loop.py"))
    with running_application(command, settings) as app, producing(plan, topic, broker) as generator:
        return measure(arm, run, plan, app, generator, start_seconds=START_DEADLINE_SECONDS, settle_seconds=2.0)


def report(plan: Plan, results: list[Result]) -> str:
    """Return the page."""
    lines = [
        "# Freshness",
        "",
        f"Made by `make bench-freshness` on {date.today()}; {os.cpu_count()} cores, {platform.machine()}, broker and generator",
        f"on the same machine. {plan.rate:,} records/s of about {plan.record_bytes} B into {PARTITIONS} partitions, trigger",
        f"`0ms`, one Delta and one Iceberg table; {plan.seconds:.0f} s after {plan.warm_up_seconds:.0f} s of warm-up,",
        f"{plan.rounds} alternating rounds. Freshness is when an outside reader first sees the commit, minus the",
        "record's CreateTime. The bare loop is the same decoding, transform and Arrow hand-over, with the two libraries' own",
        "writers in two threads, without ledger, lease, fences, counts and progress. It reads by Spark; Lakebound's driver",
        "reads small batches by itself (docs/decisions/0010). Where Spark reads in both (`driver_lane.direct: false`), the",
        "ratio of the means was 1.06 (Delta) and 0.99 (Iceberg) on 21 November 2026.",
        "",
        "| arm | table | mean ms | p50 | p95 | p99 | max | rows | commits | files | CPU s | RSS MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for table, seen in result.tables.items():
            figures = [seen.mean_ms, seen.p50_ms, seen.p95_ms, seen.p99_ms, seen.max_ms]
            lines.append(
                f"| {result.arm} | {table} | {' | '.join(f'{f:.0f}' for f in figures)} | {seen.rows} | {seen.commits} "
                f"| {seen.files} | {result.cpu_seconds:.1f} | {result.peak_rss_megabytes} |"
            )
    lines += ["", "| Lakebound ÷ bare loop, medians | mean | p50 | p95 | p99 | CPU s |", "|---|---|---|---|---|---|"]
    for table in results[0].tables:
        fields = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")
        ratios = [_ratio(results, lambda r, f=field, t=table: getattr(r.tables[t], f)) for field in fields]
        cpu = _ratio(results, lambda r: r.cpu_seconds)
        lines.append(f"| {table} | {' | '.join(f'{ratio:.2f}' for ratio in [*ratios, cpu])} |")
    generator = statistics.median(result.generator_cpu_seconds for result in results)
    lines += ["", f"The generator used {generator:.1f} CPU seconds per arm, its warm-up included.", ""]
    return "\n".join(lines)


def _ratio(results: list[Result], figure) -> float:  # type: ignore[no-untyped-def]
    own, bare = ([figure(result) for result in results if result.arm == arm] for arm in reversed(ARMS))
    return statistics.median(own) / statistics.median(bare)


def main() -> None:
    """Run all arms, print the table, write the page."""
    make_page(__doc__, ARMS, run_arm, report, "docs/benchmarks/freshness.md", rounds=3)


if __name__ == "__main__":
    main()
