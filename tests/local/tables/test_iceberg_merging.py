"""Merged manifests hold what PyIceberg's own would: every file once, with the snapshot that added it, and right sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID, SetSnapshotRefUpdate
from pyiceberg.types import StringType
from tests.support.tables.local_tables import Lander, landed_offsets, lander, make_table, places

from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

pytestmark = pytest.mark.local

COMMITS = 215
PLAIN = TableSpec(format="iceberg", name="db.plain")
PARTED = TableSpec(format="iceberg", name="db.parted", partition_by=("city",))


@pytest.fixture
def at(tmp_path: Path) -> Places:
    return places(tmp_path)


def land(one: Lander, first: int, commits: int) -> None:
    for number in range(first, first + commits):
        one.land(number * 2, number * 2 + 2)


def loaded(spec: TableSpec, at: Places) -> PyIcebergTable:
    return open_catalog(at).load_table((spec.namespace, spec.short_name))


def manifests(table: PyIcebergTable) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.manifests(table.io)


def told(entry: ManifestEntry) -> dict[str, Any]:
    """Return all that an entry says but how it came into its manifest."""
    file = entry.data_file
    names = ("file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "column_sizes", "value_counts")
    names += ("null_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id", "spec_id")
    body = {name: getattr(file, name) for name in names}
    numbers = (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number)
    return {**body, "partition": str(file.partition), "numbers": numbers}


def added_by_each_snapshot(table: PyIcebergTable) -> dict[str, dict[str, Any]]:
    """Return what each snapshot said of the files that it added."""
    found = {}
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                for entry in manifest.fetch_manifest_entry(table.io):
                    if entry.status == ManifestEntryStatus.ADDED:
                        found[entry.data_file.file_path] = told(entry)
    return found


@pytest.mark.parametrize("spec", [PLAIN, PARTED], ids=["plain", "parted"])
@pytest.mark.parametrize("restarts_after", [COMMITS, 57], ids=["one process", "restarted"])
def test_every_file_is_listed_once_as_its_snapshot_added_it(spec: TableSpec, restarts_after: int, at: Places) -> None:
    make_table(spec, at)
    land(lander(spec, at), 0, min(restarts_after, COMMITS))
    land(lander(spec, at), restarts_after, COMMITS - restarts_after)
    table = loaded(spec, at)
    listed = [entry for manifest in manifests(table) for entry in manifest.fetch_manifest_entry(table.io)]
    assert {entry.data_file.file_path: told(entry) for entry in listed} == added_by_each_snapshot(table)
    assert len(listed) == len({entry.data_file.file_path for entry in listed})
    assert len(manifests(table)) < 25
    assert landed_offsets(lander(spec, at).table) == list(range(2 * COMMITS))


def add_with_older_rows(table: PyIcebergTable, files: list[DataFile], sequence_number: int) -> int:
    """Commit files with the rows of an earlier snapshot, as a compaction beside delete files does; return its own number."""
    snapshot_id, location = table.metadata.new_snapshot_id(), f"{table.location()}/metadata/older"
    output = table.io.new_output(f"{location}-m0.avro")
    with write_manifest(2, table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
        for file in files:
            entry = {"status": ManifestEntryStatus.ADDED, "snapshot_id": snapshot_id, "sequence_number": sequence_number}
            writer.add(ManifestEntry.from_args(**entry, data_file=file))
    current, number = table.current_snapshot(), table.metadata.next_sequence_number()
    assert current is not None
    listed = table.io.new_output(f"{location}.avro")
    with write_manifest_list(2, listed, snapshot_id, current.snapshot_id, number, "deflate") as lists:
        lists.add_manifests([writer.to_manifest_file(), *current.manifests(table.io)])
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": current.snapshot_id,
            "manifest-list": f"{location}.avro",
            "sequence-number": number,
            "timestamp-ms": current.timestamp_ms + 1,
            "summary": current.summary.model_dump() if current.summary is not None else None,
            "schema-id": table.metadata.current_schema_id,
        }
    )
    head = {"ref-name": "main", "snapshot-id": snapshot_id, "type": "branch"}
    updates = (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate.model_validate(head))
    table.catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), updates)
    return number


def test_files_with_rows_of_an_earlier_snapshot_keep_both_numbers(at: Places) -> None:
    """Of a file that a compaction added, the rows are older than the file: two sequence numbers, and both stay."""
    make_table(PLAIN, at)
    one = lander(PLAIN, at)
    land(one, 0, 3)
    table = loaded(PLAIN, at)
    files = describe(one.write(100, 102), table.metadata, PLAIN.id)
    number = add_with_older_rows(table, list(files), 2)
    again = lander(PLAIN, at)
    land(again, 3, 12)
    table = loaded(PLAIN, at)
    listed = [(manifest, entry) for manifest in manifests(table) for entry in manifest.fetch_manifest_entry(table.io)]
    ((manifest, found),) = [one for one in listed if one[1].data_file.file_path == files[0].file_path]
    assert (manifest.existing_files_count or 0) >= 10, "it was not merged"
    assert (found.sequence_number, found.file_sequence_number) == (2, number)


@pytest.mark.parametrize("spec", [PLAIN, PARTED], ids=["plain", "parted"])
def test_a_merged_manifest_says_in_sum_what_pyicebergs_would(spec: TableSpec, at: Places, tmp_path: Path) -> None:
    make_table(spec, at)
    land(lander(spec, at), 0, 110)
    table = loaded(spec, at)
    merged = [manifest for manifest in manifests(table) if (manifest.existing_files_count or 0) >= 10]
    assert merged
    for number, manifest in enumerate(merged):
        output = table.io.new_output(str(tmp_path / f"own-{number}.avro"))
        schema, parting = table.schema(), table.specs()[manifest.partition_spec_id]
        with write_manifest(2, parting, schema, output, manifest.added_snapshot_id or 0, "deflate") as writer:
            for entry in manifest.fetch_manifest_entry(table.io):
                writer.existing(entry)
        own = writer.to_manifest_file()
        for name in ("existing_files_count", "existing_rows_count", "added_files_count", "deleted_files_count",
                     "min_sequence_number", "content", "partition_spec_id"):  # fmt: skip
            assert getattr(manifest, name) == getattr(own, name), name
        assert str(manifest.partitions) == str(own.partitions)


def test_a_column_more_does_not_disturb_the_merging(at: Places) -> None:
    make_table(PLAIN, at)
    one = lander(PLAIN, at)
    land(one, 0, 15)
    with loaded(PLAIN, at).update_schema() as update:
        update.add_column("note", StringType())
    again = lander(PLAIN, at)
    land(again, 15, 30)
    table = loaded(PLAIN, at)
    listed = [entry for manifest in manifests(table) for entry in manifest.fetch_manifest_entry(table.io)]
    assert {entry.data_file.file_path: told(entry) for entry in listed} == added_by_each_snapshot(table)
    assert landed_offsets(again.table) == list(range(90))
