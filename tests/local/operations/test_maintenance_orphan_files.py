"""Orphans of real tables: found, moved aside, brought back, deleted at last; and never a file that a version needs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import genesis, lander, offsets
from tests.support.tables.maintained import compaction, content, rewrite_iceberg, small_commits

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.delta.needed_names import UnknownCheckpointError
from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.operations.maintenance.iceberg.reach import ManifestUnreadableError
from lakebound.operations.maintenance.orphan_files import (
    LinkedQuarantineError,
    list_files,
    put_back,
    remove_orphans,
)
from lakebound.operations.maintenance.orphans import QUARANTINE
from lakebound.operations.maintenance.steps import RemoveOrphans, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.local_files import local_path
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

DAY_MS = 86_400_000
NOW_MS = int(time.time() * 1000)


def look(
    spec: TableSpec, at: Places, *, mode: str = "quarantine", run_id: str = "run-1", days: float = 3, deleted_before_ms: int = 0
) -> StepEffect:
    step = RemoveOrphans.model_validate(
        {
            "table": spec.id,
            "reason": "a test",
            "mode": mode,
            "older_than_ms": int(NOW_MS - days * DAY_MS),
            "delete_quarantined_before_ms": deleted_before_ms,
        }
    )
    return remove_orphans(spec, step, at, run_id, NOW_MS + DAY_MS)


def table_folder(spec: TableSpec, at: Places) -> Path:
    iceberg = at.iceberg_folder / spec.namespace / spec.short_name
    return (at.folder(spec) if spec.format == "delta" else iceberg).path


def age(root: Path, days: float) -> None:
    for path in all_files(root):
        os.utime(path, (time.time() - days * 86_400,) * 2)


def all_files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


def lost_batch(spec: TableSpec, at: Places) -> str:
    """Write what the driver lane writes, and never commit it: its path in the table's folder."""
    root = table_folder(spec, at)
    (written,) = lander(spec, at).write(500, 501)
    folder = written.path.path.parent / "lb-lost"
    folder.mkdir()
    os.rename(written.path.path, folder / "part-0.parquet")
    return (folder / "part-0.parquet").relative_to(root).as_posix()


def make_history(spec: TableSpec, at: Places) -> None:
    """Commits, a compaction, a rewind, and a log checkpoint: every way by which a version may need a file."""
    app = small_commits(spec, at, 8)
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
        DeltaTable(str(at.delta_path(spec))).create_checkpoint()
    else:
        rewrite_iceberg(spec, at)
    back = next(one for one in app.table.history().versions() if one.entry is not None and one.entry.coverage == offsets(0, 5))
    open_table(spec, at).restore(back.version, genesis(2).model_copy(update={"kind": "reset", "coverage": offsets(0, 5)}))
    lander(spec, at, epoch=2).land(5, 9)


def test_nothing_that_any_version_needs_is_an_orphan(spec: TableSpec, at: Places) -> None:
    make_history(spec, at)
    root = table_folder(spec, at)
    age(root, 30)
    strays = {path for path in look(spec, at, mode="dry_run").removed if not path.endswith(".metadata.json")}
    assert strays == set()
    look(spec, at)
    for version in open_table(spec, at).history().versions():
        assert open_table(spec, at).look_back(version.version).missing_files == ()


def test_a_lost_batch_is_found_moved_brought_back_and_deleted_at_last(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 3)
    root, lost = table_folder(spec, at), lost_batch(spec, at)
    assert look(spec, at).is_nothing, "it is too young"
    age(root, 4)
    before = content(spec, at)
    told = look(spec, at, mode="dry_run")
    assert told.removed == (lost,) and "nothing was moved" in told.note and (root / lost).exists()
    assert look(spec, at).removed == (lost,)
    moved = root / QUARANTINE / "run-1" / lost
    assert moved.exists() and not (root / lost).parent.exists()
    assert look(spec, at, run_id="run-2").is_nothing, "what was moved is not looked at again"
    assert put_back(root, "run-1") == 1 and (root / lost).exists() and not (root / QUARANTINE / "run-1").exists()
    look(spec, at, run_id="run-3")
    assert look(spec, at, run_id="run-4", deleted_before_ms=NOW_MS - DAY_MS).is_nothing
    done = look(spec, at, run_id="run-5", deleted_before_ms=NOW_MS + DAY_MS)
    assert done.bytes_removed > 0 and "deleted 1 moved earlier" in done.note
    assert not list(all_files(root / QUARANTINE)) and content(spec, at) == before


def test_what_a_running_writer_may_have_staged_stays(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 2)
    lost_batch(spec, at)
    age(table_folder(spec, at), 4)
    step = RemoveOrphans(
        table=spec.id,
        reason="a test",
        mode="quarantine",
        older_than_ms=NOW_MS - 3 * DAY_MS,
        delete_quarantined_before_ms=0,
    )
    assert remove_orphans(spec, step, at, "run", NOW_MS - 5 * DAY_MS).is_nothing
    assert not remove_orphans(spec, step, at, "run", NOW_MS).is_nothing


def test_a_move_that_was_cut_short_can_be_undone(spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    small_commits(spec, at, 2)
    root = table_folder(spec, at)
    lost = [lost_batch(spec, at)]
    second = root / Path(lost[0]).with_name("part-1.parquet")
    second.write_bytes(b"x")
    age(root, 4)
    before = {path.relative_to(root) for path in all_files(root)}
    moved = []

    def killed(source: Path, target: Path) -> None:
        if moved:
            raise KeyboardInterrupt
        moved.append(source)
        os.replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("lakebound.operations.maintenance.orphan_files.os.rename", killed)
        with pytest.raises(KeyboardInterrupt):
            look(spec, at)
    assert put_back(root, "run-1") == 1
    assert {path.relative_to(root) for path in all_files(root)} == before


def test_links_are_neither_followed_nor_taken(spec: TableSpec, at: Places, tmp_path: Path) -> None:
    small_commits(spec, at, 2)
    root = table_folder(spec, at)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    (root / "linked").symlink_to(outside)
    (root / "linked.parquet").symlink_to(outside / "precious.parquet")
    age(outside, 10)
    age(root, 10)
    assert not any("linked" in file.path for file in list_files(root))
    look(spec, at)
    assert (outside / "precious.parquet").exists() and (root / "linked.parquet").is_symlink()
    (root / QUARANTINE).symlink_to(outside)
    with pytest.raises(LinkedQuarantineError):
        look(spec, at)


def test_where_it_is_not_known_what_is_needed_nothing_is_taken(at: Places) -> None:
    iceberg, delta = (TableSpec.model_validate({"format": kind, "name": "shop.orders"}) for kind in ("iceberg", "delta"))
    for spec in (iceberg, delta):
        small_commits(spec, at, 3)
        lost_batch(spec, at)
        age(table_folder(spec, at), 10)
    metadata = open_table(iceberg, at)._current().metadata  # type: ignore[attr-defined]
    local_path(metadata.snapshots[1].manifest_list).write_bytes(b"torn")
    with pytest.raises(ManifestUnreadableError, match="no file was deleted"):
        look(iceberg, at)
    strange = at.delta_path(delta) / "_delta_log" / f"{2:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    strange.write_text("{}")
    with pytest.raises(UnknownCheckpointError, match="checkpointPolicy"):
        look(delta, at)
    assert len(list((at.delta_path(delta)).rglob("lb-lost/*"))) == 1


def test_a_table_that_is_not_there(spec: TableSpec, at: Places) -> None:
    with pytest.raises(TableGoneError):
        look(spec, at)
