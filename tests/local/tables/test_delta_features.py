"""Every feature that another tool can switch on in a Delta table × each moment: written rightly, or refused by its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from tests.support.tables.delta_features import FEATURES, SwitchedOn, commit_as_other, switch_on
from tests.support.tables.local_tables import Lander, draft, landed_twice, lander, pipeline_over, places, rows
from tests.support.tables.maintained import compaction

from lakebound.errors import FilesOutdatedError, LakeboundError, RowsNotReadError, TableFeatureError, TableMismatchError
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.inspection.query import PipelineTables, QueryError, run_query
from lakebound.ledger.entry import carried
from lakebound.operations.erase.apply import apply_erase
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.maintenance.delta import rewrite as delta_rewrite
from lakebound.operations.maintenance.delta.engine import DeltaEngine, UnknownFeaturesError
from lakebound.operations.maintenance.delta.rewrite import live_files, replace, rewrite
from lakebound.operations.maintenance.engines import StepLostError
from lakebound.operations.maintenance.steps import Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.open import open_at
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders")


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table as each test finds it: Delta's log names its files without the folder."""
    folder = tmp_path_factory.mktemp("landed")
    landed_twice(SPEC, places(folder))
    return folder


@pytest.fixture(name="app")
def app_fixture(landed: Path, at: Places) -> Lander:
    shutil.copytree(landed, at.home, dirs_exist_ok=True)
    return lander(SPEC, at)


def live_ids(folder: Path) -> list[int]:
    """Return the ids in the files that the log names, as no library reads them: deltalake refuses some of the features."""
    live: dict[str, None] = {}
    for path in sorted((folder / "_delta_log").glob("*.json")):
        for line in path.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
            if "add" in action:
                live[action["add"]["path"]] = None
    return sorted(one for name in live for one in pq.read_table(folder / name, columns=["id"])["id"].to_pylist())


def newest(folder: Path) -> int:
    return max(int(path.stem) for path in (folder / "_delta_log").glob("*.json"))


def meet(switched: SwitchedOn, act: str, at: Places, work: Callable[[], object], rows_after: list[int]) -> None:
    """Do what may be refused; afterwards the rows are there, or the refusal had the right name and nothing was written."""
    folder = at.delta_path(SPEC)
    before, ids = newest(folder), live_ids(folder)
    if act not in switched.refused.split():
        work()
        assert live_ids(folder) == rows_after
        return
    with pytest.raises((TableFeatureError, UnknownFeaturesError, RowsNotReadError), match=switched.feature):
        work()
    assert (newest(folder), live_ids(folder)) == (before, ids)


@pytest.fixture(params=FEATURES, ids=lambda switched: switched.name)
def switched(request: pytest.FixtureRequest) -> SwitchedOn:
    found: SwitchedOn = request.param
    return found


def test_before_the_start(switched: SwitchedOn, app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), switched)

    def start() -> None:
        fresh = lander(SPEC, at, epoch=2)
        fresh.open()
        fresh.land(20, 30)

    meet(switched, "append", at, start, list(range(30)))


def test_between_two_batches(switched: SwitchedOn, app: Lander, at: Places) -> None:
    files = app.write(20, 30)
    switch_on(at.delta_path(SPEC), switched)
    meet(switched, "append", at, lambda: app.land(20, 30, files), list(range(30)))


def test_before_maintenance(switched: SwitchedOn, app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), switched)
    meet(switched, "replace", at, lambda: DeltaEngine(at).compact(SPEC, compaction(SPEC)), list(range(20)))


