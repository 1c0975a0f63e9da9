"""Lakebound and its peers one after the other: same broker, same topic content, same machine, seen by the same observer.

Every run is written to ``docs/benchmarks/comparison.jsonl`` as soon as it has ended, and is not made again: an interrupted
benchmark goes on where it stopped (``--anew`` begins anew). All are made once before any is repeated, and one that was shorter
than what is asked for is made again. ``docs/benchmarks.md`` is made of that file.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arms import Started, setting_of, start
from comparison_page import write_pages
from kept_runs import COMPARISON, DOCS, keep, kept
from running import cpu_seconds_of, ending, family_of, own_broker, producing
from visible import Watch

from lakebound.control.processes import wait_until
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

FIRST_ROWS_SECONDS = 180.0


@dataclass(frozen=True)
class Load:
    """What is produced: records per second into partitions, of about so many bytes each."""

    rate: int
    partitions: int
    record_bytes: int


FLINK = ("flink:100ms", "flink:250ms", "flink:1s")
LAKEBOUND = ("lakebound:iceberg:0ms", "lakebound:both:0ms")
SAME_FRESHNESS = ("lakebound:iceberg:200ms", "lakebound:iceberg:400ms")
"""As fresh as Flink at its best interval, so that cost can be compared at the same freshness."""
PLAIN = ("spark:delta", "spark:delta:tuned", "spark:iceberg", "spark:iceberg:tuned")
MATRIX: dict[Load, tuple[str, ...]] = {
    Load(2000, 2, 180): (*LAKEBOUND, "lakebound:delta:0ms", *SAME_FRESHNESS, *FLINK, "connect:1000ms", *PLAIN),
    Load(20000, 2, 180): (*LAKEBOUND, "flink:250ms", "flink:1s", "connect:1000ms"),
    Load(200, 2, 180): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
    Load(2000, 16, 180): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
    Load(2000, 2, 1200): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
}
"""Which arms run under which load. The first is the one that the targets speak of; the others change one thing each."""


@dataclass(frozen=True)
class Run:
    """One arm under one load: what was seen of each table, and what it cost in the measured time."""

    arm: str
    load: Load
    repeat: int
    warm_up_seconds: float
    seconds: float
    tables: dict[str, dict[str, Any]]
    cpu_seconds: float
    peak_rss_megabytes: int
    broker_cpu_seconds: float
    generator_cpu_seconds: float
    observer_cpu_seconds: float
    at: str


def measure(arm: str, load: Load, repeat: int, args: argparse.Namespace, base: Settings, broker: Broker) -> Run:
    """Run one arm on a topic of its own."""
    topic = f"bench-{arm.replace(':', '-')}-{load.rate}-{load.partitions}-{load.record_bytes}-{repeat}"
    create_topics(broker.bootstrap_servers, {topic: load.partitions})
    setting = setting_of(base, broker.bootstrap_servers, topic)
    started = start(arm, setting)
    with ending(started.process), producing(load, topic, broker) as generator, Watch(started.places) as watch:
        wait_until(lambda: _has_rows(started, watch, setting.folder), FIRST_ROWS_SECONDS, f"the first rows of {arm}")
        time.sleep(args.warm_up_seconds)
        processes = {"app": started.process.pid, "broker": _pid_of(broker), "generator": generator.pid}
        from_ms = time.time() * 1000
        before, own_before = {name: cpu_seconds_of(pid) for name, pid in processes.items()}, time.process_time()
        time.sleep(args.seconds)
        until_ms = time.time() * 1000
        cpu = {name: round(cpu_seconds_of(pid) - before[name], 1) for name, pid in processes.items()}
        own_cpu = round(time.process_time() - own_before, 1)
        peak = _peak_rss_megabytes(started.process.pid)
        generator.send_signal(signal.SIGTERM)
        time.sleep(started.settle_seconds)
        if started.process.poll() is not None:
            raise SystemExit(f"{arm} ended with {started.process.returncode}; its log is {setting.folder}/app.log")
    seen = {name: watch.measure(name, from_ms, until_ms) for name in started.places}
    return Run(
        arm=arm,
        load=load,
        repeat=repeat,
        warm_up_seconds=args.warm_up_seconds,
        seconds=args.seconds,
        tables={name: asdict(one) for name, one in seen.items() if one is not None},
        cpu_seconds=cpu["app"],
        peak_rss_megabytes=peak,
        broker_cpu_seconds=cpu["broker"],
        generator_cpu_seconds=cpu["generator"],
        observer_cpu_seconds=own_cpu,
        at=time.strftime("%Y-%m-%d %H:%M"),
    )


def _has_rows(started: Started, watch: Watch, folder: Path) -> bool:
    if started.process.poll() is not None:
        raise SystemExit(f"it ended with {started.process.returncode}: {(folder / 'app.log').read_text()[-3000:]}")
    return all(watch.commits(name) > 1 for name in started.places)


def _pid_of(broker: Broker) -> int:
    assert broker.record is not None
    return broker.record.pid


def _peak_rss_megabytes(pid: int) -> int:
    kilobytes = 0
    for process in family_of(pid):
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile: Hadoop forks a process per file
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return kilobytes // 1000


def replaced_by(new: Run) -> Callable[[dict[str, Any]], bool]:
    """Return whether a run is shorter than this one of the same arm under the same load."""
    return lambda one: one["seconds"] < new.seconds and (one["arm"], Load(**one["load"])) == (new.arm, new.load)


def _wanted(args: argparse.Namespace) -> Iterator[tuple[str, Load, int]]:
    made = {(one["arm"], Load(**one["load"]), one["repeat"]) for one in kept(COMPARISON) if one["seconds"] >= args.seconds}
    for repeat in range(args.repeats):
        for load, arms in MATRIX.items():
            for arm in args.arms or arms:
                if (arm, load, repeat) not in made and (not args.rate or load.rate in args.rate):
                    yield arm, load, repeat


def main() -> None:
    """Make the runs that are not there yet, then the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", nargs="*", help="only these")
    parser.add_argument("--rate", nargs="*", type=int, help="only loads of these rates")
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--anew", action="store_true", help="forget the runs that were made")
    args = parser.parse_args()
    if args.anew:
        COMPARISON.unlink(missing_ok=True)
    try:
        with own_broker() as (base, broker):
            for arm, load, repeat in _wanted(args):
                print(f"bench: {arm}, {load}, repeat {repeat + 1}", flush=True)
                run = measure(arm, load, repeat, args, base, broker)
                print(json.dumps(asdict(run)), flush=True)
                keep(COMPARISON, asdict(run), replaced_by(run))
    finally:
        write_pages(DOCS)


if __name__ == "__main__":
    main()
