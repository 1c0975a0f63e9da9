"""Half an hour of one stream with maintenance running: do freshness and the cost of a commit stay what they are at first?

Freshness is seen from outside (``visible``); what a commit takes is what the application says of its last batch, twice a
second. Writes ``docs/benchmarks/steady-<freshness>.md``, and a line for the comparison's page.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import statistics
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from arms import setting_of, start_pipeline
from compare import Load
from curve import Curve, draw
from kept_runs import STEADY, Run, keep
from maintained_freshness import MAINTENANCE
from maintenance_arms import maintain
from running import cpu_seconds_of, ending, own_broker, pipeline, producing
from visible import Place, Watch, produced_at

from lakebound.control.folder import ControlFolder
from lakebound.control.processes import wait_until
from lakebound.control.progress import read_progress
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

SLICES = 10
COMMITS = 100
"""In the median of what a commit costs, before it and after it."""
AT_COMMITS = (100, 1_000, 10_000)


@dataclass
class Ages:
    """Of one table's records: when each was produced, and how old it was when a reader could see it, in milliseconds."""

    produced_ms: list[np.ndarray] = field(default_factory=list)
    waited_ms: list[np.ndarray] = field(default_factory=list)

    def add(self, place: Place, seen: dict[int, float]) -> None:
        """Look at the commits since the last look."""
        place.look()
        for at_ms, path in place.files(seen):
            produced = produced_at(path, place.timestamp)
            self.produced_ms.append(produced)
            self.waited_ms.append(at_ms - produced)

    def between(self, from_ms: float, until_ms: float) -> np.ndarray:
        """Return the ages of the records that were produced in a time."""
        produced, waited = np.concatenate(self.produced_ms), np.concatenate(self.waited_ms)
        return waited[(produced >= from_ms) & (produced < until_ms)]


class Gathering:
    """Gathers the records' ages all along, before maintenance removes their files.

    In a process of its own: to parse the metadata of thousands of snapshots takes half a second, in which this process would
    see no commit.
    """

    def __init__(self, places: dict[str, Place]) -> None:
        """Begin, before anybody has looked: a place that has looked has a connection, which cannot be given to a process."""
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (deepcopy(places),))

    def gather(self, watch: Watch) -> None:
        """Look at the commits since the last look."""
        self._pool.submit(_gather, {name: watch.seen(name).copy() for name in watch.places}).result()

    def ended(self) -> dict[str, Ages]:
        """Return the ages by table."""
        with self._pool as pool:
            return pool.submit(_gathered).result()


_gathering: dict[str, tuple[Place, Ages]] = {}
"""In the process of its own."""


def _begin(places: dict[str, Place]) -> None:
    os.nice(10)
    _gathering.update({name: (place, Ages()) for name, place in places.items()})


def _gather(seen: dict[str, dict[int, float]]) -> None:
    for name, (place, ages) in _gathering.items():
        ages.add(place, seen[name])


def _gathered() -> dict[str, Ages]:
    return {name: ages for name, (_, ages) in _gathering.items()}