def test_during_maintenance(switched: SwitchedOn, app: Lander, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are written; before they are committed, the table is another one: nothing is committed, whatever it is."""
    folder, real = at.delta_path(SPEC), delta_rewrite.replace

    def after_a_colleague(*args: object, **named: object) -> object:
        switch_on(folder, switched)
        return real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("lakebound.operations.maintenance.delta.engine.replace", after_a_colleague)
    before = newest(folder)
    with pytest.raises((LakeboundError, StepLostError)):
        DeltaEngine(at).compact(SPEC, compaction(SPEC))
    assert (newest(folder), live_ids(folder)) == (before + 1, list(range(20)))


def test_vacuum(switched: SwitchedOn, app: Lander, at: Places) -> None:
    DeltaEngine(at).compact(SPEC, compaction(SPEC))
    switch_on(at.delta_path(SPEC), switched)
    step = Vacuum(table=SPEC.id, reason="a test", mode="lite", retention_seconds=7 * 86400)
    meet(switched, "vacuum", at, lambda: DeltaEngine(at).vacuum(SPEC, step), list(range(20)))


def test_during_a_rewind(switched: SwitchedOn, app: Lander, at: Places) -> None:
    version = open_at(at.folder(SPEC)).version() - 1
    entry = next(one.entry for one in app.table.entries() if one.version == str(version))
    switch_on(at.delta_path(SPEC), switched)
    reset = draft(0, 0, kind="reset").model_copy(update={"coverage": entry.coverage})
    meet(switched, "restore", at, lambda: open_table(SPEC, at).restore(str(version), reset), list(range(10)))


def erase(at: Places) -> None:
    pipeline, where = pipeline_over(SPEC), "id = 1"
    plan = prepare(pipeline, at, where)
    apply_erase(pipeline, at, where, plan.hash, below=plan.below, by="a test")


def test_before_an_erasure(switched: SwitchedOn, app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), switched)
    act = "evaluate" if "evaluate" in switched.refused.split() else "erase"
    meet(switched, act, at, lambda: erase(at), [one for one in range(20) if one != 1])


def test_during_an_erasure(switched: SwitchedOn, app: Lander, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies are written; before they are committed, the table is another one."""
    folder, take_out, left = at.delta_path(SPEC), DeltaLakeTable.take_out, [switched]

    def after_a_colleague(*args: object) -> str:
        while left:
            switch_on(folder, left.pop())
        return take_out(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaLakeTable, "take_out", after_a_colleague)
    try:
        erase(at)
    except TableFeatureError as exc:
        assert "erase" in switched.refused.split() and switched.feature in str(exc)
        assert live_ids(folder) == list(range(20))
    else:
        assert "erase" not in switched.refused.split()
        assert live_ids(folder) == [one for one in range(20) if one != 1]


def test_a_query_of_a_table_that_polars_does_not_read_says_why(app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), SwitchedOn("v2Checkpoint"))
    with pytest.raises(QueryError, match="v2Checkpoint"):
        run_query("select id from shop.orders", {"orders": PipelineTables([SPEC], at)})


def test_columns_and_properties(switched: SwitchedOn, app: Lander, at: Places) -> None:
    entry = carried(app.view.entry) if app.view.entry is not None else None
    switch_on(at.delta_path(SPEC), switched)
    plan = SchemaPlan(additions=(Addition(("note",), pa.string()),))
    meet(switched, "alter", at, lambda: open_table(SPEC, at).change_schema(plan, entry), list(range(20)))
    meet(
        switched,
        "alter",
        at,
        lambda: open_table(SPEC, at).set_properties({"delta.logRetentionDuration": "interval 40 days"}, entry),
        list(range(20)),
    )


def test_null_in_a_column_that_must_not_be_null_is_refused(app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), SwitchedOn("invariants", required=True))
    batch = rows(20, 21).set_column(1, "city", pa.array([None], pa.string()))
    files = write_data_files(batch, app.table.layout(), "null")
    with pytest.raises(TableFeatureError, match=r"NOT NULL \(column city\)"):
        app.land(20, 21, files)
    assert live_ids(at.delta_path(SPEC)) == list(range(20))


