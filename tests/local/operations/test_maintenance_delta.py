"""Delta's maintenance steps on real tables: the ledger stays, rows stay, and what is dangerous is refused."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import lander, make_table
from tests.support.tables.maintained import compaction, content, small_commits

from lakebound.ledger.entry import Entry
from lakebound.operations.maintenance.delta.engine import DeltaEngine, LogNotCleanableError, RetentionTooShortError
from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

PLAIN = TableSpec(format="delta", name="shop.orders")
BY_CITY = TableSpec(format="delta", name="shop.orders", partition_by=("city",))
HOUR = 3600


def clean(spec: TableSpec, before: int) -> CleanLog:
    return CleanLog(table=spec.id, reason="a test", before_version=before)


def vacuum(spec: TableSpec, hours: float, mode: str = "lite") -> Vacuum:
    return Vacuum.model_validate({"table": spec.id, "reason": "a test", "mode": mode, "retention_seconds": hours * HOUR})


def newest_entries(spec: TableSpec, at: Places, count: int) -> list[Entry]:
    return [committed.entry for _, committed in zip(range(count), open_table(spec, at).entries(), strict=False)]


def log_names(spec: TableSpec, at: Places) -> set[str]:
    return {path.name for path in (at.delta_path(spec) / "_delta_log").iterdir()}


def test_log_checkpoint_once_per_version(at: Places) -> None:
    small_commits(PLAIN, at, 5)
    step = CheckpointLog(table=PLAIN.id, reason="a test")
    assert DeltaEngine(at).checkpoint_log(PLAIN, step).note == "log checkpoint at version 5"
    assert DeltaEngine(at).checkpoint_log(PLAIN, step).is_nothing


def test_log_cleanup_leaves_every_promised_version_readable(at: Places) -> None:
    app = small_commits(PLAIN, at, 10)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    for offset in range(10, 20):
        app.land(offset, offset + 1)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    (at.delta_path(PLAIN) / "_delta_log" / f"{3:020d}.crc").write_text("{}")
    before = content(PLAIN, at)
    done = DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 15))
    assert len(done.removed) == 11 and done.bytes_removed > 0
    assert min(name for name in log_names(PLAIN, at) if name.endswith(".json")).startswith(f"{10:020d}")
    for version in range(10, 21):
        assert DeltaTable(str(at.delta_path(PLAIN)), version=version).version() == version
    assert content(PLAIN, at) == before
    assert DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 15)).is_nothing
    assert DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 20)).removed
    assert content(PLAIN, at) == before
    lander(PLAIN, at).land(20, 21)


def test_log_cleanup_without_a_whole_checkpoint_is_refused(at: Places) -> None:
    app = small_commits(PLAIN, at, 8)
    with pytest.raises(LogNotCleanableError, match="no complete log checkpoint"):
        DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 5))
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    app.land(8, 9)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    torn = at.delta_path(PLAIN) / "_delta_log" / f"{8:020d}.checkpoint.parquet"
    torn.write_bytes(torn.read_bytes()[:-20])
    with pytest.raises(LogNotCleanableError, match="no complete log checkpoint"):
        DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 8))
    assert f"{0:020d}.json" in log_names(PLAIN, at)


def test_log_cleanup_never_takes_the_entry_that_counts(at: Places) -> None:
    """The stream stands still while maintenance goes on: its last commit stays, whatever was committed after it."""
    small_commits(PLAIN, at, 10)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    DeltaEngine(at).compact(PLAIN, compaction(PLAIN))
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    before = content(PLAIN, at)
    assert before.entry is not None and before.entry.kind == "land"
    DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 11))
    assert content(PLAIN, at) == before
    assert f"{10:020d}.json" in log_names(PLAIN, at) and f"{9:020d}.json" not in log_names(PLAIN, at)


def test_vacuum_below_the_tables_retention_is_refused(at: Places) -> None:
    spec = PLAIN.model_copy(update={"properties": {"delta.deletedFileRetentionDuration": "interval 2 days"}})
    small_commits(spec, at, 5)
    DeltaEngine(at).compact(spec, compaction(spec))
    with pytest.raises(RetentionTooShortError, match=r"of 24 hours is refused.*requires 48.*removed_files_seconds"):
        DeltaEngine(at).vacuum(spec, vacuum(spec, 24))
    assert DeltaEngine(at).vacuum(spec, vacuum(spec, 48)).is_nothing
    assert len(list(at.delta_path(spec).glob("*.parquet"))) == 6


def test_vacuum_of_what_somebody_may_just_be_reading_is_refused(at: Places) -> None:
    small_commits(PLAIN, at, 2)
    with pytest.raises(RetentionTooShortError, match="of 0 hours is refused: the minimum is 1"):
        DeltaEngine(at).vacuum(PLAIN, vacuum(PLAIN, 0))


def test_a_lite_vacuum_finds_removed_files_through_log_checkpoints(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's default, which is longer than what is promised, has its checkpoints name them until then."""
    monkeypatch.setattr("lakebound.operations.maintenance.delta.engine._MIN_REMOVED_HOURS", 0)
    small_commits(PLAIN, at, 5)
    DeltaEngine(at).compact(PLAIN, compaction(PLAIN))
    time.sleep(0.002)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    lander(PLAIN, at).land(5, 6)
    assert DeltaEngine(at).vacuum(PLAIN, vacuum(PLAIN, 0)).files_before == 5
    assert content(PLAIN, at).rows == 6


