"""What is particular to Iceberg: the catalog, cheap appends, and metadata as PyIceberg itself would have written it."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from tests.support.tables.local_tables import SCHEMA, Lander, genesis, landed_offsets, lander, make_table, places
from tests.support.waiting import HANGS_SECONDS

from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.catalog import CATALOG_NAME, LedgerCatalog
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="iceberg", name="shop.orders")


@pytest.fixture
def app(at: Places) -> Lander:
    make_table(SPEC, at)
    return lander(SPEC, at)


def plain(at: Places) -> Table:
    """The table as PyIceberg's own catalog loads it: nothing remembered, the metadata file parsed."""
    return SqlCatalog(CATALOG_NAME, uri=at.iceberg_catalog_uri, warehouse=str(at.iceberg_warehouse)).load_table(SPEC.name)


def metadata_files(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.location().removeprefix("file://")).glob("metadata/*.metadata.json"))


def test_what_is_written_is_what_is_remembered(app: Lander, at: Places) -> None:
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    app.open()
    found = plain(at)
    catalog = open_catalog(at)
    remembered = catalog.load_table(SPEC.name)
    assert found.metadata == remembered.metadata
    assert found.metadata_location == remembered.metadata_location
    assert len(found.metadata.snapshots) == len(found.metadata.snapshot_log) == 5
    assert [entry.snapshot_id for entry in found.metadata.snapshot_log] == [s.snapshot_id for s in found.metadata.snapshots]
    sequence_numbers = [snapshot.sequence_number for snapshot in found.metadata.snapshots]
    assert sequence_numbers == sorted(set(sequence_numbers))  # type: ignore[type-var]


def test_what_others_did_is_read_as_pyiceberg_reads_it(app: Lander, at: Places) -> None:
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    theirs = plain(at)
    with theirs.transaction() as change:
        change.set_properties({"theirs": "yes", "write.metadata.compression-codec": "gzip"})
    theirs.append(theirs.scan().to_arrow().slice(0, 3))
    theirs.maintenance.expire_snapshots().by_id(theirs.metadata.snapshots[1].snapshot_id).commit()
    app.table.read_ledger()
    found = plain(at)
    remembered = open_catalog(at).load_table(SPEC.name)
    for name in type(found.metadata).model_fields:
        assert getattr(remembered.metadata, name) == getattr(found.metadata, name), name
    assert len(found.metadata.snapshots) == 5
    app.land(40, 50)
    assert plain(at).metadata.snapshots[:-1] == found.metadata.snapshots


def test_summaries_add_up(app: Lander, at: Places) -> None:
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    summary = plain(at).current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert (summary["total-records"], summary["added-records"], summary["total-data-files"]) == ("30", "10", "3")


def test_the_manifest_list_stays_short_and_nothing_is_lost(app: Lander, at: Places) -> None:
    for start in range(125):
        app.land(start, start + 1)
    table = plain(at)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    assert len(manifests) <= 30
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    assert len(entries) == len({entry.data_file.file_path for entry in entries}) == 125
    assert sorted({entry.sequence_number for entry in entries}) == list(range(2, 127))  # type: ignore[type-var]
    assert landed_offsets(app.table) == list(range(125))
    first = table.scan(snapshot_id=table.metadata.snapshots[3].snapshot_id).to_arrow()
    assert sorted(first["id"].to_pylist()) == [0, 1, 2]


def test_manifests_of_different_partitionings_are_not_mixed(app: Lander, at: Places) -> None:
    for start in range(8):
        app.land(start, start + 1)
    with plain(at).update_spec() as update:
        update.add_identity("city")
    app.view = app.table.read_ledger()
    for start in range(8, 30):
        app.land(start, start + 1)
    assert landed_offsets(app.table) == list(range(30))
    table = plain(at)
    specs = {manifest.partition_spec_id for manifest in table.current_snapshot().manifests(table.io)}  # type: ignore[union-attr]
    assert specs == {0, 1}


def test_old_metadata_files_are_deleted_after_a_commit(app: Lander, at: Places) -> None:
    for start in range(40):
        app.land(start, start + 1)
    table = plain(at)
    assert len(metadata_files(table)) == 21
    assert table.metadata_location.rpartition("/")[2] in metadata_files(table)


