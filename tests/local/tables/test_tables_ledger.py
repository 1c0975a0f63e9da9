"""Reading a table's ledger: which entry counts, and when there is none to trust. Real tables of both formats."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.support.tables.local_tables import (
    SCHEMA,
    TOPIC,
    TOPIC_ID,
    Lander,
    draft,
    genesis,
    landed_offsets,
    lander,
    make_table,
    offsets,
    rows,
)

from lakebound.errors import BadEntryError, NewerEntryError, NoLedgerError, TableMismatchError, TableRestoredError
from lakebound.ledger.entry import ENTRY_KEY, TopicOffsets, encode
from lakebound.operations.recovery.rebuild import rebuild
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.open import make_namespace, open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView, Table, open_table


@pytest.fixture
def delta() -> TableSpec:
    return TableSpec(format="delta", name="shop.orders")


@pytest.fixture
def iceberg() -> TableSpec:
    return TableSpec(format="iceberg", name="shop.orders")


def three_batches(spec: TableSpec, at: Places) -> Lander:
    make_table(spec, at)
    app = lander(spec, at)
    for start in (0, 10, 20):
        app.land(start, start + 10)
    return app


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_handle_tells_when_somebody_else_has_committed(format_: str, at: Places) -> None:
    app = three_batches(TableSpec.model_validate({"format": format_, "name": "shop.orders"}), at)
    other = lander(app.table.spec, at)
    assert not app.table.has_moved_on() and not other.table.has_moved_on()
    other.land(30, 40)
    assert app.table.has_moved_on() and not other.table.has_moved_on()
    app.table.read_ledger()
    assert not app.table.has_moved_on()


def delta_handle(spec: TableSpec, at: Places) -> DeltaTable:
    return open_at(at.folder(spec))


def write_foreign_rows(spec: TableSpec, at: Places) -> None:
    """Make a table with rows that no Lakebound wrote."""
    if spec.format == "delta":
        write_deltalake(at.folder(spec).address, storage_options=at.folder(spec).delta_options, data=rows(0, 5))
        return
    catalog = open_catalog(at)
    make_namespace(catalog, spec.namespace)
    catalog.create_table(spec.name, SCHEMA).append(rows(0, 5))


def make_foreign_table(spec: TableSpec, at: Places) -> None:
    """Make an empty table that no Lakebound made."""
    if spec.format == "delta":
        DeltaTable.create(at.folder(spec).address, SCHEMA, storage_options=at.folder(spec).delta_options)
        return
    catalog = open_catalog(at)
    make_namespace(catalog, spec.namespace)
    catalog.create_table(spec.name, SCHEMA)


def write_metadata(spec: TableSpec, at: Places, text: str) -> None:
    """Commit nothing but metadata, as anybody who may write to the table can."""
    if spec.format == "delta":
        properties = CommitProperties(custom_metadata={"userMetadata": text})
        delta_handle(spec, at).create_write_transaction([], "append", SCHEMA, commit_properties=properties)
    else:
        table = open_catalog(at).load_table(spec.name)
        table.append(rows(0, 0), snapshot_properties={ENTRY_KEY: text})


def test_a_table_is_born_with_a_genesis_entry(spec: TableSpec, at: Places) -> None:
    table = open_table(spec, at)
    assert not table.exists()
    table.create(SCHEMA, genesis(epoch=4))
    assert table.exists()
    view = open_table(spec, at).read_ledger()
    assert view.entry is not None and view.entry.kind == "genesis" and view.epoch == 4 and view.coverage == {}


def test_a_table_gives_back_its_columns(spec: TableSpec, at: Places) -> None:
    table = make_table(spec, at)
    assert table.schema() == SCHEMA


def test_a_table_partitioned_by_a_column_it_has_not_is_refused(at: Places) -> None:
    for format_ in ("delta", "iceberg"):
        table = open_table(TableSpec(format=format_, name="shop.orders", partition_by=("day",)), at)
        with pytest.raises(TableMismatchError, match="'day'"):
            table.create(SCHEMA, genesis())
        assert not table.exists()


def test_a_transform_that_does_not_go_with_its_column_is_refused(at: Places) -> None:
    table = open_table(TableSpec(format="iceberg", name="shop.orders", partition_by=("day(city)",)), at)
    with pytest.raises(TableMismatchError, match=r"day\(city\)"):
        table.create(SCHEMA, genesis())


def test_a_commit_without_files_carries_its_entry(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    app.land(0, 10, [])
    view = open_table(spec, at).read_ledger()
    assert view.coverage == offsets(0, 10) and view.entry is not None and view.entry.kind == "land"
    assert landed_offsets(app.table) == []


def test_an_empty_table_of_somebody_else_has_no_entry_and_takes_one(spec: TableSpec, at: Places) -> None:
    make_foreign_table(spec, at)
    app = lander(spec, at)
    assert app.view.entry is None
    app.open()
    app.land(0, 10)
    assert landed_offsets(app.table) == list(range(10))


def test_rows_without_an_entry_are_refused(spec: TableSpec, at: Places) -> None:
    write_foreign_rows(spec, at)
    with pytest.raises(NoLedgerError, match=spec.id):
        open_table(spec, at).read_ledger()


def test_the_entry_stays_reachable_under_foreign_commits(spec: TableSpec, at: Places) -> None:
    app = three_batches(spec, at)
    for text in ("by hand", "", '{"job": "nightly"}'):
        write_metadata(spec, at, text)
    view = app.table.read_ledger()
    assert view.coverage == offsets(0, 30) and view.version != app.view.version


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({ENTRY_KEY: {"kind": "land"}}),
        json.dumps({ENTRY_KEY: "x" * 9_000_000}),
        json.dumps({ENTRY_KEY: {"kind": "land", "pipeline": "orders", "epoch": 10**12, "commit": "c"}}),
    ],
    ids=["incomplete", "oversized", "epoch"],
)
def test_a_forged_entry_is_refused_with_the_commit_that_holds_it(spec: TableSpec, at: Places, text: str) -> None:
    three_batches(spec, at)
    write_metadata(spec, at, text)
    where = "00000000000000000004.json" if spec.format == "delta" else "snapshot "
    with pytest.raises(BadEntryError, match=where):
        open_table(spec, at).read_ledger()


def test_an_entry_that_needs_a_later_version_is_refused_and_not_reconstructed(spec: TableSpec, at: Places) -> None:
    app = three_batches(spec, at)
    body = json.loads(encode(next(app.table.entries()).entry))[ENTRY_KEY]
    write_metadata(spec, at, json.dumps({ENTRY_KEY: {**body, "writer": "9.1.0", "requires": ["holes"]}}))
    table = open_table(spec, at)
    with pytest.raises(NewerEntryError, match=r"9\.1\.0.*needs holes") as caught:
        table.read_ledger()
    assert rebuild(table, caught.value, {}) is None


def test_iceberg_counts_the_ancestry_of_the_current_snapshot_only(iceberg: TableSpec, at: Places) -> None:
    app = three_batches(iceberg, at)
    first_batch = next(found.version for found in app.table.entries() if found.entry.coverage == offsets(0, 10))
    other = open_catalog(at).load_table(iceberg.name)
    other.manage_snapshots().rollback_to_snapshot(int(first_batch)).commit()
    again = lander(iceberg, at)
    assert again.view.coverage == offsets(0, 10)
    assert [found.entry.kind for found in again.table.entries()] == ["land", "genesis"]
    again.land(10, 15)
    assert landed_offsets(again.table) == list(range(15))
    assert again.table.read_ledger().coverage == offsets(0, 15)


def test_a_delta_restore_with_a_reset_entry_counts(delta: TableSpec, at: Places) -> None:
    three_batches(delta, at)
    reset = draft(0, 0, epoch=2, kind="reset").model_copy(update={"coverage": offsets(0, 10)})
    properties = CommitProperties(custom_metadata={"userMetadata": encode(reset)})
    delta_handle(delta, at).restore(1, commit_properties=properties)
    again = lander(delta, at, epoch=2)
    assert again.view.coverage == offsets(0, 10)
    again.land(10, 15)
    assert landed_offsets(again.table) == list(range(15))
    assert again.table.read_ledger().coverage == offsets(0, 15)
    assert [found.version for found in again.table.entries()] == ["5", "4", "1", "0"], "what was undone is still told"


def test_a_delta_restore_by_hand_is_refused(delta: TableSpec, at: Places) -> None:
    three_batches(delta, at)
    delta_handle(delta, at).restore(1)
    with pytest.raises(TableRestoredError, match="version 4"):
        open_table(delta, at).read_ledger()


def test_a_log_that_keeps_no_entry_is_refused(delta: TableSpec, at: Places) -> None:
    """Log clean-up leaves a checkpoint and the commits after it."""
    three_batches(delta, at)
    handle = delta_handle(delta, at)
    write_metadata(delta, at, "nightly job")
    handle.update_incremental()
    handle.create_checkpoint()
    write_metadata(delta, at, "nightly job")
    for version in range(handle.version()):
        (at.delta_path(delta) / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(NoLedgerError):
        open_table(delta, at).read_ledger()


def test_entries_are_read_as_far_back_as_the_log_is_kept(delta: TableSpec, at: Places) -> None:
    app = three_batches(delta, at)
    delta_handle(delta, at).create_checkpoint()
    for version in range(2):
        (at.delta_path(delta) / "_delta_log" / f"{version:020d}.json").unlink()
    again = open_table(delta, at)
    assert again.read_ledger() == app.view
    assert [found.version for found in again.entries()] == ["3", "2"]


def reconstructed(table: Table) -> tuple[str, dict[int, tuple[tuple[int, int], ...]]]:
    found = table.reconstruct()
    assert found is not None and set(found.coverage) == {TOPIC} and found.coverage[TOPIC].topic_id == TOPIC_ID
    return found.source, dict(found.coverage[TOPIC].partitions)


def test_an_empty_table_cannot_be_reconstructed(spec: TableSpec, at: Places) -> None:
    assert make_table(spec, at).reconstruct() is None


def test_coverage_is_reconstructed_from_statistics(spec: TableSpec, at: Places) -> None:
    app = three_batches(spec, at)
    app.land(40, 45)
    assert reconstructed(app.table) == ("statistics", {0: ((0, 30), (40, 45))})


def test_coverage_is_reconstructed_from_rows_where_statistics_do_not_tell(spec: TableSpec, at: Places) -> None:
    app = three_batches(spec, at)
    write_all(app, pa.concat_tables([rows(30, 32), rows(35, 40), rows(7, 9, partition=1)]))
    assert reconstructed(app.table) == ("scan", {0: ((0, 32), (35, 40)), 1: ((7, 9),)})


def test_foreign_rows_are_reconstructed_by_a_scan(spec: TableSpec, at: Places) -> None:
    write_foreign_rows(spec, at)
    found = open_table(spec, at).reconstruct()
    assert found is not None
    assert found.coverage == {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((0, 5),)})}


def write_all(app: Lander, batch: pa.Table) -> None:
    """Commit rows of any offsets as one file."""
    from lakebound.tables.datafiles import write_data_files

    files = write_data_files(batch, app.table.layout(), "mixed")
    app.land(30, 40, files)


def test_scan_gives_the_kafka_columns_flat(spec: TableSpec, at: Places) -> None:
    app = three_batches(spec, at)
    kafka = app.table.scan_kafka()
    assert kafka.column_names == ["topic", "topic_id", "partition", "offset", "timestamp", "ordinal"]
    assert kafka.num_rows == 30 and kafka.sort_by("offset").slice(7, 1).to_pylist()[0]["offset"] == 7
    assert make_empty(spec, at).scan_kafka().num_rows == 0


def make_empty(spec: TableSpec, at: Places) -> Table:
    return make_table(TableSpec(format=spec.format, name="shop.empty"), at)


def test_reading_moves_no_handle_that_commits(spec: TableSpec, at: Places) -> None:
    """A proof beside the stream must not take the fence away from the application's handle."""
    app = three_batches(spec, at)
    lander(spec, at, epoch=2).open()
    app.table.scan_kafka()
    app.table.reconstruct()
    app.table.keep_cheap()
    with pytest.raises(Exception, match="refused the commit"):
        app.table.commit([], draft(30, 40))


def test_view_of_a_table_that_was_never_read(spec: TableSpec, at: Places) -> None:
    view = make_table(spec, at).read_ledger()
    assert view == LedgerView(view.entry, view.version) and view.version
