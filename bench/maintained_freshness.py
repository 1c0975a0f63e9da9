"""Freshness beside maintenance: one stream, windows with maintenance and windows without, alternating.

In a window with maintenance the real application runs every minute, in a process of its own, at the lowest priority. At the end
the tables are held against Kafka's own offsets. Writes ``docs/benchmarks/maintained-freshness.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition
from freshness import PARTITIONS, Plan, cpu_seconds_of, has_rows, pipeline, producing, running_application
from maintenance_arms import maintain, read

from lakebound.desired import Desired
from lakebound.embedded.broker import Broker
from lakebound.embedded.processes import wait_until
from lakebound.embedded.stack import create_topics
from lakebound.freshness import Freshness, FreshnessObserver
from lakebound.run_spec import Places, RunSpec, make_run_spec
from lakebound.settings import Settings, load_settings
from lakebound.spec import PipelineSpec, TableSpec
from lakebound.submit import spark_submit_command

TOPIC = "bench-maintained"
MAINTENANCE = {
    "cooldown_seconds": 0,
    # The table is not partitioned, so its only partition is always hot.
    "compaction": {"hot_min_small_files": 100},
}
LANDED_DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class Window:
    """What was seen in one window; CPU seconds are the stream's own."""

    tables: dict[str, Freshness]
    runs: list[dict[str, object]]
    cpu_seconds: float


@dataclass(frozen=True)
class Judgement:
    """One table against Kafka: records that are not there, rows beyond one per record."""

    records: int
    missing: int
    duplicated: int


@dataclass(frozen=True)
class Bench:
    """The stream under measurement."""

    run: RunSpec
    settings: Settings
    app: subprocess.Popen[bytes]
    seconds: float
    runs_per_window: int
    rss_megabytes: list[int]

    def window(self, name: str, *, maintained: bool) -> Window:
        """Look at the tables for the length of a window, while maintenance runs or does not."""
        runs = []
        with FreshnessObserver(self.run.places, self.run.spec.tables) as observer:
            started, started_ms, cpu = time.monotonic(), time.time() * 1000, cpu_seconds_of(self.app)
            for number in range(self.runs_per_window if maintained else 0):
                _sleep_until(started + number * self.seconds / self.runs_per_window)
                runs.append(maintain(self.run.spec, self.settings, f"{name}-{number}", self.rss_megabytes))
            _sleep_until(started + self.seconds)
            cpu = cpu_seconds_of(self.app) - cpu
            if self.app.poll() is not None:
                raise SystemExit(f"the stream ended with {self.app.returncode}; its log is {self.settings.home}/app.log")
        return Window(observer.measure(produced_after_ms=started_ms), runs, cpu)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def measure(base: Settings, broker: Broker, arguments: argparse.Namespace) -> tuple[list[Window], dict[str, Judgement], Bench]:
    """Run the stream and its windows; the first window is one without maintenance, the second one with it, and so on."""
    create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
    settings = replace(base, home=base.home / "run", warehouse=base.home / "run" / "warehouse")
    body = pipeline(TOPIC, broker.bootstrap_servers).model_dump(by_alias=True)
    spec = PipelineSpec.model_validate({**body, "freshness": arguments.freshness, "maintenance": MAINTENANCE})
    run = make_run_spec(spec, settings, Desired(), "bench")
    plan = Plan(arguments.rate, 180, arguments.warm_up_seconds, arguments.seconds, arguments.pairs)
    with running_application(spark_submit_command(run, settings), settings) as app:
        with producing(plan, TOPIC, broker) as generator:
            wait_until(lambda: has_rows(run), 120.0, "the first rows")
            time.sleep(plan.warm_up_seconds)
            bench = Bench(run, settings, app, plan.seconds, arguments.runs, [])
            windows = []
            for number in range(2 * plan.rounds):
                windows.append(bench.window(f"window-{number}", maintained=number % 2 == 1))
                print(_told(number, windows[-1]), flush=True)
            generator.send_signal(signal.SIGTERM)
            generator.communicate(timeout=60)
        ends = kafka_ends(broker)
        wait_until(
            lambda: all(judge(table, run.places, ends).missing == 0 for table in spec.tables),
            LANDED_DEADLINE_SECONDS,
            "all records in both tables",
            poll_seconds=5.0,
        )
        return windows, {table.id: judge(table, run.places, ends) for table in spec.tables}, bench


def _told(number: int, window: Window) -> str:
    p99 = {name: round(seen.p99_ms) for name, seen in window.tables.items()}
    return f"window {number}: p99 ms {p99}, files removed by each run {[files_removed(run) for run in window.runs]}"