def test_vacuum_removes_what_compaction_replaced_and_its_commits_carry_the_entry(at: Places) -> None:
    spec = PLAIN.model_copy(update={"properties": {"delta.deletedFileRetentionDuration": "interval 0 hours"}})
    small_commits(spec, at, 10)
    DeltaEngine(at).compact(spec, compaction(spec))
    before = content(spec, at)
    assert DeltaEngine(at).vacuum(spec, vacuum(spec, 1)).is_nothing
    time.sleep(0.002)  # the retention is none, the clock's unit a millisecond
    done = DeltaEngine(at).vacuum(spec, vacuum(spec, 0))
    assert (done.files_before, done.commits, len(done.removed)) == (10, 2, 10) and done.bytes_removed > 10_000
    assert len(list(at.delta_path(spec).glob("*.parquet"))) == 1
    assert content(spec, at) == before
    assert [entry.kind for entry in newest_entries(spec, at, 4)] == ["carry", "carry", "carry", "land"]
    lander(spec, at).land(10, 11)


def test_a_log_checkpoint_hides_from_a_lite_vacuum_what_a_full_one_finds(at: Places) -> None:
    """Delta drops a removed file from its checkpoints once the property's time is over: a lite one comes too late for it."""
    spec = PLAIN.model_copy(update={"properties": {"delta.deletedFileRetentionDuration": "interval 0 hours"}})
    small_commits(spec, at, 5)
    DeltaEngine(at).compact(spec, compaction(spec))
    time.sleep(0.002)
    DeltaTable(str(at.delta_path(spec))).create_checkpoint()
    for path in at.delta_path(spec).glob("*.parquet"):
        os.utime(path, (time.time() - 73 * HOUR,) * 2)
    assert DeltaEngine(at).vacuum(spec, vacuum(spec, 0)).is_nothing
    assert DeltaEngine(at).vacuum(spec, vacuum(spec, 0, "full")).files_before == 5
    assert content(spec, at).rows == 5


def test_full_vacuum_takes_no_file_that_a_batch_may_just_have_written(at: Places) -> None:
    spec = PLAIN.model_copy(update={"properties": {"delta.deletedFileRetentionDuration": "interval 0 hours"}})
    app = small_commits(spec, at, 3)
    staged = app.write(3, 4)
    young = staged[0].path.path
    old = young.with_name("left-behind.parquet")
    shutil.copy(young, old)
    os.utime(young, (time.time() - 71 * HOUR,) * 2)
    os.utime(old, (time.time() - 73 * HOUR,) * 2)
    done = DeltaEngine(at).vacuum(spec, vacuum(spec, 0, "full"))
    assert [Path(path).name for path in done.removed] == [old.name] and not old.exists()
    lander(spec, at).land(3, 4, staged)
    assert content(spec, at).rows == 4


def test_a_table_that_was_dropped_is_said_to_be_gone(at: Places) -> None:
    small_commits(PLAIN, at, 2)
    shutil.rmtree(at.delta_path(PLAIN))
    engine = DeltaEngine(at)
    for call in (
        lambda: engine.compact(PLAIN, compaction(PLAIN)),
        lambda: engine.checkpoint_log(PLAIN, CheckpointLog(table=PLAIN.id, reason="a test")),
        lambda: engine.clean_log(PLAIN, clean(PLAIN, 1)),
        lambda: engine.vacuum(PLAIN, vacuum(PLAIN, 24)),
    ):
        with pytest.raises(TableGoneError, match="orders does not exist any more"):
            call()
    assert not at.delta_path(PLAIN).exists()


def test_a_table_with_no_rows_has_nothing_to_be_done(at: Places) -> None:
    make_table(PLAIN, at)
    engine = DeltaEngine(at)
    assert engine.compact(PLAIN, compaction(PLAIN)).is_nothing
    assert engine.vacuum(PLAIN, vacuum(PLAIN, 168, "full")).is_nothing
