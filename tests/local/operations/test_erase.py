"""Erasures from real tables of both formats: every table loses the same rows, for good, whatever happens before and after."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType
from tests.oracle import read_delta, read_iceberg
from tests.support.streams.long_form import LONG_FORM, each_value_once, only_in_long_form
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import SCHEMA, TOPIC, TOPIC_ID, genesis, offsets, rows
from tests.support.tables.quarantined import Quarantined, span
from tests.support.tables.rewinding import World, make_world, now_ms, readable, world_fixture  # noqa: F401

from lakebound.control.erased_record import read_record
from lakebound.control.incidents import Incident, read_incidents
from lakebound.inspection.proof import collect
from lakebound.inspection.query import QueryOfFilesError
from lakebound.ledger.entry import Entry, carried, count, encode, intervals_of
from lakebound.ledger.erased import ErasedRows
from lakebound.operations.erase.apply import apply_erase
from lakebound.operations.erase.matching import BadConditionError
from lakebound.operations.erase.plan import NothingToEraseError, RepeatedPositionsError
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.operations.release.candidates import as_offsets, look_at, offsets_in
from lakebound.operations.release.reading import read_index
from lakebound.operations.replay.take_back import take_back
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.open import open_at
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.erased import read_erased, write_erased
from lakebound.tables.erasing import RowsNotInFilesError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.batch.targets import Counts, Target, Writer
from lakebound_spark.landing.trimming import group_by_missing

WHERE = "city = 'city 1'"
ERASED_OFFSETS = [offset for offset in range(30) if offset % 3 == 1]
KEPT = [offset for offset in range(30) if offset % 3 != 1]


def ids(world: World, table: TableSpec) -> list[int]:
    """Return the rows of a table as plain readers see them."""
    if table.format == "delta":
        found = read_delta(world.at.folder(table).address)
    else:
        found = read_iceberg(world.at.iceberg_warehouse / "catalog.db", table.namespace, table.short_name)
    return sorted(found["id"].to_pylist())


def erase(world: World, where: str = WHERE, approved: str | None = None) -> Incident:
    plan = prepare(world.spec, world.at, where)
    return apply_erase(world.spec, world.at, where, approved or plan.hash, below=plan.below, by="a test", reason="ticket 7")


def landed(world: World) -> World:
    for start in (0, 10, 20):
        world.land(start, start + 10)
    return world


def erased_of(world: World, table: TableSpec) -> ErasedRows:
    opened = open_table(table, world.at)
    return read_erased(opened, opened.read_ledger().entry)


def test_every_table_loses_the_rows_and_the_proof_knows_it(world: World) -> None:
    landed(world)
    before = [open_table(table, world.at).read_ledger().coverage for table in world.spec.tables]
    incident = erase(world)
    assert [ids(world, table) for table in world.spec.tables] == [KEPT, KEPT]
    for table, coverage in zip(world.spec.tables, before, strict=True):
        entry = open_table(table, world.at).read_ledger().entry
        assert entry is not None
        assert (entry.kind, entry.erases, entry.coverage, entry.range) == ("erase", 10, coverage, {})
        assert erased_of(world, table).records == {(TOPIC, TOPIC_ID, 0): tuple((o, o + 1) for o in ERASED_OFFSETS)}
    proof = world.prove(30)
    assert proof.ok, [problem for table in proof.tables for problem in table.problems]
    assert (proof.missing, proof.duplicated, proof.erased) == (0, 0, 20)
    assert [one.rows for one in proof.tables if one.role == "target"] == [20, 20]
    assert incident.outcome == "done" and read_incidents(world.control) == [incident]


def test_nothing_that_is_recorded_quotes_the_condition(world: World) -> None:
    landed(world)
    erase(world)
    written = [path for path in world.at.home.rglob("*") if path.is_file()]
    quoting = [path for path in written if b"city 1" in path.read_bytes() and path.suffix == ".json"]
    assert written and not quoting


def test_the_stream_goes_on_beside_it_and_after_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    landed(world)
    take_out = DeltaLakeTable.take_out
    batches = iter([(30, 40), (40, 50)])

    def overtaken(self: DeltaLakeTable, *arguments: object) -> str:
        batch = next(batches, None)
        if batch is not None:
            world.land(*batch)
        return take_out(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaLakeTable, "take_out", overtaken)
    erase(world)
    world.land(50, 60)
    kept = [offset for offset in range(60) if offset not in ERASED_OFFSETS]
    assert [ids(world, table) for table in world.spec.tables] == [kept, kept]
    assert world.prove(60).ok


def test_a_compaction_meanwhile_has_the_files_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    landed(world)
    take_out, compacted = DeltaLakeTable.take_out, []

    def overtaken(self: DeltaLakeTable, *arguments: object) -> str:
        if not compacted:
            compacted.append(compact(world, self))
        return take_out(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaLakeTable, "take_out", overtaken)
    erase(world)
    assert compacted and ids(world, world.delta) == KEPT
    assert world.prove(30).ok


def compact(world: World, table: DeltaLakeTable) -> str:
    """Compact as maintenance does."""
    entry = open_table(table.spec, world.at).read_ledger().entry
    assert entry is not None
    opened = open_at(world.at.folder(table.spec))
    opened.optimize.compact(commit_properties=CommitProperties(custom_metadata={"userMetadata": encode(carried(entry))}))
    return "compacted"


@each_value_once
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [DeltaLakeTable, IcebergTable])
def test_the_same_command_finishes_what_was_cut_short(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: type[Table], after: bool
) -> None:
    landed(world)
    plan = prepare(world.spec, world.at, WHERE)
    take_out = kind.take_out  # type: ignore[attr-defined]

    def cut(self: Table, *arguments: object) -> str:
        if after:
            take_out(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kind, "take_out", cut)
        with pytest.raises(KeyboardInterrupt):
            erase(world, approved=plan.hash)
    assert "run the same command again" in read_incidents(world.control)[0].outcome
    if kind is IcebergTable and after:
        with pytest.raises(NothingToEraseError):
            erase(world, approved=plan.hash)
    else:
        erase(world, approved=plan.hash)
    assert [ids(world, table) for table in world.spec.tables] == [KEPT, KEPT]
    assert [erased_of(world, table).rows for table in world.spec.tables] == [10, 10]
    assert world.prove(30).ok


def test_rows_that_land_later_do_not_change_the_plan(world: World) -> None:
    landed(world)
    plan = prepare(world.spec, world.at, WHERE)
    world.land(30, 40)
    apply_erase(world.spec, world.at, WHERE, plan.hash, below=plan.below, by="a test")
    assert ids(world, world.delta) == [*KEPT, *range(30, 40)]
    with pytest.raises(PlanChangedError):
        apply_erase(world.spec, world.at, WHERE, plan.hash, by="a test")


def test_a_second_erasure_adds_to_the_first(world: World) -> None:
    landed(world)
    erase(world)
    erase(world, "id = 0")
    assert ids(world, world.iceberg) == KEPT[1:]
    assert erased_of(world, world.iceberg).rows == 11
    proof = world.prove(30)
    assert proof.ok and proof.erased == 22


def test_a_file_of_which_no_row_stays_is_not_copied(world: World) -> None:
    landed(world)
    erase(world, "id < 10")
    assert [ids(world, table) for table in world.spec.tables] == [list(range(10, 30))] * 2
    assert world.prove(30).ok


def test_a_rewind_to_before_it_is_refused(world: World) -> None:
    landed(world)
    then = now_ms()
    world.land(30, 40)
    erase(world)
    with pytest.raises(PlanRefusedError, match="erased"):
        world.plan(then)
    later = now_ms()
    world.land(40, 50)
    world.apply(later)
    world.relands(50)
    assert world.prove(50).ok
    assert all(offset not in ids(world, world.delta) for offset in ERASED_OFFSETS)
    assert erased_of(world, world.delta).rows == 13


def test_an_older_version_refuses_the_ledger_and_maintenance_carries_it_on(world: World) -> None:
    landed(world)
    erase(world)
    entry = open_table(world.delta, world.at).read_ledger().entry
    assert entry is not None and carried(entry).erased == entry.erased
    text = open_at(world.at.folder(world.delta)).history(1)[0]["userMetadata"]
    assert json.loads(text)["lakebound"]["requires"] == ["erased"]
    assert text.startswith('{"lakebound":{"kind":"erase"')


@pytest.mark.parametrize("where", ["no_such_column = 1", "city =", "id + 1"])
def test_what_is_no_condition_is_refused(world: World, where: str) -> None:
    landed(world)
    with pytest.raises(BadConditionError):
        prepare(world.spec, world.at, where)


def test_a_condition_reads_no_file(world: World) -> None:
    landed(world)
    with pytest.raises(QueryOfFilesError):
        prepare(world.spec, world.at, "id in (select id from read_csv('/etc/passwd'))")


def test_a_condition_that_is_true_for_no_row_is_refused(world: World) -> None:
    landed(world)
    with pytest.raises(NothingToEraseError, match="no row"):
        prepare(world.spec, world.at, "id = 77")


def test_the_record_of_the_pipeline_outlives_its_tables(world: World) -> None:
    landed(world)
    erase(world)
    assert read_record(world.control).rows == 10
    assert count(open_table(world.delta, world.at).read_ledger().coverage) == 30


@pytest.mark.parametrize("name", ["delta", pytest.param("iceberg", marks=only_in_long_form)])
def test_a_table_that_is_made_anew_leaves_the_rows_out(world: World, name: str) -> None:
    """As a start does it: the table is told what was erased, and reads everything again."""
    landed(world)
    erase(world)
    table = next(one for one in world.spec.tables if one.format == name)
    drop(world, table)
    opened = open_table(table, world.at)
    opened.create(SCHEMA, genesis())
    told = write_erased(opened, read_record(world.control))
    writer = Writer("orders", 9, lambda: None, 3)
    target = Target(opened, opened.read_ledger())
    target.commit(writer, offsets(0, 0), Counts(), [], kind="open", erased=told)
    target.know_erased()
    for ((found, _),) in [group_by_missing([target], offsets(start, start + 10)) for start in (0, 10, 20)]:
        own = [offset for _, _, intervals in intervals_of(found) for pair in intervals for offset in range(*pair)]
        counts = Counts(read=len(own), landed=len(own), rows=len(own))
        files = write_data_files(pa.concat_tables([rows(o, o + 1) for o in own]), opened.layout(), "again")
        target.commit(writer, found, counts, files)
    assert ids(world, table) == KEPT
    assert opened.read_ledger().coverage == offsets(0, 30)
    proof = world.prove(30)
    assert proof.ok, [problem for one in proof.tables for problem in one.problems]


def drop(world: World, table: TableSpec) -> None:
    if table.format == "delta":
        shutil.rmtree(world.at.delta_path(table))
        return
    folder = world.at.iceberg_warehouse / table.namespace / table.short_name
    shutil.rmtree(folder)
    with sqlite3.connect(world.at.iceberg_warehouse / "catalog.db") as connection:
        connection.execute("delete from iceberg_tables where table_namespace = ? and table_name = ?", ("shop", "orders"))


def test_offsets_without_rows_are_not_taken_back(world: World) -> None:
    """`replay --missing` takes offsets out of the coverage for which no row stands, but not those of erased rows."""
    landed(world)
    erase(world)
    open_at(world.at.folder(world.delta)).delete("id = 0")
    taken = take_back(world.spec, world.at, {world.delta.id: offsets(0, 30)}, epoch=world.epoch)
    assert taken[world.delta.id] == offsets(0, 1)
    assert erased_of(world, world.delta).rows == 10, "the reset carries it on"


def test_rows_that_are_there_again_are_found_and_erased_again(world: World) -> None:
    landed(world)
    erase(world)
    opened = open_table(world.delta, world.at)
    view = opened.read_ledger()
    again = write_data_files(rows(1, 2), opened.layout(), "again")
    entry = Entry(kind="carry", pipeline="orders", epoch=view.epoch, commit="a colleague")
    commit_entry(opened, view, again, entry, own_epoch=view.epoch, check_lease=lambda: None, attempts=1)
    problems = [problem for one in world.prove(30).tables for problem in one.problems]
    assert any("erased by decision are there again: 1: orders/0 [1, 2)" in one for one in problems)
    erase(world)
    assert ids(world, world.delta) == KEPT and world.prove(30).ok


def test_quarantined_copies_of_erased_rows_are_not_released(at: Places) -> None:
    world = Quarantined(at, [(3, "does_not_fit", b"3"), (5, "does_not_fit", b"5")], end=10)
    table = world.targets[0]
    world.release(table, 3)
    plan = prepare(world.spec, at, "_kafka.offset = 3")
    apply_erase(world.spec, at, "_kafka.offset = 3", plan.hash, by="a test")
    for one in world.targets:
        held = look_at(one, offsets_in(read_index(world.spec.quarantine_table, at)))
        assert as_offsets(held.lacking) == span((5, 6)), one.spec.id


def test_what_a_colleague_deleted_from_one_table_is_erased_from_all_by_the_same_condition(world: World) -> None:
    landed(world)
    open_at(world.at.folder(world.delta)).delete(WHERE)
    assert world.prove(30).missing == 10
    erase(world)
    assert [ids(world, table) for table in world.spec.tables] == [KEPT, KEPT]
    proof = world.prove(30)
    assert proof.ok and (proof.missing, proof.erased) == (0, 20)


def test_exploded_rows_are_erased_one_by_one(world: World) -> None:
    """Of a record with three rows one is meant; the others stay, and the proof counts the rows."""
    exploded = pa.concat_tables([with_ordinal(rows(0, 1), ordinal) for ordinal in range(3)])
    for one in world.spec.tables:
        opened = open_table(one, world.at)
        files = write_data_files(exploded, opened.layout(), "exploded")
        entry = Entry(
            kind="land", pipeline="orders", epoch=world.epoch, commit=one.id, range=offsets(0, 1), read=1, landed=1, rows=3
        )
        commit_entry(opened, opened.read_ledger(), files, entry, own_epoch=world.epoch, check_lease=lambda: None, attempts=1)
    erase(world, "_kafka.ordinal = 1")
    assert [open_table(one, world.at).scan_kafka()["ordinal"].to_pylist() for one in world.spec.tables] == [[0, 2], [0, 2]]
    proof = world.prove(1)
    assert proof.ok and proof.erased == 2
    assert [one.records for one in proof.tables if one.role == "target"] == [1, 1]


def with_ordinal(table: pa.Table, ordinal: int) -> pa.Table:
    records = [{**row, "_kafka": {**row["_kafka"], "ordinal": ordinal}} for row in table.to_pylist()]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def test_rows_with_one_position_are_erased_together_or_not_at_all(world: World) -> None:
    twice = pa.Table.from_pylist([*rows(0, 1).to_pylist(), {**rows(0, 1).to_pylist()[0], "id": 99}], schema=SCHEMA)
    opened = open_table(world.delta, world.at)
    entry = Entry(kind="land", pipeline="orders", epoch=world.epoch, commit="1", range=offsets(0, 1), read=1, landed=1, rows=2)
    files = write_data_files(twice, opened.layout(), "twice")
    commit_entry(opened, opened.read_ledger(), files, entry, own_epoch=world.epoch, check_lease=lambda: None, attempts=1)
    world.land(0, 1, tables=[world.iceberg])
    with pytest.raises(RepeatedPositionsError):
        prepare(world.spec, world.at, "id = 99")
    erase(world, "id = 99 OR id = 0")
    assert ids(world, world.delta) == []


def test_partitions_and_statistics_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "read_offsets", readable)
    tables = [
        {"format": "delta", "name": "shop.orders", "partition_by": ["city"]},
        {"format": "iceberg", "name": "shop.orders", "partition_by": ["day(at)"]},
    ]
    world = landed(make_world(tmp_path, tables=tables))
    erase(world, "id % 5 = 0")
    kept = [offset for offset in range(30) if offset % 5]
    assert [ids(world, table) for table in world.spec.tables] == [kept, kept]
    delta = DeltaTable(world.at.folder(world.delta).address)
    of_city = delta.to_pyarrow_table(filters=[("city", "=", "city 1")])["id"].to_pylist()
    assert sorted(of_city) == [offset for offset in kept if offset % 3 == 1]
    assert sorted(delta.to_pyarrow_table(filters=[("id", ">=", 28)])["id"].to_pylist()) == [28, 29]
    assert world.prove(30).ok


def rename_city(iceberg: Any) -> None:
    with iceberg.update_schema() as update:
        update.rename_column("city", "town").rename_column("items.sku", "code")
    with iceberg.update_schema() as update:
        update.add_column("city", StringType())


def drop_city(iceberg: Any) -> None:
    with iceberg.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("city")


def reorder(iceberg: Any) -> None:
    with iceberg.update_schema() as update:
        update.move_first("city").add_column(("items", "note"), StringType())


ICEBERG = TableSpec(format="iceberg", name="shop.orders")


@pytest.mark.parametrize("work", [rename_city, drop_city, reorder] if LONG_FORM else [rename_city])
def test_what_others_did_to_the_columns_of_an_iceberg_table_is_no_hindrance(
    world: World, work: Callable[[Any], None], tmp_path: Path
) -> None:
    """The copies have the columns that the table has now; nobody sees another value than before."""
    landed(world)
    handle = foreign_iceberg(ICEBERG, world.at)
    work(handle)
    before = foreign_iceberg(ICEBERG, world.at).scan().to_arrow().sort_by("id")
    erase(world, "id % 3 = 1")
    after = foreign_iceberg(ICEBERG, world.at).scan().to_arrow().sort_by("id")
    assert after.to_pylist() == [row for row in before.to_pylist() if row["id"] % 3 != 1]
    assert [ids(world, table) for table in world.spec.tables] == [KEPT, KEPT]
    look = open_table(ICEBERG, world.at).misread_columns()
    assert look.files and look.misread == look.undecided == ()


def partition_by_city(world: World) -> None:
    with foreign_iceberg(ICEBERG, world.at).update_spec() as update:
        update.add_field("city", IdentityTransform(), "city")


def leave_city(world: World) -> None:
    with foreign_iceberg(ICEBERG, world.at).update_spec() as update:
        update.remove_field("city")


def test_files_of_an_earlier_partitioning_keep_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two partitionings have files with such rows, and a third comes while the copies are written."""
    landed(world)
    partition_by_city(world)
    world.land(30, 40)
    take_out, changed = IcebergTable.take_out, []

    def overtaken(self: IcebergTable, *arguments: object) -> str:
        if not changed:
            leave_city(world)
            changed.append(True)
        return take_out(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(IcebergTable, "take_out", overtaken)
    erase(world, "id % 5 = 0")
    kept = [offset for offset in range(40) if offset % 5]
    assert changed and [ids(world, table) for table in world.spec.tables] == [kept, kept]
    handle = foreign_iceberg(ICEBERG, world.at)
    spec_ids = [task.file.spec_id for task in handle.scan().plan_files()]
    assert sorted(spec_ids) == [0, 0, 0, 1, 1, 1]
    of_city = handle.scan(row_filter="city = 'city 1'").to_arrow()["id"].to_pylist()
    assert sorted(of_city) == [offset for offset in kept if offset % 3 == 1]
    snapshot = handle.current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary["total-records"] == str(len(kept))
    assert world.prove(40).ok
    world.land(40, 50)
    assert ids(world, world.iceberg) == [*kept, *range(40, 50)]


def test_files_that_are_partitioned_by_a_column_that_is_gone_are_refused_in_the_plan(world: World) -> None:
    landed(world)
    partition_by_city(world)
    world.land(30, 40)
    leave_city(world)
    drop_city(foreign_iceberg(ICEBERG, world.at))
    with pytest.raises(RowsNotInFilesError, match=r"3 of the files .* by a column that is gone"):
        prepare(world.spec, world.at, "id > 25")


def test_times_and_days_as_the_page_writes_them(world: World) -> None:
    landed(world)
    plan = prepare(world.spec, world.at, "at >= '2023-11-15T08:00:00Z'::timestamptz and at < DATE '2023-11-16'")
    assert {row for part in plan.erased.parts for start, end in part.offsets for row in range(start, end)} == {*range(8, 24)}
