"""Delta's maintenance steps on real tables: the ledger stays, rows stay, and what is dangerous is refused."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.local_tables import genesis, landed_offsets, lander, make_table, offsets, rows
from tests.maintained import compaction, content, live_files_of, small_commits

from lakebound.ledger import Entry
from lakebound.maintenance import delta_rewrite
from lakebound.maintenance.delta_engine import DeltaEngine, LogNotCleanableError, NotRewritableError, RetentionTooShortError
from lakebound.maintenance.delta_rewrite import SCRATCH, LiveFile, forget_scratch, live_files, replace, rewrite
from lakebound.maintenance.engines import Done, StepLostError, TableGoneError, carried_entry
from lakebound.maintenance.steps import CheckpointLog, CleanLog, Vacuum
from lakebound.run_spec import Places
from lakebound.spec import TableSpec
from lakebound.tables import open_table
from lakebound.tables.datafiles import write_data_files

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


def test_compaction_carries_the_entry_and_changes_no_row(at: Places) -> None:
    small_commits(PLAIN, at, 30)
    before = content(PLAIN, at)
    done = DeltaEngine(at).compact(PLAIN, compaction(PLAIN))
    assert (done.files_before, done.files_after, done.commits, done.conflicts) == (30, 1, 1, 0)
    assert done.bytes_rewritten > 30 * 1000
    assert live_files_of(PLAIN, at) == 1
    assert content(PLAIN, at) == before
    carried, landed = newest_entries(PLAIN, at, 2)
    assert carried.kind == "carry" and carried.coverage == landed.coverage and carried.epoch == landed.epoch
    assert not carried.range and carried.commit != landed.commit
    assert DeltaEngine(at).compact(PLAIN, compaction(PLAIN)).is_nothing


@pytest.mark.parametrize("city", ["a b/c=d%20é?#:'x", None, "plain"])
def test_compaction_keeps_to_its_partition(city: str | None, at: Places) -> None:
    make_table(BY_CITY, at)
    app = lander(BY_CITY, at)
    cities = ("a b/c=d%20é?#:'x", None, "plain")
    for offset in range(12):
        batch = rows(offset, offset + 1)
        column = pa.array([cities[offset % 3]], pa.string())
        batch = batch.set_column(batch.schema.get_field_index("city"), "city", column)
        app.land(offset, offset + 1, write_data_files(batch, app.table.data_folder(), BY_CITY, f"b{offset}"))
    before = content(BY_CITY, at)
    done = DeltaEngine(at).compact(BY_CITY, compaction(BY_CITY, partition={"city": city}))
    assert (done.files_before, done.files_after) == (4, 1)
    assert live_files_of(BY_CITY, at) == 9
    assert content(BY_CITY, at) == before


def test_zorder_rewrites_a_partition_once_and_a_single_file_never(at: Places) -> None:
    small_commits(BY_CITY, at, 9)
    before = content(BY_CITY, at)
    step = compaction(BY_CITY, partition={"city": "city 1"}, order_by=("id", "at"))
    assert DeltaEngine(at).compact(BY_CITY, step).files_before == 3
    assert DeltaEngine(at).compact(BY_CITY, step).is_nothing
    assert content(BY_CITY, at) == before


def test_compaction_beside_a_stream_loses_and_doubles_nothing(at: Places) -> None:
    app = small_commits(PLAIN, at, 40)
    app.attempts = 12
    ended = threading.Event()

    def stream() -> None:
        for offset in range(40, 120):
            app.land(offset, offset + 1)
            app.table.keep_cheap()
            ended.wait(0.05)  # twenty commits a second are ten times as many as a stream makes
        ended.set()

    streaming = threading.Thread(target=stream)
    streaming.start()
    results: list[Done] = []
    while not ended.is_set():
        results.append(DeltaEngine(at).compact(PLAIN, compaction(PLAIN)))
    streaming.join()
    assert sum(done.commits for done in results) >= 3
    found = open_table(PLAIN, at)
    view = found.read_ledger()
    assert landed_offsets(found) == list(range(120))
    assert view.entry is not None and view.entry.kind == "land" and view.coverage["orders"].partitions == {0: ((0, 120),)}


def test_deltalakes_own_optimize_doubles_rows_where_two_run_at_once(at: Places) -> None:
    """Why it is not used: once this fails, its conflict check is there, and ``lakebound.maintenance.delta_rewrite`` may go."""
    small_commits(PLAIN, at, 20)
    stale = DeltaTable(str(at.delta_path(PLAIN)))
    DeltaTable(str(at.delta_path(PLAIN))).optimize.compact()
    stale.optimize.compact()
    assert content(PLAIN, at).rows == 40


def test_of_two_compactions_at_once_one_is_lost_and_leaves_nothing(at: Places) -> None:
    small_commits(PLAIN, at, 20)
    before, root = content(PLAIN, at), at.delta_path(PLAIN)
    handle = DeltaTable(str(root))
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    assert DeltaEngine(at).compact(PLAIN, compaction(PLAIN)).files_after == 1
    with pytest.raises(StepLostError, match="20 of the rewritten files were removed"):
        replace(root, PLAIN.id, late, carried_entry(PLAIN, at))
    assert content(PLAIN, at) == before
    assert len(list(root.glob("compacted-*"))) == 1 and not (root / SCRATCH).exists()


def test_a_compaction_does_not_bring_back_what_a_rewind_undid(at: Places) -> None:
    app = small_commits(PLAIN, at, 20)
    root = at.delta_path(PLAIN)
    handle = DeltaTable(str(root))
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    reset = genesis(epoch=2).model_copy(update={"kind": "reset", "coverage": offsets(0, 5)})
    app.table.restore("5", reset)
    with pytest.raises(StepLostError, match="15 of the rewritten files"):
        replace(root, PLAIN.id, late, carried_entry(PLAIN, at))
    assert landed_offsets(open_table(PLAIN, at)) == list(range(5))


def test_a_commit_that_others_overtake_again_and_again_gets_through(at: Places) -> None:
    app = small_commits(PLAIN, at, 10)
    root, seen = at.delta_path(PLAIN), []
    handle = DeltaTable(str(root))
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    with pytest.MonkeyPatch.context() as patch:
        looked = delta_rewrite.live_files

        def overtaken(found: DeltaTable) -> list[LiveFile]:
            if len(seen) < 5:
                seen.append(app.land(10 + len(seen), 11 + len(seen)))
            return looked(found)

        patch.setattr(delta_rewrite, "live_files", overtaken)
        patch.setattr(delta_rewrite, "_is_committed", lambda *_: False)
        _, refused = replace(root, PLAIN.id, late, carried_entry(PLAIN, at))
    assert refused == 5
    assert landed_offsets(open_table(PLAIN, at)) == list(range(15)) and live_files_of(PLAIN, at) == 6


def test_files_of_some_size_are_left_alone(at: Places) -> None:
    app = small_commits(PLAIN, at, 4)
    app.land(4, 5000)
    large = max(path.stat().st_size for path in at.delta_path(PLAIN).glob("*.parquet"))
    done = DeltaEngine(at).compact(PLAIN, compaction(PLAIN, below_bytes=large, target_file_bytes=10 * large))
    assert (done.files_before, done.files_after) == (4, 1) and live_files_of(PLAIN, at) == 2


def test_a_large_rewrite_is_several_commits(at: Places) -> None:
    small_commits(PLAIN, at, 40)
    before = content(PLAIN, at)
    done = DeltaEngine(at).compact(PLAIN, compaction(PLAIN, below_bytes=5000, target_file_bytes=5000))
    assert done.commits == 3 and done.files_before == 40 and done.files_after == live_files_of(PLAIN, at) == 20
    assert content(PLAIN, at) == before


def test_a_table_whose_files_do_not_tell_its_rows_is_not_compacted(at: Places) -> None:
    spec = PLAIN.model_copy(update={"properties": {"delta.enableDeletionVectors": "true"}})
    small_commits(spec, at, 3)
    with pytest.raises(NotRewritableError, match="deletionVectors"):
        DeltaEngine(at).compact(spec, compaction(spec))


def test_what_a_killed_rewrite_left_is_forgotten(at: Places) -> None:
    small_commits(PLAIN, at, 3)
    left = at.delta_path(PLAIN) / SCRATCH / "dead"
    left.mkdir(parents=True)
    (left / "0.parquet").write_bytes(b"x")
    forget_scratch(at.delta_path(PLAIN), 60)
    assert left.exists(), "it may be another run's"
    os.utime(left, (time.time() - 61,) * 2)
    forget_scratch(at.delta_path(PLAIN), 60)
    assert not left.parent.exists() and content(PLAIN, at).rows == 3


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
    with pytest.raises(LogNotCleanableError, match="no whole log checkpoint"):
        DeltaEngine(at).clean_log(PLAIN, clean(PLAIN, 5))
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    app.land(8, 9)
    DeltaTable(str(at.delta_path(PLAIN))).create_checkpoint()
    torn = at.delta_path(PLAIN) / "_delta_log" / f"{8:020d}.checkpoint.parquet"
    torn.write_bytes(torn.read_bytes()[:-20])
    with pytest.raises(LogNotCleanableError, match="no whole log checkpoint"):
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
    with pytest.raises(RetentionTooShortError, match=r"of 24 hours is refused.*promises 48.*removed_files_seconds"):
        DeltaEngine(at).vacuum(spec, vacuum(spec, 24))
    assert DeltaEngine(at).vacuum(spec, vacuum(spec, 48)).is_nothing
    assert len(list(at.delta_path(spec).glob("*.parquet"))) == 6


def test_vacuum_of_what_somebody_may_just_be_reading_is_refused(at: Places) -> None:
    small_commits(PLAIN, at, 2)
    with pytest.raises(RetentionTooShortError, match="of 0 hours is refused: 1 is the least"):
        DeltaEngine(at).vacuum(PLAIN, vacuum(PLAIN, 0))


def test_a_lite_vacuum_finds_removed_files_through_log_checkpoints(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's default, which is longer than what is promised, has its checkpoints name them until then."""
    monkeypatch.setattr("lakebound.maintenance.delta_engine._MIN_REMOVED_HOURS", 0)
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
    young = staged[0].path
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
        with pytest.raises(TableGoneError, match="orders is gone"):
            call()
    assert not at.delta_path(PLAIN).exists()


def test_a_table_with_no_rows_has_nothing_to_be_done(at: Places) -> None:
    make_table(PLAIN, at)
    engine = DeltaEngine(at)
    assert engine.compact(PLAIN, compaction(PLAIN)).is_nothing
    assert engine.vacuum(PLAIN, vacuum(PLAIN, 168, "full")).is_nothing
