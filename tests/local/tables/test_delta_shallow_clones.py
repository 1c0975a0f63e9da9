"""A colleague puts a shallow clone of a copy in the table's place: its log then names files outside of the table's folder."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from tests.support.tables.delta_features import commit_as_other
from tests.support.tables.local_tables import PIPELINE, Lander, draft, landed_twice, offsets, pipeline_over
from tests.support.tables.maintained import compaction

from lakebound.operations.erase.prepare import prepare
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.steps import Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import FilesOutsideError, open_at
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders")


@pytest.fixture
def app(at: Places) -> Lander:
    """An application that has landed [0, 20) before the clone."""
    app = landed_twice(SPEC, at)
    folder, copy = at.delta_path(SPEC), at.home / "copy"
    copy.mkdir()
    actions = []
    for one in pa.table(open_at(at.folder(SPEC)).get_add_actions()).to_pylist():
        there = shutil.copy(folder / one["path"], copy)
        added = {"path": f"file:{there}", "partitionValues": {}, "size": one["size_bytes"], "modificationTime": 1}
        actions += [
            {"remove": {"path": one["path"], "deletionTimestamp": 1, "dataChange": True}},
            {"add": {**added, "dataChange": True, "stats": '{"numRecords":10}'}},
        ]
    commit_as_other(folder, actions, "CLONE")
    return app


def test_the_stream_goes_on_and_says_who_changed_the_rows(app: Lander) -> None:
    committed = app.land(20, 30)
    assert committed.entry.coverage == offsets(0, 30)
    assert [one.operation for one in committed.entry.foreign_changes] == ["CLONE"]


def test_what_reads_files_is_refused_by_name(app: Lander, at: Places) -> None:
    with pytest.raises(FilesOutsideError, match="SHALLOW CLONE"):
        DeltaEngine(at).compact(SPEC, compaction(SPEC))
    with pytest.raises(FilesOutsideError, match="SHALLOW CLONE"):
        prepare(pipeline_over(SPEC), at, "id = 1")
    with pytest.raises(FilesOutsideError, match="SHALLOW CLONE"):  # a proof says so, too
        open_table(SPEC, at).scan_kafka()


def test_vacuum_leaves_the_files_of_the_clone(app: Lander, at: Places) -> None:
    step = Vacuum(table=SPEC.id, reason="a test", mode="full", retention_seconds=72 * 3600)
    DeltaEngine(at).vacuum(SPEC, step)
    assert len([*(at.home / "copy").glob("*.parquet")]) == 2


def test_a_rewind_to_before_it_has_the_tables_own_files(app: Lander, at: Places) -> None:
    version = str(open_at(at.folder(SPEC)).version() - 1)
    reset = draft(0, 0, kind="reset").model_copy(update={"coverage": offsets(0, 20), "pipeline": PIPELINE})
    open_table(SPEC, at).restore(version, reset)
    assert sorted(open_table(SPEC, at).scan_kafka()["offset"].to_pylist()) == list(range(20))
