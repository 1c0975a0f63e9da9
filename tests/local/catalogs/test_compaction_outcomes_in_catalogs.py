"""Whatever happens while a catalog replaces files: rows are there once, and files stay where a snapshot may name them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.support.catalogs.compacting import (  # noqa: F401
    BATCHES,
    IN_EACH,
    TABLE,
    add_delete_file,
    app_fixture,
    become_another,
    before_first_commit,
    compact,
    compaction,
    data_files,
    left_over,
    plain,
    rewriter_fixture,
    spec_fixture,
    unheard_first_commit,
)
from tests.support.catalogs.installations import Installation
from tests.support.catalogs.rest_server import Fault
from tests.support.streams.long_form import each_value_once
from tests.support.tables.local_tables import Lander, lander

from lakebound.errors import CatalogUnavailableError, LakeboundError, TableFeatureError
from lakebound.operations.maintenance.engines import StepLostError
from lakebound.operations.maintenance.iceberg import groups, replacement, rewrite
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.append import SnapshotWriter
from lakebound.tables.iceberg.rows import NotRewritableError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import open_table

pytestmark = each_value_once

CHANGES = pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ("format version 3", TableFeatureError, "uses format version 3, which Lakebound does not write"),
        ("partitioning", StepLostError, "its partitioning was changed meanwhile"),
    ],
)


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
    version = list(app.table.history().versions())[3].version

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
    def change_it() -> None:
        if meanwhile == "delete files":
            add_delete_file(installation, app, spec)
        elif meanwhile == "format version 3":
            become_another(installation, meanwhile, monkeypatch)
        else:
            with plain(installation).transaction() as change:
                change.delete("id >= 0")

    unheard_first_commit(monkeypatch, change_it)
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
def test_delete_files_that_come_meanwhile_keep_their_data_files(
    installation: Installation, app: Lander, spec: TableSpec, rewriter: FileRewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_first_commit(monkeypatch, lambda: add_delete_file(installation, app, spec))
    before = plain(installation).current_snapshot()
    with pytest.raises(StepLostError, match="delete files meanwhile"):
        rewriter.compact(spec, compaction(spec))
    newest = plain(installation).current_snapshot()
    assert newest is not None and before is not None and newest.parent_snapshot_id == before.snapshot_id


@CHANGES
@IN_EACH
def test_a_table_that_becomes_another_one_meanwhile_keeps_its_files(
    installation: Installation,
    app: Lander,
    spec: TableSpec,
    rewriter: FileRewriter,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    error: type[LakeboundError],
    reason: str,
) -> None:
    def late(files: Any) -> None:
        wait_stored(files)
        become_another(installation, change, monkeypatch)

    wait_stored = rewrite.wait_stored
    monkeypatch.setattr(rewrite, "wait_stored", late)
    files = data_files(plain(installation))
    with pytest.raises(error, match=reason):
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
    error: type[LakeboundError],
    reason: str,
) -> None:
    unheard_first_commit(monkeypatch, lambda: become_another(installation, change, monkeypatch))
    if error is TableFeatureError:
        with pytest.raises(error, match=reason):
            rewriter.compact(spec, compaction(spec))
    else:
        done = rewriter.compact(spec, compaction(spec))
        assert (done.files_before, done.files_after, done.commits, done.problem) == (BATCHES, 1, 1, "")
    assert [len(paths) for paths in data_files(plain(installation)).values()] == [1], reason
    assert installation.offsets(TABLE) == list(range(3 * BATCHES))
