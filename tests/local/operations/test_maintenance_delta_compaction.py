"""Compaction of real Delta tables: no row is lost, doubled or brought back, whatever else is committed meanwhile."""

from __future__ import annotations

import os
import threading
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import Lander, genesis, landed_offsets, lander, make_table, offsets, rows
from tests.support.tables.maintained import compaction, content, live_files_of, small_commits, stale_carries

from lakebound.ledger.entry import Entry
from lakebound.operations.maintenance.delta import rewrite as delta_rewrite
from lakebound.operations.maintenance.delta.engine import DeltaEngine, UnknownFeaturesError
from lakebound.operations.maintenance.delta.rewrite import LiveDeltaFile, live_files, replace, rewrite
from lakebound.operations.maintenance.engines import StepLostError
from lakebound.operations.maintenance.steps import StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.draft import SCRATCH, forget_scratch
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import open_table

PLAIN = TableSpec(format="delta", name="shop.orders")
BY_CITY = TableSpec(format="delta", name="shop.orders", partition_by=("city",))


def newest_entries(spec: TableSpec, at: Places, count: int) -> list[Entry]:
    return [committed.entry for _, committed in zip(range(count), open_table(spec, at).entries(), strict=False)]


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
        app.land(offset, offset + 1, write_data_files(batch, app.table.layout(), f"b{offset}"))
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
    results: list[StepEffect] = []
    while not ended.is_set():
        results.append(DeltaEngine(at).compact(PLAIN, compaction(PLAIN)))
    streaming.join()
    assert sum(done.commits for done in results) >= 3
    assert stale_carries(PLAIN, at) == []
    found = open_table(PLAIN, at)
    view = found.read_ledger()
    assert landed_offsets(found) == list(range(120))
    assert view.entry is not None and view.entry.kind == "land" and view.coverage["orders"].partitions == {0: ((0, 120),)}


def test_deltalakes_own_optimize_doubles_rows_where_two_run_at_once(at: Places) -> None:
    """Why it is not used: once this fails, its conflict check is there, and our own rewrite may go."""
    small_commits(PLAIN, at, 20)
    stale = DeltaTable(str(at.delta_path(PLAIN)))
    DeltaTable(str(at.delta_path(PLAIN))).optimize.compact()
    stale.optimize.compact()
    assert content(PLAIN, at).rows == 40


def test_of_two_compactions_at_once_one_is_lost_and_leaves_nothing(at: Places) -> None:
    small_commits(PLAIN, at, 20)
    before, root = content(PLAIN, at), at.folder(PLAIN)
    handle = DeltaTable(root.address)
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    assert DeltaEngine(at).compact(PLAIN, compaction(PLAIN)).files_after == 1
    with pytest.raises(StepLostError, match="20 of the rewritten files were removed"):
        replace(root, PLAIN.id, late)
    assert content(PLAIN, at) == before
    assert len(list(root.path.glob("compacted-*"))) == 1 and not (root.path / SCRATCH).exists()


def test_a_compaction_does_not_bring_back_what_a_rewind_undid(at: Places) -> None:
    app = small_commits(PLAIN, at, 20)
    root = at.folder(PLAIN)
    handle = DeltaTable(root.address)
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    reset = genesis(epoch=2).model_copy(update={"kind": "reset", "coverage": offsets(0, 5)})
    app.table.restore("5", reset)
    with pytest.raises(StepLostError, match="15 of the rewritten files"):
        replace(root, PLAIN.id, late)
    assert landed_offsets(open_table(PLAIN, at)) == list(range(5))


def test_a_commit_that_others_overtake_again_and_again_gets_through(at: Places) -> None:
    app = small_commits(PLAIN, at, 10)
    root, seen, asked = at.folder(PLAIN), [], list[int]()
    handle = DeltaTable(root.address)
    late = rewrite(handle, root, live_files(handle), compaction(PLAIN))
    with pytest.MonkeyPatch.context() as patch:
        looked = delta_rewrite.live_files

        def overtaken(found: DeltaTable) -> list[LiveDeltaFile]:
            if len(seen) < 5:
                seen.append(app.land(10 + len(seen), 11 + len(seen)))
            return looked(found)

        patch.setattr(delta_rewrite, "live_files", overtaken)
        patch.setattr(delta_rewrite, "_is_committed", lambda *_: False)
        _, refused = replace(root, PLAIN.id, late, on_conflict=lambda: asked.append(len(seen)))
    assert refused == 5 == len(asked), "the stream is asked for a turn after each"
    assert landed_offsets(open_table(PLAIN, at)) == list(range(15)) and live_files_of(PLAIN, at) == 6
    newest = next(open_table(PLAIN, at).entries()).entry
    assert (newest.kind, newest.coverage, stale_carries(PLAIN, at)) == ("carry", offsets(0, 15), [])


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
    with pytest.raises(UnknownFeaturesError, match="deletionVectors"):
        DeltaEngine(at).compact(spec, compaction(spec))


@pytest.mark.parametrize("in_list", [False, True])
def test_a_map_whose_values_got_a_field_is_compacted(in_list: bool, at: Places) -> None:
    def of(*fields: str) -> pa.DataType:
        found = pa.map_(pa.string(), pa.struct([(name, pa.int32()) for name in fields]))
        return pa.list_(pa.field("element", found)) if in_list else found

    def batch(offset: int, *fields: str) -> pa.Table:
        value = [("k", dict.fromkeys(fields, offset))]
        values = pa.array([[value] if in_list else value], of(*fields))
        return rows(offset, offset + 1).append_column(pa.field("props", values.type), values)

    table = open_table(PLAIN, at)
    table.create(batch(0, "a").schema, genesis())
    app = Lander(table, table.read_ledger())
    app.open()
    for offset in range(3):
        app.land(offset, offset + 1, write_data_files(batch(offset, "a"), table.layout(), "old"))
    path = ("element", "value", "b") if in_list else ("value", "b")
    table.change_schema(SchemaPlan(additions=(Addition(("props", *path), pa.int32()),)), None)
    app = lander(PLAIN, at)
    app.land(3, 4, write_data_files(batch(3, "a", "b"), app.table.layout(), "new"))
    before = [one.read_bytes() for one in sorted(at.delta_path(PLAIN).glob("old*.parquet"))]
    done = DeltaEngine(at).compact(PLAIN, compaction(PLAIN))
    assert (done.files_before, done.files_after) == (4, 1)
    assert before == [path.read_bytes() for path in sorted(at.delta_path(PLAIN).glob("old*.parquet"))]
    found = pa.table(DeltaTable(str(at.delta_path(PLAIN))).to_pyarrow_table()).sort_by("id")["props"].to_pylist()
    expected = [[("k", {"a": offset, "b": offset if offset == 3 else None})] for offset in range(4)]
    assert found == ([[one] for one in expected] if in_list else expected)


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
