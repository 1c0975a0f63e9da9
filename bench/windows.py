"""One stream, looked at in alternating windows: without other work on its tables, and with it. Kafka judges them at the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition
from freshness import PARTITIONS
from maintenance_arms import read
from rounds import Plan, has_rows
from running import cpu_seconds_of, own_broker, pipeline, producing, running_application

from lakebound.control.desired import Desired
from lakebound.control.processes import wait_until
from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.landing.spark_command import spark_submit_command
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

TOPIC = "bench-windows"
LANDED_DEADLINE_SECONDS = 120.0

Run = dict[str, Any]
Work = Callable[[PipelineSpec, Settings, str], Run]
"""Works once on the tables, under a name, and returns its report."""


@dataclass(frozen=True)
class Window:
    """What was seen in one window; CPU seconds are the stream's own."""

    tables: dict[str, VisibleFreshness]
    runs: list[Run]
    cpu_seconds: float


@dataclass(frozen=True)
class Judgement:
    """One table against Kafka: records that are not there, rows beyond one per record."""

    records: int
    missing: int
    duplicated: int

    def __str__(self) -> str:
        return f"{self.records:,} records in Kafka, missing {self.missing}, duplicated {self.duplicated}"


@dataclass(frozen=True)
class Stream:
    """The stream under measurement."""

    run: RunSpec
    settings: Settings
    app: subprocess.Popen[bytes]
    arguments: argparse.Namespace

    def window(self, name: str, work: Work | None) -> Window:
        """Look at the tables for the length of a window; ``work`` is done in it so often as asked, evenly."""
        runs = []
        seconds = self.arguments.seconds
        with FreshnessObserver(self.run.places, self.run.spec.tables) as observer:
            started, started_ms, cpu = time.monotonic(), time.time() * 1000, cpu_seconds_of(self.app.pid)
            for number in range(self.arguments.runs if work is not None else 0):
                _sleep_until(started + number * seconds / self.arguments.runs)
                runs.append(work(self.run.spec, self.settings, f"{name}-{number}"))  # type: ignore[misc]
            _sleep_until(started + seconds)
            cpu = cpu_seconds_of(self.app.pid) - cpu
            if self.app.poll() is not None:
                raise SystemExit(f"the stream ended with {self.app.returncode}; its log is {self.settings.home}/app.log")
        return Window(observer.measure(produced_after_ms=started_ms), runs, cpu)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def arguments_of(parser: argparse.ArgumentParser, page: str) -> argparse.Namespace:
    """Return the arguments that all such benchmarks take."""
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--freshness", default="0ms")
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=115)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2, help="how often the other work is done in each window that has it")
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs" / "benchmarks" / page)
    return parser.parse_args()


def measure(
    arguments: argparse.Namespace, changes: Mapping[str, object], work: Work, said_of: Callable[[Run], object]
) -> tuple[list[Window], dict[str, Judgement]]:
    """Run a broker, the stream and its windows; the first one is without the other work, the second one with it, and so on.

    Args:
        arguments: As ``arguments_of`` gives them.
        changes: What the stream's pipeline has beside the usual.
        work: What is done in every second window.
        said_of: What is printed of each run.
    """
    with own_broker() as (base, broker):
        home = base.home / "run"
        settings = replace(base, home=home, warehouse=home / "warehouse", kafka=broker.bootstrap_servers)
        return _measure(settings, broker, arguments, changes, work, said_of)


def _measure(
    settings: Settings,
    broker: Broker,
    arguments: argparse.Namespace,
    changes: Mapping[str, object],
    work: Work,
    said_of: Callable[[Run], object],
) -> tuple[list[Window], dict[str, Judgement]]:
    create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
    spec = pipeline(TOPIC, broker.bootstrap_servers, freshness=arguments.freshness, **changes)
    run = make_run_spec(spec, settings, Desired(), "bench")
    plan = Plan(arguments.rate, 180, arguments.warm_up_seconds, arguments.seconds, arguments.pairs)
    windows = []
    with running_application(spark_submit_command(run, settings), settings) as app:
        with producing(plan, TOPIC, broker) as generator:
            wait_until(lambda: has_rows(run), 120.0, "the first rows")
            time.sleep(plan.warm_up_seconds)
            stream = Stream(run, settings, app, arguments)
            for number in range(2 * plan.rounds):
                window = stream.window(f"window-{number}", work if number % 2 else None)
                p99 = {name: round(seen.p99_ms) for name, seen in window.tables.items()}
                print(f"window {number}: p99 ms {p99}, {[said_of(one) for one in window.runs]}", flush=True)
                windows.append(window)
            generator.send_signal(signal.SIGTERM)
            generator.communicate(timeout=60)
        ends = kafka_ends(broker)
        wait_until(
            lambda: all(judge(table, run.places, ends).missing == 0 for table in spec.tables),
            LANDED_DEADLINE_SECONDS,
            "all records in both tables",
            poll_seconds=5.0,
        )
        judgements = {table.id: judge(table, run.places, ends) for table in spec.tables}
    print(json.dumps({table: vars(found) for table, found in judgements.items()}), flush=True)
    return windows, judgements


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


def windows_table(windows: Sequence[Window], work: str, column: str, cell: Callable[[Run, str], object]) -> list[str]:
    """Return the lines of all windows, and of the ratios of their medians.

    Args:
        windows: As measured.
        work: What the other work is called.
        column: Head of the column that says something of each run.
        cell: What it says of a run and a table.
    """
    lines = [
        f"| window | {work} | table | mean ms | p50 | p99 | max | commits | stream's CPU s | {column} |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for number, window in enumerate(windows):
        for table, seen in window.tables.items():
            said = ", ".join(str(cell(run, table)) for run in window.runs)
            figures = " | ".join(f"{value:.0f}" for value in (seen.mean_ms, seen.p50_ms, seen.p99_ms, seen.max_ms))
            lines.append(
                f"| {number + 1} | {'yes' if window.runs else 'no'} | {table} | {figures} | {seen.commits} "
                f"| {window.cpu_seconds:.0f} | {said} |"
            )
    lines += ["", "| with ÷ without, medians of the windows | mean | p50 | p99 |", "|---|---|---|---|"]
    for table in windows[0].tables:
        ratios = [_ratio(windows, table, field) for field in ("mean_ms", "p50_ms", "p99_ms")]
        lines.append(f"| {table} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    return lines


def _ratio(windows: Sequence[Window], table: str, field: str) -> float:
    without, beside = (
        statistics.median(getattr(window.tables[table], field) for window in windows if bool(window.runs) is worked)
        for worked in (False, True)
    )
    return beside / without


def what_was_run(arguments: argparse.Namespace, command: str, work: str) -> list[str]:
    """Return the page's lines that say what was measured."""
    return [
        f"`make {command}` on {date.today()}, {platform.machine()}, {os.cpu_count()} cores, broker and generator on the",
        f"same machine: {arguments.rate:,} records/s of about 180 B into {PARTITIONS} partitions, trigger",
        f"`{arguments.freshness}`, one Delta and one Iceberg table; {arguments.pairs} windows of {arguments.seconds:g} s",
        f"without {work} and {arguments.pairs} with {arguments.runs} runs each, alternating. Freshness as in",
        "[freshness](freshness.md).",
        "",
    ]


def write_page(arguments: argparse.Namespace, lines: Sequence[str]) -> None:
    """Write the page, and print it."""
    text = "\n".join([*lines, ""])
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    arguments.page.write_text(text)
    print(text)
