"""Putting a table back to an earlier version, with a ``reset`` entry in the same commit. Real tables of both formats."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from deltalake import CommitProperties, DeltaTable, TableFeatures
from pyiceberg.table.refs import MAIN_BRANCH
from tests.support.tables.local_tables import (
    Lander,
    draft,
    landed_offsets,
    lander,
    offsets,
    rows,
)
from tests.support.tables.restoring import delta_fixture, iceberg_fixture, put_back, reset, three_batches, version_of  # noqa: F401

from lakebound.errors import CommitRefusedError, LeaseLostError, TableRestoredError
from lakebound.ledger.entry import ENTRY_KEY, encode, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.history import History
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry, open_table


@pytest.fixture
def app(spec: TableSpec, at: Places) -> Lander:
    return three_batches(spec, at)


def compact(spec: TableSpec, at: Places) -> None:
    """Rewrite all data files as one, with the entry carried on, as maintenance does."""
    counting = open_table(spec, at).read_ledger().entry
    assert counting is not None
    carried = {ENTRY_KEY: encode(counting.model_copy(update={"kind": "carry", "commit": new_commit_id()}))}
    if spec.format == "delta":
        properties = CommitProperties(custom_metadata={"userMetadata": carried[ENTRY_KEY]})
        assert open_at(at.folder(spec)).optimize.compact(commit_properties=properties)["numFilesRemoved"]
    else:
        table = open_catalog(at).load_table(spec.name)
        table.overwrite(table.scan().to_arrow(), snapshot_properties=carried)


def test_rows_and_ledger_go_back_and_landing_goes_on_from_there(app: Lander, spec: TableSpec, at: Places) -> None:
    version = put_back(spec, at, 10).read_ledger()
    assert version.coverage == offsets(0, 10) and version.entry is not None and version.entry.kind == "reset"
    again = lander(spec, at, epoch=3)
    assert landed_offsets(again.table) == list(range(10))
    again.land(10, 25)
    assert landed_offsets(again.table) == list(range(25))
    assert open_table(spec, at).read_ledger().coverage == offsets(0, 25)


def test_the_handle_that_restored_can_land_once_it_has_read_the_ledger(app: Lander, spec: TableSpec, at: Places) -> None:
    table = put_back(spec, at, 10)
    with pytest.raises(CommitRefusedError, match="not read"):
        table.commit([], draft(10, 20, epoch=2))
    again = Lander(table, table.read_ledger(), epoch=2)
    again.land(10, 20)
    assert landed_offsets(table) == list(range(20))


def test_an_application_from_before_the_restore_is_a_zombie(app: Lander, spec: TableSpec, at: Places) -> None:
    """Its handle is refused by the table, and its ledger, read again, by the epoch."""
    files = app.write(30, 40)
    put_back(spec, at, 10)
    with pytest.raises(CommitRefusedError):
        app.table.commit(files, draft(30, 40))
    with pytest.raises(LeaseLostError, match="epoch 2"):
        app.land(30, 40, files)
    view = app.table.read_ledger()
    with pytest.raises(CommitRefusedError, match="epoch 2"):
        app.table.commit(files, draft(10, 20))
    assert view.coverage == offsets(0, 10) and landed_offsets(app.table) == list(range(10))


def test_a_restore_by_a_zombie_is_refused(app: Lander, spec: TableSpec, at: Places) -> None:
    later = lander(spec, at, epoch=5)
    later.open()
    table = open_table(spec, at)
    with pytest.raises(CommitRefusedError, match="epoch 5"):
        table.restore(version_of(table, 10).version, reset(10, epoch=4))
    assert landed_offsets(table) == list(range(30))


def test_a_restore_beside_a_commit_is_refused_or_after_it(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch lands between the look at the table and the commit of the restore."""
    table = open_table(spec, at)
    version = version_of(table, 10).version
    kind = type(table.history())
    entries, landed = kind.entries, list[object]()

    def entries_and_a_batch(self: History, version: str | None = None) -> Iterator[CommittedEntry]:
        found = list(entries(self, version))
        if not landed:
            landed.append("begun")  # landing reads entries, too
            landed.append(app.land(30, 40))
        return iter(found)

    monkeypatch.setattr(kind, "entries", entries_and_a_batch)
    with pytest.raises(CommitRefusedError):
        table.restore(version, reset(10))
    monkeypatch.undo()
    assert len(landed) == 2 and landed_offsets(table) == list(range(40))


def test_the_current_version_can_be_restored_too(app: Lander, spec: TableSpec, at: Places) -> None:
    put_back(spec, at, 30)
    again = lander(spec, at, epoch=2)
    assert again.view.entry is not None and again.view.entry.kind == "reset" and again.view.epoch == 2
    assert landed_offsets(again.table) == list(range(30))
    with pytest.raises(LeaseLostError):
        app.land(30, 40)


def test_versions_are_listed_with_their_times_and_what_was_left_by_a_restore(app: Lander, spec: TableSpec, at: Places) -> None:
    before = [version.version for version in open_table(spec, at).history().versions()]
    put_back(spec, at, 10)
    listed = list(open_table(spec, at).history().versions())
    assert [version.version for version in listed[1:]] == before
    assert [version.entry.kind if version.entry else None for version in listed] == ["reset", "land", "land", "land", "genesis"]
    times = [version.committed_at_ms for version in listed]
    assert times == sorted(times, reverse=True)


