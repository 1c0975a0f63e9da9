"""Many small commits and then one maintenance run: as few files as there can be, the same rows, and the past is still there.

In the long form alone, with 2,000 commits to each table: in the short one ``tests/spark/test_maintenance_actions.py`` has
fewer, of which one file is left, and ``test_maintenance_application.py`` a whole run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.support.streams.long_form import only_in_long_form
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import SCHEMA, genesis, landed_offsets, lander
from tests.support.tables.maintained import content, live_files_of, maintained_pipeline, maintained_settings

from lakebound.landing.spark_command import spark_environment
from lakebound.operations.maintenance.submission import maintenance_command, maintenance_orders
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800), only_in_long_form]

COMMITS = 2000
CITIES = 3
IDEAL_FILES = {"delta:shop.orders": CITIES, "iceberg:shop.orders": 1}
"""One per partition: all of it is far below the size of one file."""

RUN_SECONDS = 600.0


@dataclass(frozen=True)
class Past:
    """A version in the middle, and the rows that it had."""

    version: int
    rows: int


def test_one_run_after_many_small_commits(tmp_path: Path) -> None:
    settings = maintained_settings(tmp_path)
    spec = maintained_pipeline({"compaction": {"hot_seconds": 0}}, delta_partition_by=["city"])
    at = places_of(settings, "default")
    with ThreadPoolExecutor(2) as pool:
        pasts = dict(zip(IDEAL_FILES, pool.map(lambda table: commit_many(table, at), spec.tables), strict=True))
    before = {table.id: content(table, at) for table in spec.tables}
    files = {table.id: live_files_of(table, at) for table in spec.tables}
    assert min(files.values()) >= COMMITS

    seconds = maintain(spec, settings)

    after = {table.id: live_files_of(table, at) for table in spec.tables}
    size = {table.id: bytes_of(table, at) for table in spec.tables}
    print(f"{COMMITS} commits: files {files} -> {after}, {size} bytes, {seconds:.1f} s", flush=True)
    assert all(after[name] <= 1.2 * ideal for name, ideal in IDEAL_FILES.items()), after
    assert {table.id: content(table, at) for table in spec.tables} == before
    for table in spec.tables:
        assert landed_offsets(open_table(table, at)) == list(range(COMMITS))
        assert open_table(table, at).read_ledger().coverage["orders"].partitions == {0: ((0, COMMITS),)}
        assert rows_as_of(table, at, pasts[table.id].version) == pasts[table.id].rows


def commit_many(spec: TableSpec, at: Places) -> Past:
    """Land one record per commit; return a version of the middle."""
    open_table(spec, at).create(SCHEMA, genesis())
    app = lander(spec, at)
    for offset in range(COMMITS):
        app.land(offset, offset + 1)
        if offset == COMMITS // 2:
            past = Past(version_of(spec, at), offset + 1)
    return past


def version_of(spec: TableSpec, at: Places) -> int:
    """Return the Delta version or the Iceberg snapshot id."""
    if spec.format == "delta":
        return DeltaTable(str(at.delta_path(spec))).version()
    snapshot = foreign_iceberg(spec, at).current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def rows_as_of(spec: TableSpec, at: Places, version: int) -> int:
    """Return how many rows a version has, read whole."""
    if spec.format == "delta":
        return DeltaTable(str(at.delta_path(spec)), version=version).to_pyarrow_table().num_rows
    return foreign_iceberg(spec, at).scan(snapshot_id=version).to_arrow().num_rows


def bytes_of(spec: TableSpec, at: Places) -> int:
    """Return the bytes of the current version's files."""
    if spec.format == "delta":
        sizes: Mapping[str, list[int]] = pa.table(DeltaTable(str(at.delta_path(spec))).get_add_actions()).to_pydict()
        return sum(sizes["size_bytes"])
    paths = foreign_iceberg(spec, at).inspect.files()["file_path"].to_pylist()
    return sum(Path(urlparse(path).path).stat().st_size for path in paths)


def maintain(spec: PipelineSpec, settings: Settings) -> float:
    """Run the maintenance application once; return the seconds that it took."""
    log = settings.home / "maintenance.log"
    started = time.monotonic()
    with log.open("w") as output:
        code = subprocess.run(
            maintenance_command(maintenance_orders(spec, settings, "once", is_waited_for=True), settings),
            env=spark_environment(settings),
            stdout=output,
            stderr=output,
            timeout=RUN_SECONDS,
            check=False,
        ).returncode
    assert code == 0, log.read_text()[-3000:]
    return time.monotonic() - started