class TestBatchInFlight:
    """A batch is written, and the table changed, before it is committed."""

    @staticmethod
    def change(folder: Path, *, partition_by: list[str] | None = None, columns: pa.Schema | None = None) -> None:
        handle = DeltaTable(str(folder))
        kept = handle.schema() if columns is None else Schema.from_arrow(columns)
        body = {
            "id": str(handle.metadata().id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": kept.to_json(),
            "partitionColumns": partition_by or [],
            "configuration": handle.metadata().configuration,
            "createdTime": 1,
        }
        adds = pa.table(handle.get_add_actions()).to_pylist()
        removes = [{"remove": {"path": one["path"], "deletionTimestamp": 1, "dataChange": True}} for one in adds]
        commit_as_other(folder, [{"metaData": body}, *removes], "WRITE")

    def test_another_partitioning_is_refused(self, app: Lander, at: Places) -> None:
        files, folder = app.write(20, 30), at.delta_path(SPEC)
        self.change(folder, partition_by=["city"])
        with pytest.raises(TableMismatchError, match=r"by \[\] when this batch was written, and is by \[city\] now"):
            app.land(20, 30, files)
        assert live_ids(folder) == []

    def test_a_column_of_another_type_has_it_written_again(self, app: Lander, at: Places) -> None:
        files, folder = app.write(20, 30), at.delta_path(SPEC)
        columns = app.table.schema()
        wider = columns.set(columns.get_field_index("city"), pa.field("city", pa.binary()))
        self.change(folder, columns=wider)
        with pytest.raises(FilesOutdatedError, match=r"column city .it was STRING, and is BINARY"):
            app.land(20, 30, files)
        assert live_ids(folder) == []

    def test_a_column_that_is_gone_has_it_written_again(self, app: Lander, at: Places) -> None:
        files, folder = app.write(20, 30), at.delta_path(SPEC)
        self.change(folder, columns=app.table.schema().remove(1))
        with pytest.raises(FilesOutdatedError, match=r"column city .it was STRING, and is gone"):
            app.land(20, 30, files)

    def test_a_new_column_is_null_in_it(self, app: Lander, at: Places) -> None:
        files, folder = app.write(20, 30), at.delta_path(SPEC)
        self.change(folder, columns=app.table.schema().append(pa.field("note", pa.string())))
        app.land(20, 30, files)
        assert live_ids(folder) == list(range(20, 30))


def test_a_file_that_lost_rows_meanwhile_is_not_replaced(app: Lander, at: Places) -> None:
    """A colleague's DELETE with a deletion vector leaves the path as it is: the rows would be there twice."""
    root, folder = at.folder(SPEC), at.delta_path(SPEC)
    handle = open_at(root)
    rewritten = rewrite(handle, root, live_files(handle), compaction(SPEC))
    switch_on(folder, SwitchedOn("deletionVectors", {"delta.enableDeletionVectors": "true"}))
    path = live_files(handle)[0]
    vector = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": 1, "sizeInBytes": 36, "cardinality": 2}
    kept = {"path": path.path, "partitionValues": {}, "size": path.size_bytes}
    added = {**kept, "modificationTime": 1, "dataChange": True, "stats": '{"numRecords":10}', "deletionVector": vector}
    commit_as_other(folder, [{"add": added}, {"remove": {**kept, "deletionTimestamp": 1, "dataChange": True}}], "DELETE")
    before = newest(folder)
    with pytest.raises(StepLostError, match="features were changed"):
        replace(root, SPEC.id, rewritten)
    assert newest(folder) == before


def test_the_doctor_sees_what_a_start_would_refuse(switched: SwitchedOn, app: Lander, at: Places) -> None:
    assert read_ledgers(pipeline_over(SPEC), at)[0].refusal is None
    switch_on(at.delta_path(SPEC), switched)
    found = read_ledgers(pipeline_over(SPEC), at)[0].refusal
    assert (found is not None) == ("append" in switched.refused.split())
    assert found is None or (found.runbook == "table-feature" and switched.feature in found.sentence)


def test_where_the_rows_come_from_is_read_whatever_is_switched_on(switched: SwitchedOn, app: Lander, at: Places) -> None:
    switch_on(at.delta_path(SPEC), switched)
    try:
        found = open_table(SPEC, at).scan_kafka()
    except TableFeatureError as exc:
        assert exc.feature == switched.feature and "append" in switched.refused.split()
        return
    assert sorted(found["offset"].to_pylist()) == list(range(20))
