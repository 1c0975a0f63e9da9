"""What a pipeline costs at one record per second: as a stream at several intervals, and started every few minutes instead.

Writes ``docs/benchmarks/at-rest.md``; figures are per hour, by what was measured in some minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from arms import start_pipeline
from compare import Load
from running import cpu_seconds_of, cpu_seconds_of_children, ending, own_broker, pipeline, producing
from visible import Place, Watch

from lakebound.control.processes import wait_until
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

TOPIC = "at-rest"
STREAMS = ("0ms", "1s", "10s", "1m")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "at-rest.md"


@dataclass(frozen=True)
class Cost:
    """What a way of running costs in an hour; files and commits of both tables."""

    name: str
    cpu_seconds: float
    files: float
    commits: float


def stream(interval: str, args: argparse.Namespace, settings: Settings, broker: Broker) -> Cost:
    """Measure a stream that runs all the time."""
    started = start_pipeline(pipeline(TOPIC, broker.bootstrap_servers, freshness=interval), settings)
    with ending(started.process), Watch(started.places) as watch:
        wait_until(lambda: all(watch.commits(name) > 1 for name in started.places), 180, f"the first rows at {interval}")
        time.sleep(args.warm_up_seconds)
        _new_files(started.places, watch)
        cpu, commits = cpu_seconds_of(started.process.pid), _commits(watch)
        time.sleep(args.seconds)
        cpu, commits = cpu_seconds_of(started.process.pid) - cpu, _commits(watch) - commits
        files = _new_files(started.places, watch)
    hours = args.seconds / 3600
    return Cost(f"stream, `freshness: {interval}`", cpu / hours, files / hours, commits / hours)


def every_few_minutes(args: argparse.Namespace, settings: Settings, broker: Broker) -> Iterator[Cost]:
    """Measure runs of ``available_now`` that are started at intervals; the first, which makes the tables, is left out."""
    spec = pipeline(TOPIC, broker.bootstrap_servers, freshness="available_now")
    seconds: list[float] = []
    for number in range(args.runs + 1):
        began, before = time.monotonic(), cpu_seconds_of_children()
        started = start_pipeline(spec, settings)
        if started.process.wait(timeout=300):
            raise SystemExit(f"a run ended with {started.process.returncode}; its log is {settings.home}/app.log")
        seconds.append(cpu_seconds_of_children() - before)
        if number < args.runs:
            time.sleep(max(0.0, args.run_every_seconds - (time.monotonic() - began)))
    with Watch(started.places) as watch:
        wait_until(lambda: all(watch.commits(name) for name in started.places), 30, "the tables of the runs")
        files = _new_files(started.places, watch) / len(seconds)
    for minutes in (5, 15):
        runs = 60 / minutes
        yield Cost(f"`available_now` every {minutes} minutes", sum(seconds[1:]) / args.runs * runs, files * runs, 2 * runs)


def _new_files(places: dict[str, Place], watch: Watch) -> int:
    """Return how many files were added since this was asked last."""
    return sum(sum(1 for _ in place.files(watch.seen(name).copy())) for name, place in places.items())


def _commits(watch: Watch) -> int:
    return sum(watch.commits(name) for name in watch.places)


def main() -> None:
    """Measure all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--run-every-seconds", type=float, default=60)
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    costs: list[Cost] = []
    with own_broker() as (base, broker):
        create_topics(broker.bootstrap_servers, {TOPIC: 2})
        with producing(Load(1, 2, 180), TOPIC, broker):
            for interval in STREAMS:
                costs.append(stream(interval, args, _settings(base, interval), broker))
                print(costs[-1], flush=True)
            costs += every_few_minutes(args, _settings(base, "now"), broker)
    args.page.write_text("\n".join([*page(args, costs), ""]))
    print(args.page.read_text())


def _settings(base: Settings, name: str) -> Settings:
    home = base.home / name
    return replace(base, home=home, warehouse=home / "warehouse")


def page(args: argparse.Namespace, costs: list[Cost]) -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# A pipeline at rest",
        "",
        f"`make bench-at-rest` on {date.today()}, {platform.machine()}, {os.cpu_count()} cores: one record per second into one",
        f"Delta and one Iceberg table. A stream was looked at for {args.seconds:g} s after {args.warm_up_seconds:g} s; of",
        f"`available_now`, {args.runs} starts were measured, each with its JVM. CPU is of the application's JVM and Python;",
        "files are data files of both tables, before compaction.",
        "",
        "| how it runs | CPU s per hour | data files per hour | commits per hour |",
        "|---|---|---|---|",
    ]
    return lines + [f"| {one.name} | {one.cpu_seconds:,.0f} | {one.files:,.0f} | {one.commits:,.0f} |" for one in costs]


if __name__ == "__main__":
    main()
