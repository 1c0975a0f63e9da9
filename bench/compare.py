"""Lakebound and its peers one after the other: same broker, same topic content, same machine, seen by the same observer.

Every run is written to ``docs/benchmarks/comparison.jsonl`` as soon as it has ended, and is not made again: an interrupted
benchmark goes on where it stopped (``--anew`` starts again from the beginning). All are made once before any is repeated, and
one that was shorter than what is asked for is made again. ``docs/benchmarks.md`` is made of that file.

After the measured time the generator ends, everything lands, and the rows of each table are compared with those that the sent
records give (``bench/work.py``): so arms with the same work are known to have done the same.
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

from arm_names import parse
from arms import Started, setting_of, start
from comparison_page import write_pages
from fsyncs import syncs_per_second
from generator import values
from kept_runs import COMPARISON, DOCS, keep, kept
from lanes import lanes_between
from running import cpu_seconds_of, ending, family_of, own_broker, producing
from value_formats import encoding_of, own_registry
from visible import Watch
from work import checked, rows_in, rows_of

from lakebound.control.processes import wait_until
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

FIRST_ROWS_SECONDS = 180.0
LOOK_AT_SYNCS_SECONDS = 3
ALL_ROWS_SECONDS = 60.0


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
WITH_TRANSFORM = tuple(
    f"{arm}:{work}" for work in ("encode", "enrich") for arm in ("lakebound:iceberg:0ms", "lakebound:both:0ms", "flink:250ms")
)
DIRTY = ("lakebound:iceberg:0ms:dirty", "lakebound:both:0ms:dirty", "flink:250ms:dirty")
SCHEMAS = ("lakebound:iceberg:0ms:avro", "lakebound:iceberg:0ms:protobuf")
WITH_SCHEMAS = (*SCHEMAS, "flink:100ms:avro", "flink:250ms:avro")
BY_SPARK = ("lakebound:iceberg:0ms:spark", "lakebound:iceberg:0ms:encode:spark")
"""Where Spark reads and decodes every batch."""
MATRIX: dict[Load, tuple[str, ...]] = {
    Load(2000, 2, 180): (
        *(*WITH_TRANSFORM, *DIRTY, *WITH_SCHEMAS, *BY_SPARK, *LAKEBOUND, "lakebound:delta:0ms"),
        *(*SAME_FRESHNESS, *FLINK, "connect:1000ms", *PLAIN),
    ),
    Load(20000, 2, 180): (
        *("lakebound:iceberg:0ms:encode", "flink:250ms:encode", *SCHEMAS, "flink:250ms:avro"),
        *(*LAKEBOUND, "flink:250ms", "flink:1s", "connect:1000ms"),
    ),
    Load(200, 2, 180): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
    Load(2000, 16, 180): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
    Load(2000, 2, 1200): (*LAKEBOUND, "flink:250ms", "connect:1000ms"),
}
"""Which arms run under which load. The first is the one that the targets speak of; the others change one thing each."""


@dataclass(frozen=True)
class Run:
    """One arm under one load: what was seen of each table, and what it cost in the measured time.

    ``lanes`` are Lakebound's batches by lane. ``syncs_per_second`` are of all the arm's processes; None where nobody could
    count them. ``checks`` are the rows of each table against those of the sent records.
    """

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
    lanes: dict[str, int]
    syncs_per_second: float | None
    checks: dict[str, dict[str, Any]]
    at: str


class ArmEndedError(Exception):
    """An arm's first process ended by itself."""


@dataclass(frozen=True)
class Services:
    """What the arms share.

    Attributes:
        base: Settings of the benchmark.
        broker: With all topics.
        registry: Address of the schema registry, where an arm needs one.
    """

    base: Settings
    broker: Broker
    registry: str | None


