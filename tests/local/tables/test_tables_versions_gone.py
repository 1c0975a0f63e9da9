"""How long a version of a table is kept, and what is said of one that is gone. Real tables of both formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError
from pyiceberg.table.update import RemoveSnapshotsUpdate
from tests.support.s3.faults import Fault
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import (
    Lander,
    landed_offsets,
)
from tests.support.tables.restoring import delta_fixture, iceberg_fixture, put_back, reset, three_batches, version_of  # noqa: F401
from tests.support.tables.stored import places_in

from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import VersionGoneError, open_table


@pytest.fixture
def app(spec: TableSpec, at: Places) -> Lander:
    return three_batches(spec, at)


def test_missing_data_files_are_named(app: Lander, spec: TableSpec, at: Places) -> None:
    gone = next(file for file, _ in app.table.layout().folder.list() if file.name.startswith("batch-10-"))
    gone.delete()
    table = open_table(spec, at)
    (found,) = table.look_back(version_of(table, 20).version).missing_files
    assert gone.name in found
    assert table.look_back(version_of(table, 10).version).missing_files == ()


def test_what_vacuum_took_is_missed(delta: TableSpec, at: Places) -> None:
    three_batches(delta, at)
    put_back(delta, at, 10)
    left = next(v for v in list(open_table(delta, at).history().versions())[1:])
    open_at(at.folder(delta)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    table = open_table(delta, at)
    assert len(table.look_back(left.version).missing_files) == 2
    with pytest.raises(VersionGoneError, match="2 of its files are gone"):
        table.restore(left.version, reset(30, epoch=3))
    assert landed_offsets(table) == list(range(10))


def test_an_expired_snapshot_is_gone(iceberg: TableSpec, at: Places) -> None:
    app = three_batches(iceberg, at)
    old = version_of(app.table, 10).version
    catalog = open_catalog(at)
    catalog.commit_table(catalog.load_table(iceberg.name), (), (RemoveSnapshotsUpdate(snapshot_ids=[int(old)]),))
    table = open_table(iceberg, at)
    assert old not in [version.version for version in table.history().versions()]
    with pytest.raises(VersionGoneError, match="expired"):
        table.look_back(old)
    with pytest.raises(VersionGoneError, match="expired"):
        table.restore(old, reset(10))


def test_a_delta_version_whose_log_was_cleaned_up_is_gone(delta: TableSpec, at: Places) -> None:
    app = three_batches(delta, at)
    handle = open_at(at.folder(delta))
    handle.create_checkpoint()
    app.land(30, 40)
    for version in range(3):
        (at.delta_path(delta) / "_delta_log" / f"{version:020d}.json").unlink()
    table = open_table(delta, at)
    assert [version.version for version in table.history().versions()] == ["4", "3"]
    with pytest.raises(VersionGoneError, match="its log cannot be read"):
        table.look_back("1")
    table.restore("3", reset(30))
    assert landed_offsets(table) == list(range(30))


def test_a_store_that_refuses_takes_no_delta_version_away(
    delta: TableSpec, s3_server: S3Server, s3_bucket: str, tmp_path: Path
) -> None:
    app = three_batches(delta, places_in(s3_server, s3_bucket, tmp_path))
    old = version_of(app.table, 10).version
    s3_server.faults.add(Fault("status", status=403, code="AccessDenied", methods=("GET",), key="*_delta_log/*", count=None))
    with pytest.raises(OSError, match="403"):
        app.table.look_back(old)
    s3_server.faults.clear()
    assert app.table.look_back(old).rows == 10


def test_a_full_disk_takes_no_delta_version_away(delta: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    app = three_batches(delta, at)
    old = version_of(app.table, 10).version

    def full(*_: object, **__: object) -> str:
        raise DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr("lakebound.tables.delta.table.draft_commit", full)
        with pytest.raises(DeltaError, match="os error 28"):
            app.table.restore(old, reset(10))
    app.table.restore(old, reset(10))
    assert landed_offsets(app.table) == list(range(10))


def test_how_long_a_version_is_kept_follows_the_tables_settings(at: Places) -> None:
    day_ms = 86_400_000
    quick = {
        "delta": {"delta.deletedFileRetentionDuration": "interval 2 days", "delta.logRetentionDuration": "interval 1 week"},
        "iceberg": {"history.expire.max-snapshot-age-ms": str(3 * day_ms)},
    }
    expected = {"delta": (7, 2), "iceberg": (5, 3)}
    for kind, properties in quick.items():
        for given, days in zip(({}, properties), expected[kind], strict=True):
            made = TableSpec(format=kind, name=f"shop.t{days}", properties=given)
            three_batches(made, at)
            table = open_table(made, at)
            newest = next(table.history().versions())
            assert table.kept_until_ms(newest, newest.committed_at_ms) == newest.committed_at_ms + days * day_ms


def test_a_log_kept_for_a_short_time_bounds_what_can_be_undone(delta: TableSpec, at: Places) -> None:
    made = delta.model_copy(update={"properties": {"delta.logRetentionDuration": "interval 6 hours"}})
    three_batches(made, at)
    table = open_table(made, at)
    newest = next(table.history().versions())
    assert table.kept_until_ms(newest, newest.committed_at_ms + 1000) == newest.committed_at_ms + 6 * 3_600_000
