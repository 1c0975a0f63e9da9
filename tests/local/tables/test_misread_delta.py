"""Files of a Delta table that were written for other columns than readers find in them: each is named, and no other.

What readers see is asked of delta-kernel; what was landed is what the test wrote.
"""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from tests.support.tables.foreign_hands import forget_all_but_newest
from tests.support.tables.local_tables import Lander, lander, make_table, rows
from tests.support.tables.mapped_columns import ColumnMapping, Protocol, commit, seen_rows

from lakebound.ledger.entry import Entry
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta import misread
from lakebound.tables.delta import table as delta_table
from lakebound.tables.delta.misread import misread_columns
from lakebound.tables.delta.open import open_at
from lakebound.tables.footers import read_footers
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders")
CITY = "city {}"


@pytest.fixture(name="app")
def app_fixture(at: Places) -> Lander:
    """The ids 0 to 9 are landed."""
    make_table(SPEC, at)
    app = lander(SPEC, at)
    app.land(0, 10)
    return app


@pytest.fixture
def mapping(app: Lander, at: Places) -> ColumnMapping:
    return ColumnMapping(at.delta_path(SPEC))


def land_as_before(at: Places, monkeypatch: pytest.MonkeyPatch, batch: pa.Table) -> None:
    """Land as versions did that did not look at a table's features."""
    with monkeypatch.context() as patch:
        patch.setattr(delta_table, "check_may", lambda *_: None)
        patch.setattr(delta_table.DeltaLakeTable, "_check_fit", lambda *_: None)
        app = lander(SPEC, at)
        first = batch["id"][0].as_py()
        files = write_data_files(batch, app.table.layout(), f"old-{first}")
        app.land(first, first + batch.num_rows, files)


def found(at: Places) -> set[tuple[str, str | None, str | None, tuple[int, ...]]]:
    """Return what is misread: the column, whose it is, where it is seen, and the ids in these files."""
    look, folder = open_table(SPEC, at).misread_columns(), at.delta_path(SPEC)
    assert look.files == look.looked_at == len(DeltaTable(str(folder)).file_uris())
    return {
        (
            one.misreading.column,
            one.misreading.belongs_to,
            one.misreading.seen_in,
            tuple(pq.read_table(folder / one.file, columns=["id"])["id"].to_pylist()),
        )
        for one in look.misread
    }


NEW = tuple(range(10, 20))


@pytest.mark.parametrize("protocol", ["features", "legacy"])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_column_that_was_renamed_and_another_of_its_name(
    mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mode: str
) -> None:
    mapping.switch_on(protocol, mode)
    mapping.rename("city", "town")
    mapping.add("city")
    assert found(at) == set(), "the files of before are read rightly"
    land_as_before(at, monkeypatch, rows(10, 20))
    seen = seen_rows(at.delta_path(SPEC))
    assert [row["town"] for row in seen] == [CITY.format(number % 3) for number in range(20)], "the stream's cities, too"
    assert {row["city"] for row in seen} == {None}
    assert found(at) == {("city", "city", "town", NEW)}
    assert open_table(SPEC, at).scan_kafka().num_rows == 20