def measure(arm: str, load: Load, repeat: int, args: argparse.Namespace, services: Services) -> Run:
    """Run one arm on a topic of its own."""
    topic = f"bench-{arm.replace(':', '-')}-{load.rate}-{load.partitions}-{load.record_bytes}-{repeat}"
    broker = services.broker
    create_topics(broker.bootstrap_servers, {topic: load.partitions})
    setting = setting_of(services.base, broker.bootstrap_servers, topic, services.registry)
    work = parse(arm).work
    started = start(arm, setting)
    producer = producing(load, topic, broker, dirty=work == "dirty", encoding=encoding_of(work, services.registry))
    with ending(started.process), producer as generator, Watch(started.places) as watch:
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
        syncs = syncs_per_second(started.process.pid, LOOK_AT_SYNCS_SECONDS)
        generator.send_signal(signal.SIGTERM)
        sent = json.loads(generator.communicate(timeout=60)[0])["sent"]
        expected = rows_of(work, values(load.record_bytes, dirty=work == "dirty"), sent)
        time.sleep(started.settle_seconds)
        _await_rows(watch, expected.total())
        if started.process.poll() is not None:
            raise ArmEndedError(_told_end(started, setting.folder))
    seen = {name: watch.measure(name, from_ms, until_ms) for name in started.places}
    found = {name: rows_in([path for _, path in watch.files(name)], work) for name in started.places}
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
        lanes=lanes_between(started.control, from_ms, until_ms) if started.control else {},
        syncs_per_second=None if syncs is None else round(syncs, 1),
        checks={name: asdict(checked(rows, expected)) for name, rows in found.items()},
        at=time.strftime("%Y-%m-%d %H:%M"),
    )


def _has_rows(started: Started, watch: Watch, folder: Path) -> bool:
    if started.process.poll() is not None:
        raise ArmEndedError(_told_end(started, folder))
    return all(watch.commits(name) > 1 for name in started.places)


def _told_end(started: Started, folder: Path) -> str:
    return f"it ended with {started.process.returncode}: {(folder / 'app.log').read_text()[-3000:]}"


def _await_rows(watch: Watch, rows: int) -> None:
    """Wait until every table has so many rows, or for as long as is given; what lacks then is told by the check."""
    until = time.monotonic() + ALL_ROWS_SECONDS
    while time.monotonic() < until and any(watch.rows(name) < rows for name in watch.places):
        time.sleep(0.5)


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


def wanted(args: argparse.Namespace, runs: list[dict[str, Any]]) -> Iterator[tuple[str, Load, int]]:
    """Yield the runs that are asked for and were not made: arm, load and number of the repeat."""
    made = {(one["arm"], Load(**one["load"]), one["repeat"]) for one in runs if one["seconds"] >= args.seconds}
    for repeat in range(args.repeats):
        for load, arms in MATRIX.items():
            for arm in args.arms or arms:
                is_asked_for = not args.load or load in args.load
                if (arm, load, repeat) not in made and is_asked_for and (not args.rate or load.rate in args.rate):
                    yield arm, load, repeat


def load_named(text: str) -> Load:
    """Return the load of a name such as ``2000-2-180``, by which the charts go, too.

    Raises:
        argparse.ArgumentTypeError: The benchmark has no such load.
    """
    for load in MATRIX:
        if text == f"{load.rate}-{load.partitions}-{load.record_bytes}":
            return load
    names = ", ".join(f"{load.rate}-{load.partitions}-{load.record_bytes}" for load in MATRIX)
    raise argparse.ArgumentTypeError(f"no load '{text}'; the loads are {names}")


def main() -> None:
    """Make the runs that are not there yet, then the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", nargs="*", help="only these")
    parser.add_argument("--rate", nargs="*", type=int, help="only loads of these rates")
    parser.add_argument("--load", nargs="*", type=load_named, help="only these loads: RATE-PARTITIONS-BYTES")
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--anew", action="store_true", help="forget the runs that were made")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where runs are kept and pages written: another folder to try")
    args = parser.parse_args()
    for arm in args.arms or ():
        parse(arm)
    runs = args.docs / "benchmarks" / COMPARISON.name
    runs.parent.mkdir(parents=True, exist_ok=True)
    if args.anew:
        runs.unlink(missing_ok=True)
    ended = []
    try:
        todo = list(wanted(args, kept(runs)))
        works = [parse(arm).work for arm, _, _ in todo]
        with own_broker() as (base, broker), own_registry(base.home / "registry", works) as registry:
            for arm, load, repeat in todo:
                print(f"bench: {arm}, {load}, repeat {repeat + 1}", flush=True)
                try:
                    run = measure(arm, load, repeat, args, Services(base, broker, registry))
                except ArmEndedError as error:
                    print(f"bench: {arm}: {error}", flush=True)
                    ended.append(f"{arm} at {load.rate}/s")
                    continue
                print(json.dumps(asdict(run)), flush=True)
                keep(runs, asdict(run), replaced_by(run))
    finally:
        write_pages(args.docs)
    if ended:
        raise SystemExit(f"these ended by themselves, and have no run: {', '.join(ended)}")


if __name__ == "__main__":
    main()
