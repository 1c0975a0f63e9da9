"""The arms of the maintenance benchmark: the same commits to a table of each format, with and without maintenance."""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psutil
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.expressions import AlwaysTrue
from running import cpu_seconds_of_children, family_of

from lakebound.landing.spark_command import spark_environment
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.operations.maintenance.reading import read_table_facts
from lakebound.operations.maintenance.submission import maintenance_command, maintenance_orders
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import KAFKA_TYPE, LedgerView, Table, open_table

TOPIC, TOPIC_ID = "bench", "bench-topic-id"
LOOKS_EVERY = 250
SCHEMA = pa.schema([pa.field("device", pa.string()), pa.field("value", pa.float64()), pa.field("_kafka", KAFKA_TYPE)])


@dataclass
class Stream:
    """One table and what its commits cost."""

    table: Table
    view: LedgerView
    milliseconds: list[float] = field(default_factory=list)
    files: list[tuple[int, int]] = field(default_factory=list)
    conflicts: int = 0

    def commit(self, number: int, rows: int, places: Places) -> None:
        """Land batch ``number``."""
        start = number * rows
        files = write_data_files(batch(start, rows), self.table.layout(), f"batch-{number}")
        began = time.perf_counter()
        done = commit_entry(
            self.table,
            self.view,
            files,
            Entry(kind="land", pipeline="bench", epoch=1, commit=new_commit_id(), batch=number, range=offsets(start, rows),
                  read=rows, landed=rows, rows=rows, lane="driver"),
            own_epoch=1,
            check_lease=lambda: None,
            attempts=20,
            on_commit_wait=lambda seconds: None,
        )  # fmt: skip
        self.milliseconds.append((time.perf_counter() - began) * 1000)
        self.view, self.conflicts = done.view, self.conflicts + done.attempts - 1
        if number % LOOKS_EVERY == LOOKS_EVERY - 1:
            facts = read_table_facts(self.table.spec, places, round(time.time() * 1000))
            self.files.append((number + 1, facts.files if facts else 0))


@dataclass
class Arm:
    """What one arm measured."""

    name: str
    streams: dict[str, Stream]
    runs: list[dict[str, object]]
    peak_rss_megabytes: int


def pipeline(keep_all_seconds: float) -> PipelineSpec:
    """Return the pipeline whose tables are written here; its broker is never asked."""
    return PipelineSpec.model_validate(
        {
            "pipeline": "bench",
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "500ms",
            "tables": [{"format": "delta", "name": "bench.events"}, {"format": "iceberg", "name": "bench.events"}],
            "maintenance": {
                "cooldown_seconds": 0,
                "history": {"keep_delta_seconds": keep_all_seconds, "keep_all_seconds": keep_all_seconds},
            },
        }
    )


def batch(start: int, rows: int) -> pa.Table:
    """Return the rows of one batch."""
    numbers = range(start, start + rows)
    kafka = [
        {
            "topic": TOPIC,
            "topic_id": TOPIC_ID,
            "partition": 0,
            "offset": n,
            "timestamp": 1_700_000_000_000_000 + n,
            "ordinal": 0,
        }
        for n in numbers
    ]
    values = {"device": [f"device-{n % 97}" for n in numbers], "value": [float(n % 1009) for n in numbers], "_kafka": kafka}
    return pa.Table.from_pydict(values, schema=SCHEMA)


def offsets(start: int, rows: int) -> Offsets:
    """Return what a batch lands."""
    return {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((start, start + rows),)})}


def open_streams(spec: PipelineSpec, places: Places) -> dict[str, Stream]:
    """Make the tables."""
    found = {}
    for table_spec in spec.tables:
        table = open_table(table_spec, places)
        table.create(SCHEMA, Entry(kind="genesis", pipeline=spec.pipeline, epoch=0, commit=new_commit_id()))
        found[table_spec.id] = Stream(table, table.read_ledger())
    return found