def test_a_refused_commit_leaves_no_manifests_behind(app: Lander, at: Places) -> None:
    stale = lander(SPEC, at)
    files = stale.write(0, 1)
    app.land(0, 1)
    folder = Path(plain(at).location().removeprefix("file://")) / "metadata"
    before = sorted(folder.glob("*.avro"))
    assert stale.view.entry is not None
    with pytest.raises(Exception, match="refused"):
        stale.table.commit(files, stale.view.entry)
    assert sorted(folder.glob("*.avro")) == before


def test_the_retry_setting_of_the_table_itself_is_left_alone(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders", properties={"commit.retry.num-retries": "7", "owner": "shop"})
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 1)
    properties = plain(at).properties
    assert properties["commit.retry.num-retries"] == "7" and properties["owner"] == "shop"
    assert properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert "schema.name-mapping.default" not in properties, "every file has the columns' ids"


def test_bounds_of_kafka_stand_in_the_manifests(app: Lander, at: Places) -> None:
    app.land(0, 10)
    table = plain(at)
    field = table.schema().find_field("_kafka.offset").field_id
    manifest = table.current_snapshot().manifests(table.io)[0]  # type: ignore[union-attr]
    file = manifest.fetch_manifest_entry(table.io)[0].data_file
    assert file.lower_bounds[field] == (0).to_bytes(8, "little")
    assert file.upper_bounds[field] == (9).to_bytes(8, "little")


def test_entries_are_read_from_a_handle_that_many_commits_have_left_behind(app: Lander, at: Places) -> None:
    """The metadata file that it was read from is deleted by then."""
    for start in range(25):
        lander(SPEC, at).land(start, start + 1)
    assert [found.entry.kind for found in app.table.entries()] == ["genesis"]
    assert app.table.read_ledger().coverage["orders"].partitions == {0: ((0, 25),)}


def test_the_catalog_waits_for_locks_and_lets_readers_through(at: Places) -> None:
    catalog = open_catalog(at)
    with catalog.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000
    assert open_catalog(at) is catalog


def test_a_reader_is_not_kept_waiting_by_a_writer(app: Lander, at: Places) -> None:
    connection = sqlite3.connect(at.iceberg_catalog_uri.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        assert app.table.read_ledger() == app.view
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def _make(folder: str, name: str, results: multiprocessing.Queue[str]) -> None:
    try:
        table = open_table(TableSpec(format="iceberg", name=f"shop.{name}"), places(Path(folder)))
        table.create(SCHEMA, genesis())
        results.put("made" if table.exists() else "missing")
    except Exception as exc:
        results.put(repr(exc))


def test_processes_that_start_together_make_one_catalog(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=_make, args=(str(tmp_path), f"t{n}", results)) for n in range(3)]
    for process in processes:
        process.start()
    assert [results.get(timeout=HANGS_SECONDS) for _ in processes] == ["made"] * 3
    for process in processes:
        process.join(timeout=HANGS_SECONDS)


def test_a_catalog_that_another_process_is_making_is_waited_for(at: Places) -> None:
    """SQLite gives up at once, whatever its timeout, when the journal's mode is changed while another connection writes."""
    path = Path(at.iceberg_catalog_uri.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(open_catalog, at)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.5)
        other.execute("ROLLBACK")
        assert opened.result(timeout=HANGS_SECONDS).list_namespaces() == []
    other.close()


def test_tables_of_one_catalog_are_committed_by_several_threads(at: Places) -> None:
    specs = [TableSpec(format="iceberg", name=f"shop.t{n}") for n in range(3)]
    apps = []
    for spec in specs:
        make_table(spec, at)
        apps.append(lander(spec, at))

    def land(app: Lander) -> int:
        return max(app.land(start, start + 5).attempts for start in range(0, 50, 5))

    with ThreadPoolExecutor(len(apps)) as pool:
        assert list(pool.map(land, apps)) == [1, 1, 1]
    for app in apps:
        assert landed_offsets(app.table) == list(range(50))
    assert isinstance(open_catalog(at), LedgerCatalog)
