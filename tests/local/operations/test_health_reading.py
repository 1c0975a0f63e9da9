"""Health read from real tables of both formats: what metadata says is what lies on disk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.health_tables import NOW_MS, by_name, landed, read
from tests.support.tables.local_tables import SCHEMA, make_table, rows

from lakebound.operations.maintenance.reading import UnreadableTableError, read_table_facts
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg import health as iceberg_health
from lakebound.tables.places import Places
from lakebound.tables.table import open_table


def test_a_table_that_is_not_there(spec: TableSpec, at: Places) -> None:
    assert read_table_facts(spec, at, NOW_MS) is None
    assert not at.root.path.exists(), "looking makes nothing"
    make_table(spec.model_copy(update={"name": "shop.other"}), at)
    assert read_table_facts(spec, at, NOW_MS) is None
    assert read_table_facts(spec, at.read_only(), NOW_MS) is None


def test_an_empty_table(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    facts = read(spec, at)
    assert (facts.table, facts.at_ms, facts.rows, facts.files, facts.partitions) == (spec.id, NOW_MS, 0, 0, ())
    assert facts.metadata.snapshots == 1
    assert facts.metadata.metadata_bytes > 0
    assert facts.version == open_table(spec, at).read_ledger().version


def test_files_are_those_on_disk(spec: TableSpec, at: Places) -> None:
    app = landed(spec, at, 4)
    facts = read(spec, at)
    on_disk = sorted(
        path.stat().st_size for path in app.table.layout().folder.path.rglob("*.parquet") if "_delta_log" not in path.parts
    )
    assert read(spec, at.read_only()) == facts
    assert sorted(file.size_bytes for part in facts.partitions for file in part.files) == on_disk
    assert (facts.rows, facts.files, facts.size_bytes) == (12, 4, sum(on_disk))
    assert (facts.version, facts.metadata.snapshots) == (app.view.version, 5)
    assert [part.values for part in facts.partitions] == [{}]
    committed = [version.committed_at_ms for version in open_table(spec, at).history().versions()]
    assert facts.metadata.oldest_version_at_ms == min(committed)
    added = [file.added_at_ms for file in facts.partitions[0].files]
    assert all(min(committed) - 1000 <= ms <= max(committed) for ms in added) and len(set(added)) > 1


def test_partitions(spec: TableSpec, at: Places) -> None:
    parted = spec.model_copy(update={"partition_by": ("city",)})
    landed(parted, at, 2, rows_each=4)
    found = by_name(read(parted, at))
    assert {name: len(part.files) for name, part in found.items()} == {"city=city 0": 2, "city=city 1": 2, "city=city 2": 2}
    assert found["city=city 1"].values == {"city": "city 1"}


def test_a_null_partition(spec: TableSpec, at: Places) -> None:
    parted = spec.model_copy(update={"partition_by": ("city",)})
    app = landed(parted, at, 1)
    batch = rows(3, 5)
    nothing = batch.set_column(1, SCHEMA.field("city"), pa.nulls(2, pa.string()))
    app.land(3, 5, write_data_files(nothing, app.table.layout(), "null"))
    assert by_name(read(parted, at))["city=None"].values == {"city": None}


def test_reading_leaves_everything_as_it_was(spec: TableSpec, at: Places) -> None:
    landed(spec, at, 2)

    def seen() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(at.root.path.rglob("*"))}

    before = seen()
    read(spec, at)
    # SQLite's -shm is shared memory of whoever has the file open, readers too.
    assert {path: stat for path, stat in seen().items() if "-shm" not in path} == {
        path: stat for path, stat in before.items() if "-shm" not in path
    }


def test_metadata_that_cannot_be_read_is_a_clear_error(spec: TableSpec, at: Places) -> None:
    landed(spec, at, 1)
    if spec.format == "delta":
        for path in (at.delta_path(spec) / "_delta_log").glob("*.json"):
            path.write_text("not a log")
    else:
        Path(urlparse(foreign_iceberg(spec, at).metadata_location).path).write_text("not metadata")
    with pytest.raises(UnreadableTableError, match=rf"metadata of {spec.id} cannot be read: .+lakebound doctor"):
        read_table_facts(spec, at, NOW_MS)


def test_metadata_that_went_meanwhile_is_looked_for_again(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders")
    app = landed(spec, at, 1)
    places = [str(foreign_iceberg(spec, at).metadata_location).replace(".metadata", ".gone")]
    real = iceberg_health.metadata_location
    monkeypatch.setattr(iceberg_health, "metadata_location", lambda *to: places.pop() if places else real(*to))
    assert read(spec, at).version == app.view.version
    monkeypatch.setattr(iceberg_health, "metadata_location", lambda *_: "file:///nowhere/v1.metadata.json")
    with pytest.raises(UnreadableTableError, match=r"/nowhere/v1.metadata.json is not there"):
        read_table_facts(spec, at, NOW_MS)
