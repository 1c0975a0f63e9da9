"""Small files become large ones in each catalog, without Spark; plain PyIceberg says what the table holds afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table import update as pyiceberg_update
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import UpgradeFormatVersionUpdate
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.types import StringType
from tests.support.catalogs.installations import Installation
from tests.support.catalogs.rest_server import Fault
from tests.support.tables.local_tables import PIPELINE, SCHEMA, Lander, landed_offsets, lander, make_table, rows

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.errors import CatalogUnavailableError
from lakebound.ledger.entry import ENTRY_KEY, carried, encode
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError
from lakebound.operations.maintenance.iceberg import groups, replacement, rewrite
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.iceberg.rows import NotRewritableError
from lakebound.operations.maintenance.steps import Compact, ExpireSnapshots, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg import live_files
from lakebound.tables.iceberg.append import SnapshotWriter, commit_snapshot
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.health import read_facts
from lakebound.tables.iceberg.merging import EncodedEntries
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import open_table

TABLE = "shop.orders"
BATCHES = 8
KINDS = ["postgresql on s3", "rest"]
"""Both catalogs, a bucket and a disk; the first test has each with each."""
IN_EACH = pytest.mark.parametrize("installation", KINDS, indirect=True)


@pytest.fixture
def spec() -> TableSpec:
    """A table without partitions."""
    return TableSpec(format="iceberg", name=TABLE)


@pytest.fixture
def by_city() -> TableSpec:
    """The same, of three partitions."""
    return TableSpec(format="iceberg", name=TABLE, partition_by=("city",))


@pytest.fixture
def app(installation: Installation, spec: TableSpec) -> Lander:
    """An application that has landed eight batches."""
    return landed(spec, installation)


def landed(spec: TableSpec, installation: Installation) -> Lander:
    """Return an application that has landed eight batches of three rows, one of each city."""
    make_table(spec, installation.at)
    opened = lander(spec, installation.at)
    for number in range(BATCHES):
        opened.land(3 * number, 3 * number + 3)
    return opened


@pytest.fixture
def rewriter(installation: Installation) -> FileRewriter:
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
    found = {file.name for file, _ in open_table(spec, installation.at).layout().folder.parent.list()}
    return {name for name in found - names if name.startswith("compacted") or name.endswith(".avro")}


def test_small_files_become_one_with_the_same_rows_and_the_stream_goes_on(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    before = plain(installation)
    held, entry = content(before), open_table(spec, installation.at).read_ledger().entry
    done = rewriter.compact(spec, compaction(spec))
    assert (done.files_before, done.files_after, done.commits, done.conflicts) == (BATCHES, 1, 1, 0)
    after = plain(installation)
    assert content(after) == held
    assert [len(paths) for paths in data_files(after).values()] == [1]
    newest = after.current_snapshot()
    assert newest is not None and newest.summary is not None and newest.summary.operation == Operation.REPLACE
    assert newest.summary[ENTRY_KEY] and said(after) == counts(after)
    carried = open_table(spec, installation.at).read_ledger().entry
    assert carried is not None and entry is not None and carried.coverage == entry.coverage
    assert content(before) == held, "an earlier snapshot is read as before"

    app.view = app.table.read_ledger()
    app.land(3 * BATCHES, 3 * BATCHES + 3)
    assert landed_offsets(open_table(spec, installation.at)) == list(range(3 * BATCHES + 3))
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 3))
    assert said(plain(installation)) == counts(plain(installation))
    assert rewriter.compact(spec, compaction(spec)).files_before == 2, "the new file and the large one"


@IN_EACH
def test_a_stale_handle_of_the_stream_finds_the_compaction_and_lands_once(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    rewriter.compact(spec, compaction(spec))
    app.land(3 * BATCHES, 3 * BATCHES + 3)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 3))


@IN_EACH
def test_each_partition_becomes_one_file_and_small_files_alone_are_taken(
    installation: Installation, by_city: TableSpec, rewriter: FileRewriter
) -> None:
    landed(by_city, installation)
    done = rewriter.compact(by_city, compaction(by_city, partition={"city": "city 1"}))
    assert (done.files_before, done.files_after) == (BATCHES, 1)
    found = {city: len(paths) for city, paths in data_files(plain(installation)).items()}
    assert found == {"['city 0']": BATCHES, "['city 1']": 1, "['city 2']": BATCHES}
    assert rewriter.compact(by_city, compaction(by_city, partition={"city": "city 0"}, below_bytes=1)).is_nothing
    for another in ({"city": "nowhere"}, {}):
        assert rewriter.compact(by_city, compaction(by_city, partition=another)).is_nothing
    compact(rewriter, by_city, installation)
    assert [len(paths) for paths in data_files(plain(installation)).values()] == [1, 1, 1]
    assert said(plain(installation)) == counts(plain(installation))
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@IN_EACH
def test_what_is_large_takes_several_files_and_commits(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "FILES_PER_COMMIT", 2)
    size = max(task.file.file_size_in_bytes for task in plain(installation).scan().plan_files())
    done = rewriter.compact(spec, compaction(spec, target_file_bytes=2 * size + 100))
    assert (done.files_before, done.files_after, done.commits) == (BATCHES, 4, 2)
    assert said(plain(installation)) == counts(plain(installation))
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@IN_EACH
def test_rows_are_sorted_where_the_step_says_so(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    app.land(3 * BATCHES + 3, 3 * BATCHES + 6)
    app.land(3 * BATCHES, 3 * BATCHES + 3)
    rewriter.compact(spec, compaction(spec, order_by=("city", "_kafka.offset")))
    ids = plain(installation).scan().to_arrow()["id"].to_pylist()
    assert ids == [number for city in range(3) for number in range(city, 3 * BATCHES + 6, 3)]


@pytest.mark.parametrize("partition_by", [(), ("hour(at)",), ("truncate(5, city)", "month(at)")])
@IN_EACH
def test_a_column_that_was_added_meanwhile_is_null_in_old_rows(
    installation: Installation, rewriter: FileRewriter, partition_by: tuple[str, ...]
) -> None:
    spec = TableSpec(format="iceberg", name=TABLE, partition_by=partition_by)
    make_table(spec, installation.at)
    app = lander(spec, installation.at)
    for number in range(4):
        app.land(2 * number, 2 * number + 2)
    with plain(installation).update_schema() as change:
        change.add_column("note", StringType())
    held, files = content(plain(installation)), data_files(plain(installation))
    done = compact(rewriter, spec, installation)
    assert content(plain(installation)) == held and {row["note"] for row in held} == {None}
    assert done.files_before == sum(len(paths) for paths in files.values() if len(paths) > 1)
    assert said(plain(installation)) == counts(plain(installation))


@IN_EACH
def test_a_commit_of_the_stream_meanwhile_is_not_stepped_over(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meanwhile = iter([3 * BATCHES, 3 * BATCHES + 3])

    def late(self: IcebergTable, *arguments: Any) -> str:
        start = next(meanwhile, None)
        if start is not None:
            app.land(start, start + 3)
        return replace(self, *arguments)

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", late)
    done = rewriter.compact(spec, compaction(spec))
    assert (done.files_before, done.files_after, done.commits, done.conflicts) == (BATCHES, 1, 1, 2)
    assert left_over(installation, spec) == set(), "of the attempts that were refused"
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 6))
    assert said(plain(installation)) == counts(plain(installation))
    app.land(3 * BATCHES + 6, 3 * BATCHES + 9)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 9))


@IN_EACH
def test_of_two_compactions_at_once_one_is_lost_and_leaves_no_file(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_first_commit(monkeypatch, lambda: rewriter.compact(spec, compaction(spec)))
    with pytest.raises(StepLostError, match="removed by somebody else"):
        rewriter.compact(spec, compaction(spec))
    assert left_over(installation, spec) == set()
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@IN_EACH
def test_a_rewind_meanwhile_is_left_as_it_is(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = list(app.table.versions())[3].version

    entry = app.view.entry
    assert entry is not None
    back = entry.model_copy(update={"kind": "open"})
    before_first_commit(monkeypatch, lambda: open_table(spec, installation.at).restore(version, back))
    with pytest.raises(StepLostError, match="3 of the rewritten files were removed"):
        rewriter.compact(spec, compaction(spec))
    assert installation.offsets(TABLE) == list(range(3 * (BATCHES - 3)))


@pytest.mark.parametrize("status", [0, 409, 500, 503, 504])
@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize("installation", ["rest"], indirect=True)
def test_a_commit_without_a_right_answer_replaces_once(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, status: int, takes_effect: bool
) -> None:
    assert installation.rest is not None
    installation.rest.faults.append(Fault("POST", "/tables/orders", status, takes_effect))
    done = rewriter.compact(spec, compaction(spec))
    assert not installation.rest.faults and (done.files_before, done.commits) == (BATCHES, 1)
    assert left_over(installation, spec) == set()
    assert [len(paths) for paths in data_files(plain(installation)).values()] == [1]
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))
    app.land(3 * BATCHES, 3 * BATCHES + 3)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 3))


@IN_EACH
def test_a_catalog_that_is_away_loses_nothing(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacement, "_UNKNOWN_OUTCOMES", 1)

    def away(self: IcebergTable, *arguments: Any) -> str:
        with installation.away():
            return replace(self, *arguments)

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", away)
    with pytest.raises(CatalogUnavailableError):
        rewriter.compact(spec, compaction(spec))
    monkeypatch.undo()
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))
    assert lander(spec, installation.at).table.read_ledger().entry is not None


@IN_EACH
def test_expiry_then_deletes_the_small_files(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    small = [path for paths in data_files(plain(installation)).values() for path in paths]
    rewriter.compact(spec, compaction(spec))
    # What counts stays with its files: the newest entry that is no copy.
    app.land(3 * BATCHES, 3 * BATCHES + 3)
    old = [one.snapshot_id for one in plain(installation).snapshots()][:-1]
    step = ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=tuple(old))
    expire(spec, step, installation.at, AskForTurn(ControlFolder(installation.at.home, PIPELINE), spec.id))
    assert not any(installation.at.file_at(path).exists() for path in small)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 3))
    app.land(3 * BATCHES + 3, 3 * BATCHES + 6)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 6))


@IN_EACH
def test_a_stream_that_commits_without_a_pause_lets_it_through(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    stop, ended = threading.Event(), []

    def stream() -> None:
        at = 3 * BATCHES
        while not stop.is_set():
            app.land(at, at + 3)
            at += 3
            stop.wait(0.3)
        ended.append(at)

    app.attempts = 20
    thread = threading.Thread(target=stream)
    thread.start()
    try:
        done = rewriter.compact(spec, compaction(spec))
    finally:
        stop.set()
        thread.join()
    assert done.commits >= 1
    assert installation.offsets(TABLE) == list(range(ended[0]))


@pytest.mark.parametrize("whose", ["a column of it was renamed", "another engine has written"])
@IN_EACH
def test_what_a_name_does_not_tell_is_left_to_others(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, whose: str
) -> None:
    table = plain(installation)
    if "renamed" in whose:
        with table.update_schema() as change:
            change.rename_column("city", "town")
    else:
        table.append(table.scan().to_arrow())
    held, files = content(plain(installation)), data_files(plain(installation))
    with pytest.raises(NotRewritableError, match=whose):
        rewriter.compact(spec, compaction(spec))
    assert content(plain(installation)) == held and data_files(plain(installation)) == files


NULLS = [None, [], [{"sku": None, "quantity": None}], [{"sku": "a", "quantity": 1}], [None]]


@IN_EACH
def test_a_null_stays_a_null_wherever_it_is(installation: Installation, spec: TableSpec, rewriter: FileRewriter) -> None:
    make_table(spec, installation.at)
    app = lander(spec, installation.at)
    for start in (0, 5):
        given = rows(start, start + 5).set_column(3, SCHEMA.field("items"), pa.array(NULLS, SCHEMA.field("items").type))
        app.land(start, start + 5, write_data_files(given, app.table.layout(), "batch"))
    rewriter.compact(spec, compaction(spec))
    ((path,),) = data_files(plain(installation)).values()
    # Not by PyIceberg, which makes an empty list of one that is null (0.12).
    found = pq.read_table(pa.BufferReader(installation.at.file_at(path).read()))
    assert found["items"].to_pylist() == NULLS * 2


@pytest.mark.parametrize("meanwhile", ["delete files", "format version 3", "removed again"])
@IN_EACH
def test_files_that_an_unheard_commit_named_are_never_deleted(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: str,
) -> None:
    def unheard(self: IcebergTable, *arguments: Any) -> str:
        monkeypatch.setattr(IcebergTable, "replace_files", replace)
        replace(self, *arguments)
        if meanwhile == "delete files":
            add_delete_file(installation, app, spec)
        elif meanwhile == "format version 3":
            become_another(installation, meanwhile, monkeypatch)
        else:
            with plain(installation).transaction() as change:
                change.delete("id >= 0")
        raise CatalogUnavailableError("http://catalog", "no answer")

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", unheard)
    with suppress(Exception):  # of the table that was emptied, the ledger is in doubt
        rewriter.compact(spec, compaction(spec))
    named = {
        entry.data_file.file_path
        for snapshot in plain(installation).snapshots()
        for manifest in snapshot.manifests(plain(installation).io)
        for entry in manifest.fetch_manifest_entry(plain(installation).io, discard_deleted=True)
    }
    assert any("compacted" in path for path in named)
    assert all(installation.at.file_at(path).exists() for path in named)


@IN_EACH
def test_a_file_that_the_table_names_and_that_is_missing_is_said(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    ((path, *_),) = data_files(plain(installation)).values()
    installation.at.file_at(path).delete()
    with pytest.raises(NotRewritableError, match="is missing"):
        rewriter.compact(spec, compaction(spec))


@IN_EACH
def test_an_upload_that_fails_is_said_and_leaves_no_file(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(files: Any) -> None:
        raise OSError("the bucket is full")

    monkeypatch.setattr(rewrite, "wait_stored", refused)
    with pytest.raises(OSError, match="the bucket is full"):
        rewriter.compact(spec, compaction(spec))
    assert left_over(installation, spec) == set()
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@IN_EACH
def test_manifests_that_cannot_be_stored_are_said_and_leave_no_file(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(self: SnapshotWriter) -> None:
        put_drafts(self)
        raise OSError("the bucket is full")

    put_drafts = SnapshotWriter.put_drafts
    monkeypatch.setattr(SnapshotWriter, "put_drafts", put)
    with pytest.raises(OSError, match="the bucket is full"):
        rewriter.compact(spec, compaction(spec))
    assert left_over(installation, spec) == set()
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@pytest.mark.parametrize("installation", ["rest", "rest on s3"], indirect=True)
def test_an_unheard_commit_whose_snapshot_has_expired_keeps_its_files(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog answers nothing any more to the rewriter; the stream has committed on top, and the snapshot expires."""
    is_first = iter([True])

    def unheard(self: IcebergTable, *arguments: Any) -> str:
        if next(is_first, False):
            own = int(replace(self, *arguments))
            app.land(3 * BATCHES, 3 * BATCHES + 3)
            assert installation.rest is not None
            installation.rest.expire(("shop", "orders"), {own})
        raise CatalogUnavailableError("http://catalog", "no answer")

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", unheard)
    with pytest.raises(CatalogUnavailableError):
        rewriter.compact(spec, compaction(spec))
    assert any("compacted" in path for paths in data_files(plain(installation)).values() for path in paths)
    assert installation.offsets(TABLE) == list(range(3 * BATCHES + 3))


