"""Maintenance of a Delta table in an object store; deltalake alone says what the table holds afterwards."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.s3.clients import delta_options
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import Lander, lander, make_table
from tests.support.tables.stored import places_in

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.orphan_files import OrphansInStoreError, remove_orphans
from lakebound.operations.maintenance.past_reading import read_past
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, Compact, RemoveOrphans, Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.health import read_facts
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders", partition_by=("city",))
FAR_MS = 10**15


@pytest.fixture
def at(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> Places:
    """Places in a bucket."""
    return places_in(s3_server, s3_bucket, tmp_path)


@pytest.fixture
def app(at: Places) -> Lander:
    """An application that has landed ten batches of three partitions."""
    make_table(SPEC, at)
    opened = lander(SPEC, at)
    for start in range(0, 30, 3):
        opened.land(start, start + 3)
    return opened


def read(server: S3Server, bucket: str, version: int | None = None) -> DeltaTable:
    """Return the table as deltalake opens it."""
    options = delta_options(server)
    return DeltaTable(f"s3://{bucket}/lake/delta/shop/orders", version=version, storage_options=options)


def ids(table: DeltaTable) -> list[int]:
    """Return the ids in a table."""
    return sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist())


def past(at: Places) -> TablePast:
    """Return the versions as a plan is told them."""
    found = read_past(SPEC, at, ())
    assert found is not None
    return found


def test_all_steps_leave_every_row_once_and_the_stream_goes_on(
    app: Lander, at: Places, s3_server: S3Server, s3_bucket: str
) -> None:
    engine = DeltaEngine(at)
    compact = Compact(table=SPEC.id, reason="a test", below_bytes=1 << 30, target_file_bytes=1 << 27)
    done = engine.compact(SPEC, compact)
    assert (done.files_before, done.files_after, done.commits) == (30, 3, 1)
    assert ids(read(s3_server, s3_bucket)) == list(range(30))

    app.view = app.table.read_ledger()
    app.land(30, 33)
    assert "log checkpoint at version" in engine.checkpoint_log(SPEC, CheckpointLog(table=SPEC.id, reason="a test")).note
    newest = read(s3_server, s3_bucket).version()
    cleaned = engine.clean_log(SPEC, CleanLog(table=SPEC.id, reason="a test", before_version=newest))
    assert cleaned.removed and past(at).versions[0].version == newest
    assert ids(read(s3_server, s3_bucket)) == list(range(33))

    facts = read_facts(SPEC, at, 0)
    assert facts is not None and (facts.rows, facts.files, facts.metadata.tombstones) == (33, 6, 30)
    step = Vacuum(table=SPEC.id, reason="a test", mode="lite", retention_seconds=3600)
    assert engine.vacuum(SPEC, step).is_nothing
    assert open_table(SPEC, at).read_ledger().entry is not None
    lander(SPEC, at).land(33, 36)
    assert ids(read(s3_server, s3_bucket)) == list(range(36))


def test_orphans_are_told_by_the_age_that_the_store_knows_and_never_moved(app: Lander, at: Places) -> None:
    (lost, *_) = app.write(500, 501)
    lost.stored.result()  # type: ignore[union-attr]
    now_ms = int(time.time() * 1000)

    def look(older_than_ms: int, mode: str = "dry_run") -> tuple[str, ...]:
        body = {"table": SPEC.id, "reason": "a test", "mode": mode}
        step = RemoveOrphans.model_validate({**body, "older_than_ms": older_than_ms, "delete_quarantined_before_ms": 0})
        return remove_orphans(SPEC, step, at, "run", FAR_MS).removed

    assert look(now_ms - 3_600_000) == ()
    assert look(now_ms + 3_600_000) == (lost.path.name,)
    with pytest.raises(OrphansInStoreError, match="dry_run"):
        look(now_ms, "quarantine")
    assert lost.path.exists()


def test_a_vacuum_deletes_what_compaction_replaced_long_ago(
    app: Lander, at: Places, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, now = DeltaEngine(at), time.time()
    (lost, *_) = app.write(500, 501)
    lost.stored.result()  # type: ignore[union-attr]
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: now - 2 * 86_400)
        engine.compact(SPEC, Compact(table=SPEC.id, reason="a test", below_bytes=1 << 30, target_file_bytes=1 << 27))
    done = engine.vacuum(SPEC, Vacuum(table=SPEC.id, reason="a test", mode="lite", retention_seconds=86_400))
    assert (done.files_before, done.commits) == (30, 2) and done.bytes_removed > 0
    kept = {file.name for file, _ in at.folder(SPEC).list() if file.name.endswith(".parquet")}
    live = {address.rpartition("/")[2] for address in read(s3_server, s3_bucket).file_uris()}
    assert len(live) == 3 and kept == live | {lost.path.name}, "a file that no commit names is not a LITE vacuum's"
    assert ids(read(s3_server, s3_bucket)) == list(range(30))
    app.view = app.table.read_ledger()
    app.land(30, 33)
    assert ids(read(s3_server, s3_bucket)) == list(range(33))