def run_arm(name: str, base: Settings, arguments: argparse.Namespace) -> tuple[Arm, Settings, PipelineSpec]:
    """Commit at a steady pace, with or without maintenance."""
    home = base.home / name
    settings = replace(base, home=home, warehouse=home / "warehouse")
    spec, places = pipeline(arguments.keep_all_seconds), places_of(settings, "default")
    streams, runs = open_streams(spec, places), list[dict[str, object]]()
    with _maintained(name == "maintained", spec, settings, runs) as rss:
        began = time.monotonic()
        for number in range(arguments.commits):
            time.sleep(max(0.0, began + number / arguments.per_second - time.monotonic()))
            for stream in streams.values():
                stream.commit(number, arguments.rows, places)
                if number % 50 == 49:
                    stream.table.keep_cheap()
            if number % 500 == 499:
                print(f"{name}: {number + 1} commits, {len(runs)} maintenance runs", flush=True)
    return Arm(name, streams, runs, max(rss, default=0)), settings, spec


@contextmanager
def _maintained(on: bool, spec: PipelineSpec, settings: Settings, runs: list[dict[str, object]]) -> Iterator[list[int]]:
    """Run maintenance again and again beside the block; yields the memory that it took, in megabytes, look by look."""
    ended, rss = threading.Event(), list[int]()

    def again() -> None:
        while not ended.wait(5):
            runs.append(maintain(spec, settings, f"bench-{len(runs)}", rss))

    thread = threading.Thread(target=again)
    if on:
        thread.start()
    try:
        yield rss
    finally:
        ended.set()
        if on:
            thread.join()


def maintain(spec: PipelineSpec, settings: Settings, run_id: str, rss: list[int]) -> dict[str, Any]:
    """Run maintenance once, and return its report."""
    return run_batch(maintenance_command(maintenance_orders(spec, settings, run_id), settings), settings, run_id, rss)


def run_batch(command: list[str], settings: Settings, run_id: str, rss: list[int]) -> dict[str, Any]:
    """Run an application that works beside streams to its end; return its report, and what it cost as ``cpu_seconds``.

    Args:
        command: It prints its report as a line of JSON.
        settings: Its home holds the log.
        run_id: Names the log.
        rss: Gets the megabytes of JVM and Python, twice a second.
    """
    log = settings.home / f"{run_id}.log"
    before = cpu_seconds_of_children()
    with log.open("wb") as errors:
        process = subprocess.Popen(command, env=spark_environment(settings), stdout=subprocess.PIPE, stderr=errors)
        watcher = threading.Thread(target=_watch_memory, args=(process, rss))
        watcher.start()
        try:
            output = process.communicate()[0].decode()
        finally:
            process.kill()  # it has a session of its own: Ctrl-C does not reach it
            watcher.join()
    if process.returncode:
        raise SystemExit(f"{run_id} ended with {process.returncode}:\n{log.read_text()[-3000:]}\n{output[-1000:]}")
    report = next(line for line in reversed(output.splitlines()) if line.startswith("{"))
    return {**json.loads(report), "cpu_seconds": cpu_seconds_of_children() - before}


def _watch_memory(process: subprocess.Popen[bytes], rss: list[int]) -> None:
    while process.poll() is None:
        try:
            family = family_of(process.pid)
            rss.append(sum(one.memory_info().rss for one in family) // 1_000_000)
        except psutil.Error:
            continue
        time.sleep(0.5)


def read_seconds(spec: TableSpec, places: Places) -> tuple[float, float]:
    """Return the seconds of a full scan of two columns, and of one device's rows: each the best of three."""
    full = _best(lambda: read(spec, places, ["device", "value"], None))
    return full, _best(lambda: read(spec, places, ["value"], "device-7"))


def read(spec: TableSpec, places: Places, columns: list[str], device: str | None) -> pa.Table:
    """Read columns of all rows, or of one device's, as a new reader does."""
    if spec.format == "delta":
        filters = [("device", "=", device)] if device else None
        return DeltaTable(str(places.delta_path(spec))).to_pyarrow_table(columns=columns, filters=filters)
    catalog = open_catalog(places)
    table = catalog.load_table((spec.namespace, spec.short_name))
    row_filter = f"device = '{device}'" if device else AlwaysTrue()
    return table.scan(row_filter=row_filter, selected_fields=tuple(columns)).to_arrow()


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