@IN_EACH
def test_a_failure_after_the_first_of_several_commits_fails_the_step(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(groups, "FILES_PER_COMMIT", 1)
    size = max(task.file.file_size_in_bytes for task in plain(installation).scan().plan_files())
    stored = iter([rewrite.wait_stored])

    def failing(files: Any) -> None:
        found = next(stored, None)
        if found is None:
            raise RuntimeError("a bug")
        found(files)

    monkeypatch.setattr(rewrite, "wait_stored", failing)
    done = rewriter.compact(spec, compaction(spec, target_file_bytes=2 * size + 100))
    assert done.commits == 1 and "RuntimeError" in done.problem and "a bug" in caplog.text
    assert left_over(installation, spec) == set()
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


@IN_EACH
def test_manifests_are_read_once_for_all_commits_of_a_step(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "FILES_PER_COMMIT", 1)
    size = max(task.file.file_size_in_bytes for task in plain(installation).scan().plan_files())
    read: list[str] = []

    def counted(writer: Any, manifest: ManifestFile, files: Any) -> Any:
        read.append(manifest.manifest_path)
        return read_existing(writer, manifest, files)

    read_existing = live_files.read_existing
    monkeypatch.setattr(live_files, "read_existing", counted)
    before = {one.manifest_path for one in plain(installation).current_snapshot().manifests(plain(installation).io)}  # type: ignore[union-attr]
    done = rewriter.compact(spec, compaction(spec, target_file_bytes=2 * size + 100))
    assert done.commits == 4 and len(read) == len(set(read)) and set(read) <= before


@IN_EACH
def test_what_goes_is_told_as_gone_in_the_snapshot_that_replaced_it(
    installation: Installation, by_city: TableSpec, rewriter: FileRewriter
) -> None:
    landed(by_city, installation)
    before = entries(plain(installation))
    rewriter.compact(by_city, compaction(by_city, partition={"city": "city 1"}))
    after, snapshot = entries(plain(installation)), plain(installation).current_snapshot()
    assert snapshot is not None
    gone = {path: told for path, told in before.items() if path not in after}
    assert len(gone) == BATCHES and all(told == before[path] for path, told in after.items() if path in before)
    deleted = entries(plain(installation), ManifestEntryStatus.DELETED)
    assert deleted == {path: {**told, "snapshot": snapshot.snapshot_id} for path, told in gone.items()}


@IN_EACH
def test_a_file_whose_rows_are_of_another_partition_is_left_to_others(
    installation: Installation, by_city: TableSpec, rewriter: FileRewriter
) -> None:
    app = landed(by_city, installation)
    add(installation, app, by_city, of_city="city 1")
    held = content(plain(installation))
    with pytest.raises(NotRewritableError, match="in city, rows have values that do not belong to their partition"):
        rewriter.compact(by_city, compaction(by_city, partition={"city": "city 1"}))
    assert content(plain(installation)) == held and left_over(installation, by_city) == set()


@IN_EACH
def test_files_of_an_older_partitioning_are_known(installation: Installation, app: Lander, spec: TableSpec) -> None:
    with plain(installation).update_spec() as change:
        change.add_identity("city")
    facts = read_facts(spec, installation.at, 0)
    assert facts is not None and [file.is_of_older_spec for one in facts.partitions for file in one.files] == [True] * BATCHES
    other = lander(spec, installation.at)
    other.land(3 * BATCHES, 3 * BATCHES + 3)
    facts = read_facts(spec, installation.at, 0)
    assert facts is not None
    found = {one.name: {file.is_of_older_spec for file in one.files} for one in facts.partitions}
    assert found == {"": {True}, **{f"city=city {number}": {False} for number in range(3)}}


@IN_EACH
def test_a_table_that_is_not_there_is_gone(installation: Installation, spec: TableSpec, rewriter: FileRewriter) -> None:
    make_table(TableSpec(format="iceberg", name="shop.others"), installation.at)
    with pytest.raises(TableGoneError):
        rewriter.compact(spec, compaction(spec))


@IN_EACH
def test_a_table_with_delete_files_is_left_to_others(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter
) -> None:
    files = data_files(plain(installation))
    add_delete_file(installation, app, spec)
    with pytest.raises(NotRewritableError, match="it has delete files"):
        rewriter.compact(spec, compaction(spec))
    assert [len(paths) for paths in files.values()] == [BATCHES]


@IN_EACH
def test_delete_files_that_come_meanwhile_keep_their_data_files(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_first_commit(monkeypatch, lambda: add_delete_file(installation, app, spec))
    before = plain(installation).current_snapshot()
    with pytest.raises(StepLostError, match="delete files meanwhile"):
        rewriter.compact(spec, compaction(spec))
    newest = plain(installation).current_snapshot()
    assert newest is not None and before is not None and newest.parent_snapshot_id == before.snapshot_id


CHANGES = pytest.mark.parametrize(
    ("change", "reason"),
    [("format version 3", "it has format version 3 now"), ("partitioning", "its partitioning was changed meanwhile")],
)


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


@CHANGES
@IN_EACH
def test_a_table_that_becomes_another_one_meanwhile_keeps_its_files(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    reason: str,
) -> None:
    def late(files: Any) -> None:
        wait_stored(files)
        become_another(installation, change, monkeypatch)

    wait_stored = rewrite.wait_stored
    monkeypatch.setattr(rewrite, "wait_stored", late)
    files = data_files(plain(installation))
    with pytest.raises(StepLostError, match=reason):
        rewriter.compact(spec, compaction(spec))
    assert data_files(plain(installation)) == files and left_over(installation, spec) == set()


@CHANGES
@IN_EACH
def test_an_unheard_commit_is_found_in_a_table_that_became_another_one(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    reason: str,
) -> None:
    def unheard(self: IcebergTable, *arguments: Any) -> str:
        monkeypatch.setattr(IcebergTable, "replace_files", replace)
        replace(self, *arguments)
        become_another(installation, change, monkeypatch)
        raise CatalogUnavailableError("http://catalog", "no answer")

    replace: Callable[..., str] = IcebergTable.replace_files
    monkeypatch.setattr(IcebergTable, "replace_files", unheard)
    done = rewriter.compact(spec, compaction(spec))
    assert (done.files_before, done.files_after, done.commits, done.problem) == (BATCHES, 1, 1, "")
    assert [len(paths) for paths in data_files(plain(installation)).values()] == [1], reason
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))


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
