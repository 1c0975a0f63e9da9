"""Tables of small files in each catalog, what compacts them without Spark, and what plain PyIceberg says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table import update as pyiceberg_update
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.update import UpgradeFormatVersionUpdate
from pyiceberg.typedef import IcebergBaseModel

from lakebound.control.folder import ControlFolder
from lakebound.errors import CatalogUnavailableError
from lakebound.ledger.entry import ENTRY_KEY, carried, encode
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.steps import Compact, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.append import SnapshotWriter, commit_snapshot
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.health import read_facts
from lakebound.tables.iceberg.merging import EncodedEntries
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import open_table
from tests.support.catalogs.installations import Installation
from tests.support.tables.local_tables import PIPELINE, Lander, lander, make_table

TABLE = "shop.orders"
BATCHES = 8
KINDS = ["postgresql on s3", "rest"]
"""Both catalogs, a bucket and a disk; the first test has each with each."""
IN_EACH = pytest.mark.parametrize("installation", KINDS, indirect=True)


@pytest.fixture(name="spec")
def spec_fixture() -> TableSpec:
    """A table without partitions."""
    return TableSpec(format="iceberg", name=TABLE)


@pytest.fixture(name="by_city")
def by_city_fixture() -> TableSpec:
    """The same, of three partitions."""
    return TableSpec(format="iceberg", name=TABLE, partition_by=("city",))


@pytest.fixture(name="app")
def app_fixture(installation: Installation, spec: TableSpec) -> Lander:
    """An application that has landed eight batches."""
    return landed(spec, installation)


def landed(spec: TableSpec, installation: Installation) -> Lander:
    """Return an application that has landed eight batches of three rows, one of each city."""
    make_table(spec, installation.at)
    opened = lander(spec, installation.at)
    for number in range(BATCHES):
        opened.land(3 * number, 3 * number + 3)
    return opened


@pytest.fixture(name="rewriter")
def rewriter_fixture(installation: Installation) -> FileRewriter:
    return FileRewriter(installation.at, ControlFolder(installation.at.home, PIPELINE))


def compaction(spec: TableSpec, **changes: Any) -> Compact:
    return Compact.model_validate(
        {"table": spec.id, "reason": "a test", "below_bytes": 1 << 30, "target_file_bytes": 1 << 27, **changes}
    )


def compact(rewriter: FileRewriter, spec: TableSpec, installation: Installation, **changes: Any) -> StepEffect:
    """Compact each partition, as a plan does."""
    facts = read_facts(spec, installation.at, 0)
    assert facts is not None
    done = StepEffect()
    for partition in facts.partitions:
        done = done.plus(rewriter.compact(spec, compaction(spec, partition=partition.values, **changes)))
    return done


def before_first_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen after the files were rewritten, before they are committed for the first time."""

    def late(self: IcebergTable, *arguments: Any) -> str:
        monkeypatch.setattr(IcebergTable, "replace_files", replace)
        act()
        return replace(self, *arguments)

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", late)


def unheard_first_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have the first commit succeed, something happen after it, and the catalog's answer get lost."""

    def unheard(self: IcebergTable, *arguments: Any) -> str:
        monkeypatch.setattr(IcebergTable, "replace_files", replace)
        replace(self, *arguments)
        act()
        raise CatalogUnavailableError("http://catalog", "no answer")

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", unheard)


def plain(installation: Installation) -> Table:
    return installation.plain().load_table(TABLE)


def content(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def data_files(table: Table) -> dict[str, list[str]]:
    """Return the paths of the live files, by their partition."""
    found: dict[str, list[str]] = {}
    for task in table.scan().plan_files():
        found.setdefault(str(list(task.file.partition._data)), []).append(task.file.file_path)
    return found


def counts(table: Table) -> tuple[int, int, int]:
    """Return rows, files and bytes, counted in the files that the manifests name."""
    files = [task.file for task in table.scan().plan_files()]
    return sum(one.record_count for one in files), len(files), sum(one.file_size_in_bytes for one in files)


def said(table: Table) -> tuple[int, int, int]:
    """Return rows, files and bytes as the summary of the newest snapshot says."""
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    return tuple(int(summary[f"total-{name}"]) for name in ("records", "data-files", "files-size"))  # type: ignore[index,return-value]


def entries(table: Table, status: int | None = None) -> dict[str, dict[str, Any]]:
    """Return what the current snapshot says of each file that is live, or whose entry has a status, by its path."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = {}
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if entry.status != ManifestEntryStatus.DELETED if status is None else entry.status == status:
                numbers = {"snapshot": entry.snapshot_id, "of": (entry.sequence_number, entry.file_sequence_number)}
                found[entry.data_file.file_path] = {**numbers, "file": list(entry.data_file._data)}
    return found


def left_over(installation: Installation, spec: TableSpec) -> set[str]:
    """Return the names of compacted files, manifests and their lists in the table's folder that no snapshot names."""
    table, named = plain(installation), set()
    for snapshot in table.snapshots():
        named.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            named.add(manifest.manifest_path)
            held = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            named |= {entry.data_file.file_path for entry in held}
    names = {path.rpartition("/")[2] for path in named}
    found = {file.name for file, _ in installation.at.file_at(table.location()).list()}
    return {name for name in found - names if name.startswith("compacted") or name.endswith(".avro")}


def become_another(installation: Installation, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a table so that files which were written before do not fit it."""
    if change == "partitioning":
        with plain(installation).update_spec() as specs:
            specs.add_identity("city")
    else:
        # PyIceberg 0.12 reads version 3. Here it also upgrades to it, and catalogs tell of it.
        monkeypatch.setattr(pyiceberg_update, "SUPPORTED_TABLE_FORMAT_VERSION", 3)
        monkeypatch.setattr(TableMetadataV3, "model_dump_json", IcebergBaseModel.model_dump_json)
        table, upgrade = plain(installation), UpgradeFormatVersionUpdate.model_validate({"format-version": 3})
        table.catalog.commit_table(table, (), (upgrade,))
        assert plain(installation).format_version == 3


def add_delete_file(installation: Installation, app: Lander, spec: TableSpec) -> None:
    """Commit a file of position deletes, as another engine does that merges on read. No reader opens it here."""
    add(installation, app, spec, writer=_Deleting)


def add(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    *,
    of_city: str = "",
    writer: type[SnapshotWriter] = SnapshotWriter,
) -> None:
    """Commit a file as another engine may: a delete file, or one whose partition it tells wrongly."""
    handle = open_catalog(installation.at).load_table(("shop", "orders"))
    files = describe(app.write(900, 901), handle.metadata, spec.id)
    for file in files:
        if of_city:
            file.partition[0] = of_city
        else:
            file._data[0] = DataFileContent.POSITION_DELETES
    writing = writer(handle, handle.current_snapshot(), EncodedEntries())
    entry = open_table(spec, installation.at).read_ledger().entry
    assert entry is not None
    snapshot = writing.snapshot(files, {ENTRY_KEY: encode(carried(entry))})
    writing.put_drafts()
    commit_snapshot(handle, snapshot, writing.written)


class _Deleting(SnapshotWriter):
    def _added(self, files: Sequence[DataFile]) -> list[ManifestFile]:
        (manifest,) = super()._added(files)
        manifest._data[3] = ManifestContent.DELETES
        return [manifest]
