"""How long it takes to read the health of a table of 10,000 live files, in a fresh process each time. No JVM.

Each format is read twice: with a hundred files in each commit, and with one file in each commit, as a stream makes them.
Writes ``docs/benchmarks/health.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa

from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places, local_places
from lakebound.tables.table import KAFKA_TYPE, DataFile, Table, open_table

DAYS = 10
ROWS_PER_FILE = 20
PARTITIONS = 4
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("device", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("kind", pa.string()),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)


@dataclass(frozen=True)
class Case:
    """One table: so many files, so many of them in each commit."""

    format: str
    files: int
    files_per_commit: int

    @property
    def spec(self) -> TableSpec:
        """What a pipeline would say of it."""
        return TableSpec.model_validate({"format": self.format, "name": "bench.events", "partition_by": ["day"]})


@dataclass(frozen=True)
class Reading:
    """One fresh process; ``read_seconds`` is from the call to the facts, ``process_seconds`` the whole process."""

    read_seconds: float
    read_cpu_seconds: float
    assess_seconds: float
    process_seconds: float
    peak_rss_megabytes: int
    files: int
    snapshots: int
    metadata_bytes: int
    layers: str


def places(folder: Path) -> Places:
    """Return places in a folder."""
    return local_places(folder, folder / "lake")


# --- making the tables -------------------------------------------------------------------------------------------


def make(case: Case, at: Places) -> None:
    """Make the table by real commits; but ten thousand snapshots, each with a manifest, are written as metadata at once."""
    at_once = case.format == "iceberg" and case.files_per_commit == 1
    table = open_table(case.spec, at)
    table.create(SCHEMA, Entry(kind="genesis", pipeline="bench", epoch=1, commit=new_commit_id()))
    table.read_ledger()
    first = date(2026, 11, 1)
    originals = [write_data_files(rows(first + timedelta(days=day)), table.layout(), "day")[0] for day in range(DAYS)]
    files = [linked(originals[number * DAYS // case.files], table) for number in range(case.files)]
    step = 100 if at_once else case.files_per_commit
    for start in range(0, len(files), step):
        table.commit(files[start : start + step], entry(start))
        table.keep_cheap()
    if at_once:
        spread(case.spec, at)


def rows(day: date) -> pa.Table:
    """Return the rows of a file."""
    at = datetime.now(UTC)
    kafka = [
        {"topic": "events", "topic_id": "id", "partition": row % PARTITIONS, "offset": row, "timestamp": at, "ordinal": 0}
        for row in range(ROWS_PER_FILE)
    ]
    many = {"day": day, "device": "device", "value": 1.0, "kind": "kind"}
    return pa.table({**{name: [value] * ROWS_PER_FILE for name, value in many.items()}, "_kafka": kafka}, schema=SCHEMA)


def linked(original: DataFile, table: Table) -> DataFile:
    """Return another file of the same content."""
    path = table.layout().folder / f"{uuid.uuid4().hex}.parquet"
    os.link(original.path.path, path.path)
    return DataFile(path, original.size_bytes, original.metadata, original.facts, original.partition)


def entry(start: int) -> Entry:
    """Return an entry as a stream of four partitions commits it."""
    offsets: Offsets = {"events": TopicOffsets(topic_id="id", partitions=dict.fromkeys(range(PARTITIONS), ((0, start + 1),)))}
    counts = dict.fromkeys(("read", "landed", "rows"), ROWS_PER_FILE)
    return Entry.model_validate(
        {"kind": "land", "pipeline": "bench", "epoch": 1, "commit": new_commit_id(), "coverage": offsets, "range": offsets}
        | {"lane": "driver", **counts}
    )


def spread(spec: TableSpec, at: Places) -> None:
    """Rewrite an Iceberg table's metadata as if each file had come with a snapshot and a manifest of its own."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest, write_manifest_list

    from lakebound.tables.iceberg.open import open_catalog

    table = open_catalog(at).load_table((spec.namespace, spec.short_name))
    current = table.current_snapshot()
    assert current is not None
    folder = Path(urlparse(table.location()).path) / "metadata"
    entries = [entry for manifest in current.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)]
    manifests, snapshots = [], []
    known = json.loads(current.model_dump_json())
    for number, found in enumerate(entries, 1):
        output = table.io.new_output(f"file://{folder}/{uuid.uuid4()}.avro")
        with write_manifest(2, table.spec(), table.schema(), output, number, "deflate") as writer:
            added = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=found.data_file)
            writer.add_entry(added)
        manifest = writer.to_manifest_file()
        manifest.sequence_number = manifest.min_sequence_number = number
        manifests.append(manifest)
        snapshots.append({**known, "snapshot-id": number, "timestamp-ms": current.timestamp_ms + number})
    listed = f"file://{folder}/{uuid.uuid4()}.avro"
    with write_manifest_list(2, table.io.new_output(listed), len(entries), None, len(entries), "deflate") as lister:
        lister.add_manifests(manifests)
    snapshots[-1]["manifest-list"] = listed
    body = json.loads(Path(urlparse(table.metadata_location).path).read_text())
    body |= {"snapshots": snapshots, "current-snapshot-id": len(entries), "last-sequence-number": len(entries)}
    body["refs"] = {"main": {"snapshot-id": len(entries), "type": "branch"}}
    location = folder / f"99999-{uuid.uuid4()}.metadata.json"
    location.write_text(json.dumps(body))
    with sqlite3.connect(at.iceberg_catalog_uri.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{location}",))


# --- reading them ------------------------------------------------------------------------------------------------


def read_here(case: Case, folder: Path) -> None:
    """Read in this process, and print the figures as JSON."""
    from lakebound.operations.maintenance.reading import read_table_facts
    from lakebound.operations.maintenance.score import assess
    from lakebound.spec.maintenance import MaintenanceSpec

    # The library of the format is loaded first: `lakebound health` pays it once, however many tables it reads.
    read_table_facts(TableSpec.model_validate({"format": case.format, "name": "bench.nothing"}), places(folder), 0)
    started, started_cpu = time.perf_counter(), time.process_time()
    facts = read_table_facts(case.spec, places(folder), int(time.time() * 1000))
    read, read_cpu = time.perf_counter(), time.process_time()
    assert facts is not None
    health = assess(facts, MaintenanceSpec())
    assessed = time.perf_counter()
    found = health.metadata
    body = {
        "read_seconds": read - started,
        "read_cpu_seconds": read_cpu - started_cpu,
        "assess_seconds": assessed - read,
        "process_seconds": 0.0,
        "peak_rss_megabytes": peak_rss_megabytes(),
        "files": health.files,
        "snapshots": found.snapshots,
        "metadata_bytes": found.metadata_bytes,
        "layers": f"{found.log_tail_commits} commits in the tail" if case.format == "delta" else f"{found.manifests} manifests",
    }
    print(json.dumps(body))


def peak_rss_megabytes() -> int:
    """Return this process's peak; getrusage would count the parent's before the exec."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) // 1024 if found else 0


def read_fresh(case: Case, folder: Path) -> Reading:
    """Read in a fresh process."""
    words = ["--read", case.format, "--files", str(case.files), "--folder", str(folder)]
    started = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True, timeout=300)
    return Reading(**{**json.loads(done.stdout), "process_seconds": time.perf_counter() - started})


def report(found: dict[Case, list[Reading]]) -> str:
    """Return the page."""
    any_case, readings = next(iter(found.items()))
    lines = [
        "# Table health",
        "",
        f"Made by `make bench-health` on {date.today()}; {os.cpu_count()} cores, {platform.machine()}, local disk.",
        f"Tables of {any_case.files:,} live files in {DAYS} partitions; the files are tiny, as they are not read. Medians of",
        f"{len(readings)} fresh processes; *read* is from the call to all facts in memory, *process* the whole Python",
        "process with its imports. No JVM.",
        "",
        "| table | files a commit | versions | metadata | read s | slowest | CPU s | score ms | process s | RSS MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, readings in found.items():
        one = readings[0]
        lines.append(
            f"| {case.format} | {case.files_per_commit} | {one.snapshots:,} | {one.metadata_bytes / 1e6:.1f} MB, {one.layers} "
            f"| {median(readings, 'read_seconds'):.2f} | {max(r.read_seconds for r in readings):.2f} "
            f"| {median(readings, 'read_cpu_seconds'):.2f} | {1000 * median(readings, 'assess_seconds'):.0f} "
            f"| {median(readings, 'process_seconds'):.2f} | {median(readings, 'peak_rss_megabytes'):.0f} |"
        )
    lines += [
        "",
        "Delta with one file a commit was made by as many commits. Iceberg with one file a commit is the worst that a native",
        "Spark stream leaves, a manifest and a snapshot for each file, and was written as metadata at once; Lakebound's own",
        "commits merge manifests as they go.",
        "",
    ]
    return "\n".join(lines)


def median(readings: Sequence[Reading], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(reading, name) for reading in readings)


def main() -> None:
    """Make the tables, read each several times, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/health.md"))
    parser.add_argument("--read", choices=("delta", "iceberg"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_here(Case(options.read, options.files, 0), options.folder)
        return
    cases = [Case(name, options.files, each) for each in (100, 1) for name in ("delta", "iceberg")]
    with tempfile.TemporaryDirectory(prefix="lakebound-bench-") as folder:
        for number, case in enumerate(cases):
            print(f"bench: making {case}", flush=True)
            make(case, places(Path(folder) / str(number)))
        found: dict[Case, list[Reading]] = {case: [] for case in cases}
        for _ in range(options.rounds):
            for number, case in enumerate(cases):
                found[case].append(read_fresh(case, Path(folder) / str(number)))
                print(json.dumps({**asdict(case), **asdict(found[case][-1])}), flush=True)
    text = report(found)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