@dataclass
class CommitCosts:
    """Milliseconds of a commit by the number of it, sampled from what the application says of itself; per table."""

    control: ControlFolder
    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample until the end."""
        while not self.ended.wait(0.5):
            progress = read_progress(self.control)
            if progress is None:
                continue
            for table, known in progress.tables.items():
                cost = progress.durations_ms.get(f"commit {table}")
                if cost is not None:
                    self.points.setdefault(table, []).append((known.commits, cost))

    def around(self, table: str, commit: int) -> float | None:
        """Return the median of the samples around a commit."""
        found = [cost for number, cost in self.points[table] if commit - COMMITS <= number <= commit + COMMITS]
        return statistics.median(found) if found else None


def main() -> None:
    """Run, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--freshness", default="0ms")
    parser.add_argument("--warm-up-seconds", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--maintenance-every-seconds", type=float, default=180)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    args.page = args.page or STEADY.parent / f"steady-{args.freshness}.md"
    with own_broker() as (base, broker):
        run, curves = measure(args, base, broker)
    args.page.write_text("\n".join([*page(run, args.page.stem), ""]))
    args.page.with_suffix(".svg").write_text(draw("Milliseconds of a commit", "commits", "ms, median of 50 samples", curves))
    if args.page.parent == STEADY.parent:
        keep(STEADY, run, lambda one: one["freshness"] == run["freshness"])
    print(args.page.read_text())


def measure(args: argparse.Namespace, base: Settings, broker: Broker) -> tuple[Run, list[Curve]]:
    """Run the stream and its maintenance, and return what was seen, and each table's cost of a commit."""
    load = Load(args.rate, 2, 180)
    create_topics(broker.bootstrap_servers, {"steady": load.partitions})
    setting = setting_of(base, broker.bootstrap_servers, "steady")
    spec = pipeline("steady", broker.bootstrap_servers, freshness=args.freshness, maintenance=MAINTENANCE)
    costs = CommitCosts(ControlFolder(setting.settings.home, spec.pipeline))
    started = start_pipeline(spec, setting.settings)
    process, places = started.process, started.places
    gathering = Gathering(places)
    runs: list[Run] = []
    with ending(process), producing(load, "steady", broker), Watch(places) as watch:
        wait_until(lambda: all(watch.commits(name) > 1 for name in places), 180, "the first rows")
        sampler = threading.Thread(target=costs.watch)
        sampler.start()
        time.sleep(args.warm_up_seconds)
        from_ms, cpu = time.time() * 1000, cpu_seconds_of(process.pid)
        until_ms = from_ms + args.seconds * 1000
        maintaining = threading.Thread(
            target=_maintain_until, args=(until_ms / 1000, args.maintenance_every_seconds, spec, setting.settings, runs)
        )
        maintaining.start()
        while time.time() * 1000 < until_ms:
            time.sleep(min(20.0, max(0.0, until_ms / 1000 - time.time())))
            gathering.gather(watch)
        cpu = cpu_seconds_of(process.pid) - cpu
        maintaining.join()
        time.sleep(5)
        gathering.gather(watch)
        costs.ended.set()
        sampler.join()
    ages = gathering.ended()
    compactions = [step for run in runs for step in run["steps"] if step["step"]["kind"] == "compact"]
    return {
        "freshness": args.freshness,
        "rate": args.rate,
        "warm_up_seconds": args.warm_up_seconds,
        "seconds": args.seconds,
        "tables": {name: summary(one, costs, name, from_ms, until_ms) for name, one in ages.items()},
        "cores": cpu / args.seconds,
        "maintenance_runs": len(runs),
        "compactions": len(compactions),
        "at": time.strftime("%Y-%m-%d"),
    }, [Curve(table, _smooth(points)) for table, points in costs.points.items()]


def _maintain_until(end: float, every_seconds: float, spec: PipelineSpec, settings: Settings, runs: list[Run]) -> None:
    rss: list[int] = []
    number = 0
    while time.time() < end:
        began = time.time()
        runs.append(maintain(spec, settings, f"maintenance-{number}", rss))
        number += 1
        time.sleep(max(0.0, min(end, began + every_seconds) - time.time()))


def summary(ages: Ages, costs: CommitCosts, name: str, from_ms: float, until_ms: float) -> Run:
    """Return what was seen of one table: freshness of the whole time and of each tenth, and what commits took."""
    whole = ages.between(from_ms, until_ms)
    slice_ms = (until_ms - from_ms) / SLICES
    parts = [ages.between(from_ms + n * slice_ms, from_ms + (n + 1) * slice_ms) for n in range(SLICES)]
    table = next(table for table in costs.points if table.startswith(name))
    found = {str(commit): costs.around(table, commit) for commit in AT_COMMITS}
    return {
        "p50_ms": float(np.percentile(whole, 50)),
        "p99_ms": float(np.percentile(whole, 99)),
        "max_ms": float(whole.max()),
        "p50_ms_by_tenth": [float(np.percentile(part, 50)) for part in parts if len(part)],
        "p99_ms_by_tenth": [float(np.percentile(part, 99)) for part in parts if len(part)],
        "commit_ms": {commit: cost for commit, cost in found.items() if cost is not None},
        "commits": costs.points[table][-1][0],
    }


def page(run: Run, picture: str) -> list[str]:
    """Return the lines of the page."""
    lines = [
        f"# {run['seconds'] / 60:g} minutes of one stream, `freshness: {run['freshness']}`",
        "",
        f"`make bench-steady` on {run['at']}, {platform.machine()}, {os.cpu_count()} cores: {run['rate']:,} records/s, 180 B,",
        f"into 2 partitions, one Delta and one Iceberg table, {run['seconds']:g} s after",
        f"{run['warm_up_seconds']:g} s warm-up; {run['maintenance_runs']} maintenance runs, {run['compactions']} compactions. "
        f"The stream took {run['cores']:.2f} cores. Freshness as `bench/visible.py` sees it.",
        "",
        f"![a commit's milliseconds]({picture}.svg)",
        "",
        "| table | p50 ms | p99 ms | p99 ÷ p50 (target ≤ 2.5) | max ms | p50 by tenth of the time | p99 by tenth of the time |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in run["tables"].items():
        tenths = " | ".join(", ".join(f"{ms:.0f}" for ms in one[f"{which}_ms_by_tenth"]) for which in ("p50", "p99"))
        ratio = one["p99_ms"] / one["p50_ms"]
        lines.append(f"| {name} | {one['p50_ms']:.0f} | {one['p99_ms']:.0f} | {ratio:.2f} | {one['max_ms']:.0f} | {tenths} |")
    lines += [
        "",
        f"What a commit takes, as the application says, median of the samples within {COMMITS} commits of it:",
        "",
        "| table | 100th ms | 1,000th | 10,000th | commits in all |",
        "|---|---|---|---|---|",
    ]
    for name, one in run["tables"].items():
        said = " | ".join(f"{one['commit_ms'][str(at)]:.1f}" if str(at) in one["commit_ms"] else "" for at in AT_COMMITS)
        lines.append(f"| {name} | {said} | {one['commits']:,} |")
    return lines


def _smooth(points: list[tuple[int, float]], width: int = 50) -> list[tuple[float, float]]:
    groups = [points[start : start + width] for start in range(0, len(points) - width + 1, width)]
    return [(group[-1][0], statistics.median(cost for _, cost in group)) for group in groups]


if __name__ == "__main__":
    main()