def kafka_ends(broker: Broker) -> dict[int, int]:
    """Return the end of every partition, asked of Kafka."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "judge"})
    try:
        return {p: consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=30)[1] for p in range(PARTITIONS)}
    finally:
        consumer.close()


def judge(spec: TableSpec, places: Places, ends: Mapping[int, int]) -> Judgement:
    """Hold the rows of a table, read by its own library, against Kafka's offsets."""
    kafka = read(spec, places, ["_kafka"], None).column("_kafka").combine_chunks()
    partitions, offsets = kafka.field("partition"), kafka.field("offset")
    keys = pc.add(pc.multiply(partitions.cast("int64"), 1 << 40), offsets)
    distinct = len(pc.unique(keys))
    return Judgement(sum(ends.values()), sum(ends.values()) - distinct, len(keys) - distinct)


def files_removed(run: Mapping[str, object]) -> dict[str, int]:
    """Return by how many files a run's compactions made each table smaller."""
    removed: dict[str, int] = {}
    for step in run["steps"]:  # type: ignore[attr-defined]
        if step["step"]["kind"] == "compact":
            table = step["step"]["table"]
            removed[table] = removed.get(table, 0) + step["files_before"] - step["files_after"]
    return removed


def page(windows: Sequence[Window], judgements: Mapping[str, Judgement], bench: Bench, arguments: argparse.Namespace) -> str:
    """Return the page of results."""
    runs = [run for window in windows for run in window.runs]
    lines = [
        "# Freshness beside maintenance",
        "",
        f"`make bench-maintained-freshness` on {date.today()}, {platform.machine()}, {os.cpu_count()} cores, broker and",
        f"generator on the same machine: {arguments.rate:,} records/s of about 180 B into {PARTITIONS} partitions, trigger",
        f"`{arguments.freshness}`, one Delta and one Iceberg table; {arguments.pairs} windows of {arguments.seconds:g} s",
        f"without maintenance and {arguments.pairs} with {arguments.runs} runs each, alternating. Freshness as in",
        "[freshness](freshness.md).",
        "",
        "| window | maintenance | table | mean ms | p50 | p99 | max | commits | stream's CPU s | files removed by the runs |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for number, window in enumerate(windows):
        for table, seen in window.tables.items():
            removed = ", ".join(str(files_removed(run).get(table, 0)) for run in window.runs)
            figures = " | ".join(f"{value:.0f}" for value in (seen.mean_ms, seen.p50_ms, seen.p99_ms, seen.max_ms))
            lines.append(
                f"| {number + 1} | {'yes' if window.runs else 'no'} | {table} | {figures} | {seen.commits} "
                f"| {window.cpu_seconds:.0f} | {removed} |"
            )
    lines += ["", "| with ÷ without, medians of the windows | mean | p50 | p99 |", "|---|---|---|---|"]
    for table in judgements:
        ratios = [_ratio(windows, table, field) for field in ("mean_ms", "p50_ms", "p99_ms")]
        lines.append(f"| {table} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    steps = [step for run in runs for step in run["steps"]]  # type: ignore[attr-defined]
    seconds = [sum(step["seconds"] for step in run["steps"]) for run in runs]  # type: ignore[attr-defined]
    lines += ["", f"{len(runs)} maintenance runs; their steps took {statistics.median(seconds):.1f} s (median) and at most"]
    lines += [f"{max(seconds):.1f} s; {sum(step['conflicts'] for step in steps)} conflicts, "
              f"{sum(step['outcome'] == 'lost' for step in steps)} steps lost to the writer; JVM and Python took at most "
              f"{max(bench.rss_megabytes):,} MB.", ""]  # fmt: skip
    for table, found in judgements.items():
        lines.append(f"- {table}: {found.records:,} records in Kafka, missing {found.missing}, duplicated {found.duplicated}")
    return "\n".join([*lines, ""])


def _ratio(windows: Sequence[Window], table: str, field: str) -> float:
    without, beside = (
        statistics.median(getattr(window.tables[table], field) for window in windows if bool(window.runs) is maintained)
        for maintained in (False, True)
    )
    return beside / without


def main() -> None:
    """Run all windows and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--freshness", default="500ms")
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2, help="maintenance runs in each window that has them")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/maintained-freshness.md"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakebound-bench-") as folder:
        broker = Broker(Path(folder) / "kafka", load_settings().jars)
        base = replace(load_settings({**os.environ, "LAKEBOUND_HOME": folder}), warehouse=Path(folder) / "warehouse")
        broker.start()
        try:
            base = replace(base, kafka=broker.bootstrap_servers)
            windows, judgements, bench = measure(base, broker, arguments)
        finally:
            broker.stop()
    text = page(windows, judgements, bench, arguments)
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    arguments.page.write_text(text)
    print(json.dumps({table: vars(found) for table, found in judgements.items()}))
    print(text)


if __name__ == "__main__":
    main()