@pytest.mark.parametrize("protocol", ["features", "legacy"])
def test_a_column_that_was_added_with_column_mapping(
    mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    mapping.switch_on(protocol)
    mapping.add("note")
    land_as_before(at, monkeypatch, rows(10, 20).append_column("note", pa.array(["landed"] * 10)))
    assert {row["note"] for row in seen_rows(at.delta_path(SPEC))} == {None}
    assert found(at) == {("note", "note", None, NEW)}


def test_a_column_that_was_dropped_and_added_again(mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping.switch_on()
    mapping.drop("city")
    mapping.add("city")
    assert found(at) == set(), "what was dropped is not missed"
    land_as_before(at, monkeypatch, rows(10, 20))
    assert {row["city"] for row in seen_rows(at.delta_path(SPEC))} == {None}
    assert found(at) == {("city", "city", None, NEW)}


def test_a_field_in_a_list(mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping.switch_on()
    mapping.rename("items.sku", "code")
    mapping.add("sku", into="items")
    assert found(at) == set()
    land_as_before(at, monkeypatch, rows(10, 20))
    seen = seen_rows(at.delta_path(SPEC))
    assert [row["items"][0]["code"] for row in seen] == [f"sku-{number}" for number in range(20)]
    assert found(at) == {("items.element.sku", "items.element.sku", "items.element.code", NEW)}


def test_column_mapping_alone_misleads_nobody(mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping.switch_on()
    land_as_before(at, monkeypatch, rows(10, 20))
    assert [row["city"] for row in seen_rows(at.delta_path(SPEC))] == [CITY.format(number % 3) for number in range(20)]
    assert found(at) == set()


def test_a_file_of_a_tool_that_knows_column_mapping_is_right(mapping: ColumnMapping, at: Places) -> None:
    """It has physical names and field ids, as the protocol asks for."""
    folder = at.delta_path(SPEC)
    mapping.switch_on()
    mapping.rename("city", "town")
    mapping.add("city")
    theirs = rows(10, 11)
    fields = [field.with_metadata({"PARQUET:field_id": str(number)}) for number, field in enumerate(theirs.schema, 1)]
    pq.write_table(theirs.cast(pa.schema(fields)), folder / "theirs.parquet")
    commit(folder, [added(folder / "theirs.parquet", {})], "WRITE")
    assert seen_rows(folder)[-1]["town"] == "city 1"
    assert found(at) == set()


def test_a_log_that_does_not_reach_back_leaves_it_undecided(
    mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping.switch_on()
    mapping.rename("city", "town")
    mapping.add("city")
    land_as_before(at, monkeypatch, rows(10, 20))
    land_as_before(at, monkeypatch, rows(20, 30))
    forget_all_but_newest(SPEC, at)
    assert found(at) == {("city", "city", "town", tuple(range(20, 30)))}
    assert len(open_table(SPEC, at).misread_columns().undecided) == 2


def added(file: Path, partition: dict[str, str | None]) -> dict[str, Any]:
    statistics = json.dumps({"numRecords": pq.read_metadata(file).num_rows})
    body = {"path": file.name, "partitionValues": partition, "size": file.stat().st_size, "modificationTime": 1}
    return {"add": {**body, "dataChange": True, "stats": statistics}}


@pytest.mark.parametrize("partition", [{}, {"city": None}], ids=["no value", "null"])
def test_a_file_of_another_partitioning_whose_partition_column_is_null(at: Places, partition: dict[str, str | None]) -> None:
    spec = SPEC.model_copy(update={"partition_by": ("city",)})
    make_table(spec, at)
    lander(spec, at).land(0, 10)
    assert found(at) == set()
    folder = at.delta_path(SPEC)
    pq.write_table(rows(10, 20), folder / "in-flight.parquet")
    commit(folder, [added(folder / "in-flight.parquet", partition)], "WRITE")
    assert {row["city"] for row in seen_rows(folder) if row["id"] >= 10} == {None}
    assert found(at) == {("city", "city", None, NEW)}


def test_a_null_of_a_partition_is_no_mistake(at: Places) -> None:
    spec = SPEC.model_copy(update={"partition_by": ("city",)})
    make_table(spec, at)
    app = lander(spec, at)
    nulls = rows(0, 4).set_column(1, "city", pa.array([None, "", "x", None], pa.string()))
    app.land(0, 4, write_data_files(nulls, app.table.layout(), "nulls"))
    assert found(at) == set()


def test_a_column_that_the_metadata_lost(mapping: ColumnMapping, at: Places) -> None:
    mapping.forget("city")
    assert found(at) == {("city", None, None, tuple(range(10)))}
    folder = at.delta_path(SPEC)
    pq.write_table(rows(10, 20), folder / "theirs.parquet")
    commit(folder, [added(folder / "theirs.parquet", {})], "WRITE")
    assert found(at) == {("city", None, None, tuple(range(10)))}, "what others put into their files is theirs"


def test_added_columns_and_ordinary_work_of_others_are_no_mistake(app: Lander, at: Places) -> None:
    handle = DeltaTable(str(at.delta_path(SPEC)))
    handle.alter.add_columns([Field("note", PrimitiveType("string"))])
    app = lander(SPEC, at)
    app.land(10, 20)
    DeltaTable(str(at.delta_path(SPEC))).delete("id < 3")
    DeltaTable(str(at.delta_path(SPEC))).optimize.compact()
    assert found(at) == set()


def test_a_bound_is_kept_and_told(app: Lander, at: Places) -> None:
    for start in (10, 20, 30):
        app.land(start, start + 10)
    look = misread_columns(open_at(at.folder(SPEC)), at.folder(SPEC), most_files=2)
    assert (look.files, look.looked_at) == (4, 2)


def test_columns_of_row_tracking_are_no_mistake_also_when_the_log_has_forgotten_who_wrote_them(app: Lander, at: Places) -> None:
    folder = at.delta_path(SPEC)
    theirs = rows(10, 20).append_column("_row-id-col-7d0f", pa.array(range(10)))
    pq.write_table(theirs.append_column("_row-commit-version-col-7d0f", pa.array(range(10))), folder / "theirs.parquet")
    commit(folder, [added(folder / "theirs.parquet", {})], "WRITE")
    lander(SPEC, at).land(20, 30)
    forget_all_but_newest(SPEC, at)
    assert found(at) == set()


@pytest.mark.parametrize("is_doubtful", [False, True])
def test_footers_are_not_held_all_at_once(
    app: Lander, mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch, is_doubtful: bool
) -> None:
    for start in range(10, 80, 10):
        app.land(start, start + 10)
    if is_doubtful:
        mapping.switch_on()
        mapping.rename("city", "town")
    given: list[weakref.ref[Any]] = []
    most = []

    def counted(files: Sequence[Location]) -> Iterator[Any]:
        for footer in read_footers(files):
            given.append(weakref.ref(footer))
            gc.collect()  # a footer and its schema hold each other
            most.append(sum(one() is not None for one in given))
            yield footer

    monkeypatch.setattr(misread, "read_footers", counted)
    assert open_table(SPEC, at).misread_columns().looked_at == 8
    assert len(most) == 8 and max(most) <= 3


def test_a_rewind_to_before_it_is_a_way_out(mapping: ColumnMapping, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    version = open_table(SPEC, at).read_ledger().version
    entry = open_table(SPEC, at).read_ledger().entry
    assert entry is not None
    mapping.switch_on()
    mapping.rename("city", "town")
    mapping.add("city")
    land_as_before(at, monkeypatch, rows(10, 20))
    assert found(at)
    reset = Entry(kind="reset", pipeline=entry.pipeline, epoch=1, commit="reset", coverage=entry.coverage)
    open_table(SPEC, at).restore(version, reset)
    assert found(at) == set()
    lander(SPEC, at).land(10, 20)
    assert [row["city"] for row in seen_rows(at.delta_path(SPEC))] == [CITY.format(number % 3) for number in range(20)]
    assert found(at) == set()


def test_a_partition_column_with_column_mapping(at: Places) -> None:
    """Values of partitions are in the log under the physical name."""
    spec = SPEC.model_copy(update={"partition_by": ("city",)})
    make_table(spec, at)
    lander(spec, at).land(0, 10)
    mapping = ColumnMapping(at.delta_path(SPEC))
    mapping.switch_on()
    assert found(at) == set()
    mapping.rename_partition("city", "town")
    assert [row["town"] for row in seen_rows(at.delta_path(SPEC))] == [CITY.format(number % 3) for number in range(10)]
    assert found(at) == set()
    mapping.add("city")
    assert found(at) == set()
