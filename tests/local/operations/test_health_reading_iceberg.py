"""Health read from Iceberg metadata: manifests, ages of files, deletes, and the same as PyIceberg says."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from urllib.parse import urlparse

import pytest
from pyiceberg.manifest import DataFileContent
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.health_tables import NOW_MS, by_name, landed, read
from tests.support.tables.local_tables import SCHEMA
from tests.support.tables.maintenance import expire_iceberg

from lakebound.operations.maintenance.reading import UnreadableTableError, read_table_facts
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.append import append
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.manifests import ENTRIES, MANIFESTS
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places


def iceberg(**more: object) -> TableSpec:
    return TableSpec.model_validate({"format": "iceberg", "name": "shop.orders", **more})


def test_a_table_without_a_snapshot(at: Places) -> None:
    spec = iceberg()
    catalog = open_catalog(at)
    catalog.create_namespace("shop")
    catalog.create_table(("shop", "orders"), SCHEMA)
    facts = read(spec, at)
    assert (facts.version, facts.files, facts.metadata.manifests, facts.metadata.snapshots) == ("", 0, 0, 0)
    assert facts.metadata.oldest_version_at_ms is None and facts.metadata.metadata_bytes > 0


def test_manifests_and_their_bytes(at: Places) -> None:
    spec = iceberg(partition_by=["day(at)"])
    landed(spec, at, 14)
    table = foreign_iceberg(spec, at)
    facts = read(spec, at)
    folder = Path(urlparse(table.location()).path) / "metadata"
    used = [*table.current_snapshot().manifests(table.io)]  # type: ignore[union-attr]
    paths = [table.metadata_location, table.current_snapshot().manifest_list, *(one.manifest_path for one in used)]  # type: ignore[union-attr]
    assert facts.metadata.manifests == len(used) < 14
    assert facts.metadata.metadata_bytes == sum((folder / str(path).rpartition("/")[2]).stat().st_size for path in paths)
    assert {name: len(part.files) for name, part in by_name(facts).items()} == {"at_day=2023-11-15": 8, "at_day=2023-11-16": 6}
    assert facts.properties["write.metadata.delete-after-commit.enabled"] == "true"


def test_a_file_is_as_old_as_its_snapshot(at: Places) -> None:
    spec = iceberg()
    landed(spec, at, 12)  # manifests are merged meanwhile
    times = [snapshot.timestamp_ms for snapshot in foreign_iceberg(spec, at).snapshots()]
    assert sorted(file.added_at_ms for file in read(spec, at).partitions[0].files) == times[1:]
    assert expire_iceberg(spec, at) == 12
    assert {file.added_at_ms for file in read(spec, at).partitions[0].files} == {times[-1]}


def test_deleted_entries_are_no_files(at: Places) -> None:
    spec = iceberg(partition_by=["city"])
    landed(spec, at, 2)
    table = foreign_iceberg(spec, at)
    table.delete("city = 'city 1'")
    assert any(
        entry[0] == 2
        for manifest in table.current_snapshot().manifests(table.io)  # type: ignore[union-attr]
        for entry in ENTRIES.rows(Path(urlparse(manifest.manifest_path).path).read_bytes())
    )
    facts = read(spec, at)
    assert set(by_name(facts)) == {"city=city 0", "city=city 2"} and facts.rows == 4


def test_delete_files_are_counted_beside_data(at: Places) -> None:
    spec = iceberg(partition_by=["city"])
    app = landed(spec, at, 1, rows_each=2)
    table = foreign_iceberg(spec, at)
    described = describe(app.write(3, 7), table.metadata, spec.id)
    assert [file.partition[0] for file in described] == ["city 0", "city 1", "city 2"]
    for file in described:
        file._data[0] = DataFileContent.POSITION_DELETES
    append(table, described, {})
    facts = read(spec, at)
    assert (facts.files, facts.rows, facts.metadata.dangling_delete_files) == (2, 2, 1)
    assert {name: part.delete_files for name, part in by_name(facts).items()} == {"city=city 0": 1, "city=city 1": 1}


def test_fewer_fields_say_the_same_as_pyiceberg(at: Places) -> None:
    spec = iceberg(partition_by=["day(at)", "truncate(4, city)"])
    landed(spec, at, 11)
    table = foreign_iceberg(spec, at)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    lists = [tuple(row[number] for number in range(5)) for row in MANIFESTS.rows(at.file_at(snapshot.manifest_list).read())]
    assert lists == [
        (one.manifest_path, one.manifest_length, one.partition_spec_id, one.added_snapshot_id, one.content) for one in manifests
    ]
    for manifest in manifests:
        whole = manifest.fetch_manifest_entry(table.io)
        few = list(ENTRIES.rows(at.file_at(manifest.manifest_path).read()))
        assert [(row[0], row[1] or manifest.added_snapshot_id, row[2][0], row[2][2], row[2][3]) for row in few] == [
            (
                entry.status,
                entry.snapshot_id,
                entry.data_file.content,
                entry.data_file.record_count,
                entry.data_file.file_size_in_bytes,
            )
            for entry in whole
        ]
        assert [row[2][1] for row in few] == [entry.data_file.partition for entry in whole]


def test_a_torn_manifest_is_an_error(at: Places) -> None:
    spec = iceberg()
    landed(spec, at, 1)
    table = foreign_iceberg(spec, at)
    path = Path(urlparse(table.current_snapshot().manifests(table.io)[0].manifest_path).path)  # type: ignore[union-attr]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnreadableTableError, match=r"metadata of iceberg:shop\.orders cannot be read"):
        read_table_facts(spec, at, NOW_MS)


def test_gzipped_metadata(at: Places) -> None:
    spec = iceberg()
    landed(spec, at, 2)
    before = read(spec, at)
    path = Path(urlparse(foreign_iceberg(spec, at).metadata_location).path)
    packed = path.with_name("1.gz.metadata.json")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with sqlite3.connect(at.iceberg_catalog_uri.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{packed}",))
    after = read(spec, at)
    assert after.partitions == before.partitions
    assert before.metadata.metadata_bytes - after.metadata.metadata_bytes == path.stat().st_size - packed.stat().st_size
