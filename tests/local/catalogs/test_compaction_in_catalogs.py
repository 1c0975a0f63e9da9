"""Small files become large ones in each catalog, without Spark; plain PyIceberg says what the table holds afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import StringType
from tests.support.catalogs.compacting import (  # noqa: F401
    BATCHES,
    IN_EACH,
    TABLE,
    add,
    add_delete_file,
    app_fixture,
    by_city_fixture,
    compact,
    compaction,
    content,
    counts,
    data_files,
    entries,
    landed,
    left_over,
    plain,
    rewriter_fixture,
    said,
    spec_fixture,
)
from tests.support.catalogs.installations import Installation
from tests.support.streams.long_form import each_value_once
from tests.support.tables.local_tables import PIPELINE, SCHEMA, Lander, landed_offsets, lander, make_table, rows

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.ledger.entry import ENTRY_KEY
from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.operations.maintenance.iceberg import groups
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.steps import ExpireSnapshots
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg import live_files
from lakebound.tables.iceberg.health import read_facts
from lakebound.tables.iceberg.rows import NotRewritableError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import open_table

pytestmark = each_value_once


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
def test_columns_are_told_by_their_ids(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, whose: str
) -> None:
    table = plain(installation)
    if "renamed" in whose:
        with table.update_schema() as change:
            change.rename_column("city", "town")
    else:
        table.append(table.scan().to_arrow())
    held, files = content(plain(installation)), data_files(plain(installation))
    assert rewriter.compact(spec, compaction(spec)).commits
    assert content(plain(installation)) == held and len(data_files(plain(installation))) <= len(files)
    assert data_files(plain(installation)) != files


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