def test_looking_back_tells_rows_entry_and_columns(app: Lander, spec: TableSpec, at: Places) -> None:
    table = open_table(spec, at)
    past = table.look_back(version_of(table, 20).version)
    assert past.entry is not None and past.entry.coverage == offsets(0, 20)
    assert (past.rows, past.missing_files) == (20, ()) and past.schema == table.schema()
    genesis = list(table.history().versions())[-1]
    assert table.look_back(genesis.version).rows == 0


def test_a_version_before_and_one_after_compaction_can_be_restored(app: Lander, spec: TableSpec, at: Places) -> None:
    compact(spec, at)
    compacted = next(v for v in open_table(spec, at).history().versions() if v.entry is not None and v.entry.kind == "carry")
    again = lander(spec, at)
    again.land(30, 40)
    table = open_table(spec, at)
    past = table.look_back(compacted.version)
    assert past.entry is not None and past.entry.coverage == offsets(0, 30) and past.rows == 30
    table.restore(compacted.version, reset(30))
    assert landed_offsets(table) == list(range(30))
    put_back(spec, at, 10, epoch=3)
    again = lander(spec, at, epoch=3)
    again.land(10, 30)
    assert landed_offsets(again.table) == list(range(30))


def test_a_partitioned_table_goes_back(spec: TableSpec, at: Places) -> None:
    column = "city" if spec.format == "delta" else "truncate(4, city)"
    partitioned = TableSpec(format=spec.format, name="shop.cities", partition_by=(column,))
    three_batches(partitioned, at)
    table = open_table(partitioned, at)
    assert table.look_back(version_of(table, 20).version).missing_files == ()
    put_back(partitioned, at, 20)
    assert landed_offsets(table) == list(range(20))


def test_a_delta_restore_is_one_commit_with_entry_and_transaction(delta: TableSpec, at: Places) -> None:
    three_batches(delta, at)
    put_back(delta, at, 10)
    folder = at.delta_path(delta)
    actions = [json.loads(line) for line in (folder / "_delta_log" / f"{4:020d}.json").read_text().splitlines()]
    (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
    (transaction,) = (action["txn"] for action in actions if "txn" in action)
    assert info["operation"] == "RESTORE" and '"kind":"reset"' in info["userMetadata"]
    assert transaction["appId"] == ENTRY_KEY and transaction["version"] // 2**40 == 2
    assert sum("remove" in action for action in actions) == 2
    assert DeltaTable(str(folder)).transaction_version(ENTRY_KEY) // 2**40 == 2


def test_a_protocol_that_was_raised_since_stays(delta: TableSpec, at: Places) -> None:
    """Other writers may rely on it by now."""
    three_batches(delta, at)
    handle = open_at(at.folder(delta))
    handle.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    put_back(delta, at, 10)
    protocol = open_at(at.folder(delta)).protocol()
    assert protocol.min_reader_version == 3 and protocol.reader_features == ["deletionVectors"]
    again = lander(delta, at, epoch=2)
    again.land(10, 15)
    assert open_table(delta, at).look_back(again.view.version).rows == 15


def test_a_table_restored_by_hand_is_known_again_after_ours(delta: TableSpec, at: Places) -> None:
    three_batches(delta, at)
    open_at(at.folder(delta)).restore(1)
    with pytest.raises(TableRestoredError):
        open_table(delta, at).read_ledger()
    with pytest.raises(TableRestoredError):
        open_table(delta, at).look_back("4")
    table = put_back(delta, at, 20)
    assert table.read_ledger().coverage == offsets(0, 20) and landed_offsets(table) == list(range(20))
    open_at(at.folder(delta)).restore(1)
    with pytest.raises(TableRestoredError, match="version 6"):
        open_table(delta, at).read_ledger()


def test_an_iceberg_restore_is_a_child_of_the_old_snapshot(iceberg: TableSpec, at: Places) -> None:
    app = three_batches(iceberg, at)
    old = version_of(app.table, 10).version
    put_back(iceberg, at, 10)
    table = open_catalog(at).load_table(iceberg.name)
    current = table.current_snapshot()
    assert current is not None and current.summary is not None
    assert current.parent_snapshot_id == int(old) and table.refs()[MAIN_BRANCH].snapshot_id == current.snapshot_id
    assert current.summary["total-records"] == "10" and len(table.scan().to_arrow()) == 10
    assert current.manifest_list != table.snapshot_by_id(int(old)).manifest_list  # type: ignore[union-attr]
    assert [found.entry.kind for found in open_table(iceberg, at).entries()] == ["reset", "land", "genesis"]


def test_foreign_rows_on_top_are_removed(app: Lander, spec: TableSpec, at: Places) -> None:
    """Rows that somebody appended without an entry go, as everything after the version does."""
    if spec.format == "delta":
        from deltalake import write_deltalake

        write_deltalake(
            at.folder(spec).address, storage_options=at.folder(spec).delta_options, data=rows(900, 905), mode="append"
        )
    else:
        open_catalog(at).load_table(spec.name).append(rows(900, 905))
    assert len(landed_offsets(app.table)) == 35
    put_back(spec, at, 30)
    assert landed_offsets(open_table(spec, at)) == list(range(30))
