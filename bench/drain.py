"""How fast a backlog is landed, by Lakebound and by its peers, one after the other from the same topic, or from
one with the same records in another format.

A row counts from the moment at which an outside reader sees its commit. The rate is that between the first commit and the
last, because all start from a cold JVM; how long that took is told beside it. Runs are kept in
``docs/benchmarks/drain.jsonl`` and not made again (``--anew`` starts again from the beginning). The page is docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from arm_names import parse
from arms import Setting, start
from backlog import payloads
from comparison_page import write_pages
from kept_runs import DOCS, DRAIN, keep, kept
from running import cpu_seconds_of, ending, own_broker
from value_formats import Encoding, encoding_of, own_registry
from visible import Place, Watch
from work import rows_of

from lakebound.control.processes import wait_until
from lakebound.local.broker import Broker
from lakebound.local.stack import create_topics
from lakebound.settings import Settings

ARMS = ("lakebound:iceberg:0ms", "flink:1000ms", "lakebound:both:0ms", "connect:1000ms", "flink:10000ms")
ARMS += ("lakebound:iceberg:0ms:avro", "lakebound:iceberg:0ms:protobuf", "flink:10000ms:avro")
TOPIC, PARTITIONS = "backlog", 2
GIVEN_UP_SECONDS = 900


class Landed:
    """What is visible of one table: rows and bytes per file, each looked at once."""

    def __init__(self, place: Place, seen: dict[int, float]) -> None:
        self._place, self._seen = place, seen
        self.files: dict[Path, tuple[float, int, int]] = {}

    def rows(self) -> int:
        """Look again, and return how many rows there are."""
        for at_ms, path in self._place.files(dict(self._seen)):
            self.files[path] = (at_ms, pq.read_metadata(path).num_rows, path.stat().st_size)
        return sum(rows for _, rows, _ in self.files.values())

    def measured(self, began_ms: float) -> dict[str, Any]:
        """Return the rate between the first commit and the last, and the files."""
        moments = sorted({at_ms for at_ms, _, _ in self.files.values()})
        first, last = moments[0], moments[-1]
        if first == last:
            raise SystemExit("all records came in one commit, and the rate is between commits: ask for more --records")
        after_first = sum(rows for at_ms, rows, _ in self.files.values() if at_ms > first)
        return {
            "rows": sum(rows for _, rows, _ in self.files.values()),
            "rows_per_second": after_first / (last - first) * 1000,
            "first_commit_seconds": (first - began_ms) / 1000,
            "all_seconds": (last - began_ms) / 1000,
            "commits": len(moments),
            "files_bytes": sorted(size for _, _, size in self.files.values()),
        }


def drain(arm: str, records: int, base: Settings, broker: Broker, repeat: int, registry: str | None) -> dict[str, Any]:
    """Land the whole backlog by one arm."""
    rows = rows_of(parse(arm).work, payloads(), records).total()
    home = base.home / f"drain-{arm.replace(':', '-')}-{repeat}"
    topic = topic_of(encoding_of(parse(arm).work, registry))
    setting = Setting(broker.bootstrap_servers, topic, replace(base, home=home, warehouse=home / "warehouse"), registry)
    began_ms = time.time() * 1000
    started = start(arm, setting)
    with ending(started.process), Watch(started.places) as watch:
        tables = {name: Landed(place, watch.seen(name)) for name, place in started.places.items()}

        def is_done() -> bool:
            if started.process.poll() is not None:
                log = (setting.folder / "app.log").read_text()[-3000:]
                raise SystemExit(f"{arm} ended with {started.process.returncode}: {log}")
            time.sleep(1)
            return all(table.rows() >= rows for table in tables.values())

        wait_until(is_done, GIVEN_UP_SECONDS, f"{rows:,} rows by {arm}")
        cpu_seconds = cpu_seconds_of(started.process.pid)
    return {
        "arm": arm,
        "repeat": repeat,
        "records": records,
        "tables": {name: table.measured(began_ms) for name, table in tables.items()},
        "cpu_seconds": round(cpu_seconds, 1),
        "at": time.strftime("%Y-%m-%d %H:%M"),
    }


def topic_of(encoding: Encoding | None) -> str:
    """Return the topic with the backlog in a format."""
    return TOPIC if encoding is None else f"{TOPIC}-{encoding.format}"


def fill(records: int, broker: Broker, encoding: Encoding | None) -> None:
    """Produce the backlog in a format."""
    topic = topic_of(encoding)
    print(f"bench: filling the topic {topic} with {records:,} records", flush=True)
    create_topics(broker.bootstrap_servers, {topic: PARTITIONS})
    options = {
        "--bootstrap-servers": broker.bootstrap_servers,
        "--topic": topic,
        "--records": records,
        "--partitions": PARTITIONS,
    }
    words = [str(word) for pair in options.items() for word in pair] + ([] if encoding is None else encoding.words)
    subprocess.run([sys.executable, str(Path(__file__).with_name("backlog.py")), *words], check=True)


def main() -> None:
    """Fill the topic, drain it by every arm whose run is not there yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", nargs="*", default=ARMS)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--anew", action="store_true", help="forget the runs that were made")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where runs are kept and pages written: another folder to try")
    args = parser.parse_args()
    if any(parse(arm).work == "dirty" for arm in args.arms):
        raise SystemExit("no record of the backlog is dirty: the arms with 'dirty' are of bench/compare.py")
    runs = args.docs / "benchmarks" / DRAIN.name
    runs.parent.mkdir(parents=True, exist_ok=True)
    if args.anew:
        runs.unlink(missing_ok=True)
    made = {(one["arm"], one["repeat"]) for one in kept(runs) if one["records"] >= args.records}
    wanted = [(arm, repeat) for repeat in range(args.repeats) for arm in args.arms if (arm, repeat) not in made]
    if wanted:
        works = [parse(arm).work for arm, _ in wanted]
        with own_broker() as (base, broker), own_registry(base.home / "registry", works) as registry:
            for encoding in {encoding_of(work, registry) for work in works}:
                fill(args.records, broker, encoding)
            for arm, repeat in wanted:
                print(f"bench: {arm} drains it, repeat {repeat + 1}", flush=True)
                run = drain(arm, args.records, base, broker, repeat, registry)
                keep(runs, run, lambda one, new=run: one["records"] < new["records"] and one["arm"] == new["arm"])
                rates = {name: f"{table['rows_per_second']:,.0f} rows/s" for name, table in run["tables"].items()}
                print(f"bench: {arm}: {rates}, {run['cpu_seconds']} CPU s", flush=True)
    write_pages(args.docs)


if __name__ == "__main__":
    main()
