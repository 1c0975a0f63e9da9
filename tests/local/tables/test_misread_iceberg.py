"""Files of an Iceberg table that were written for other columns than readers find in them: each is named, and no other.

What readers see is asked of PyIceberg; what was landed is what the test wrote.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import lander, make_table, rows

from lakebound.errors import RowsNotReadError
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.misread import misread_columns
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="iceberg", name="shop.orders")
MAPPING = "schema.name-mapping.default"
Found = set[tuple[str, str | None, str | None, tuple[int, ...]]]


@pytest.fixture(autouse=True)
def table(at: Places) -> None:
    """The ids 0 to 9 are landed, with field ids."""
    make_table(SPEC, at)
    lander(SPEC, at).land(0, 10)


def add_without_ids(at: Places, folder: Path, start: int, end: int) -> None:
    """Add a file as older versions wrote them: its columns have names alone, which the table's name mapping resolves."""
    path = folder / f"old-{start}.parquet"
    batch = rows(start, end)
    pq.write_table(batch.cast(pa.schema([field.remove_metadata() for field in batch.schema])), path)
    foreign_iceberg(SPEC, at).add_files([f"file://{path}"])


def rename(at: Places, path: str, name: str) -> None:
    with foreign_iceberg(SPEC, at).update_schema() as update:
        update.rename_column(path, name)


def add(at: Places, *path: str) -> None:
    with foreign_iceberg(SPEC, at).update_schema() as update:
        update.add_column(path, StringType())


def drop(at: Places, path: str) -> None:
    with foreign_iceberg(SPEC, at).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column(path)


def set_mapping(at: Places, change: dict[str, list[str]]) -> None:
    """Set which names a column has in files without ids."""
    handle = foreign_iceberg(SPEC, at)
    fields = json.loads(handle.properties[MAPPING])
    owners = {one.field_id: one.name for one in handle.schema().fields}
    for one in fields:
        one["names"] = change.get(owners[one["field-id"]], one["names"])
    with handle.transaction() as transaction:
        transaction.set_properties({MAPPING: json.dumps([one for one in fields if one["names"]])})


def found(at: Places) -> Found:
    look = open_table(SPEC, at).misread_columns()
    return {
        (
            one.misreading.column,
            one.misreading.belongs_to,
            one.misreading.seen_in,
            tuple(pq.read_table(one.file.removeprefix("file://"), columns=["id"])["id"].to_pylist()),
        )
        for one in look.misread
    }


def seen(at: Places, column: str) -> list[str | None]:
    read = foreign_iceberg(SPEC, at).scan().to_arrow().sort_by("id")
    values: list[str | None] = read[column].to_pylist()
    return values


def cities(start: int, end: int) -> list[str]:
    return [f"city {number % 3}" for number in range(start, end)]


OLD = tuple(range(10, 20))


def test_files_with_and_without_ids_are_right_as_long_as_nobody_replaces_a_column(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    assert seen(at, "city") == cities(0, 20) and found(at) == set()
    rename(at, "city", "town")
    assert seen(at, "town") == cities(0, 20) and found(at) == set()


def test_the_name_of_a_renamed_column_was_given_to_another(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    rename(at, "city", "town")
    add(at, "city")
    assert seen(at, "city") == [*[None] * 10, *cities(10, 20)], "old values in a new column"
    assert found(at) == {("city", "town", "city", OLD)}


def test_a_file_that_was_added_after_that(at: Places, tmp_path: Path) -> None:
    """By the mapping that is right for the files of before it."""
    add_without_ids(at, tmp_path, 10, 20)
    rename(at, "city", "town")
    add(at, "city")
    add_without_ids(at, tmp_path, 20, 30)
    assert found(at) == {("city", "town", "city", OLD)}, "the younger file meant the column that is called so now"
    set_mapping(at, {"town": ["city", "town"], "city": []})
    assert seen(at, "town") == cities(0, 30) and seen(at, "city") == [None] * 30
    assert found(at) == {("city", "city", "town", tuple(range(20, 30)))}


def test_a_column_that_was_dropped_and_added_again(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    drop(at, "city")
    assert found(at) == set()
    add(at, "city")
    assert seen(at, "city") == [*[None] * 10, *cities(10, 20)], "dropped values come back"
    assert found(at) == {("city", None, "city", OLD)}


def test_a_field_in_a_list(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    rename(at, "items.sku", "code")
    add(at, "items", "sku")
    assert [row[0]["sku"] for row in foreign_iceberg(SPEC, at).scan("id >= 10").to_arrow()["items"].to_pylist()] == [
        f"sku-{number}" for number in range(10, 20)
    ]
    assert found(at) == {("items.element.sku", "items.element.code", "items.element.sku", OLD)}


def test_a_column_that_the_mapping_lost(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    set_mapping(at, {"city": []})
    with pytest.raises(ValueError, match="Could not find field with name: city"):
        seen(at, "city")
    assert found(at) == {("city", "city", None, OLD)}


def test_without_any_mapping_each_column_of_such_a_file_is_named(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    with foreign_iceberg(SPEC, at).transaction() as transaction:
        transaction.remove_properties(MAPPING)
    with pytest.raises(RowsNotReadError, match="name-mapping"):
        open_table(SPEC, at).scan_kafka()
    assert found(at) == {(name, name, None, OLD) for name in ("id", "city", "at", "items", "_kafka")}


def test_files_with_ids_are_right_whatever_is_renamed_dropped_and_added(at: Places) -> None:
    rename(at, "city", "town")
    add(at, "city")
    lander(SPEC, at).land(10, 20)
    drop(at, "town")
    rename(at, "items.sku", "code")
    assert seen(at, "city") == [*[None] * 10, *cities(10, 20)]
    assert found(at) == set()


def test_after_an_expiry_it_is_undecided_where_a_name_has_meant_two_columns(at: Places, tmp_path: Path) -> None:
    add_without_ids(at, tmp_path, 10, 20)
    rename(at, "city", "town")
    add(at, "city")
    set_mapping(at, {"town": ["city", "town"], "city": []})
    lander(SPEC, at).land(20, 30)
    assert found(at) == set() and open_table(SPEC, at).misread_columns().undecided == ()
    handle = foreign_iceberg(SPEC, at)
    older = [one.snapshot_id for one in handle.metadata.snapshots if one.snapshot_id != handle.metadata.current_snapshot_id]
    handle.maintenance.expire_snapshots().by_ids(older).commit()
    look = open_table(SPEC, at).misread_columns()
    assert [Path(one).name for one in look.undecided] == ["old-10.parquet"] and not look.misread


def test_a_bound_is_kept_and_told(at: Places) -> None:
    for start in (10, 20, 30):
        lander(SPEC, at).land(start, start + 10)
    handle: Table = foreign_iceberg(SPEC, at)
    look = misread_columns(handle, at, most_files=2)
    assert (look.files, look.looked_at) == (4, 2)


@pytest.mark.parametrize("path", ["_kafka", "_kafka.offset", "_kafka.timestamp"])
@pytest.mark.parametrize("is_dropped", [False, True])
def test_rows_that_no_longer_say_where_they_came_from_are_not_read_by_other_names(
    at: Places, path: str, is_dropped: bool
) -> None:
    if is_dropped:
        drop(at, path)
    else:
        rename(at, path, "theirs")
    with pytest.raises(RowsNotReadError, match=f"it has no column {path}.*renamed or dropped"):
        open_table(SPEC, at).scan_kafka()
    is_told_by_bounds = path == "_kafka.timestamp"
    if is_told_by_bounds:
        assert open_table(SPEC, at).reconstruct() is not None
    else:
        with pytest.raises(RowsNotReadError):
            open_table(SPEC, at).reconstruct()
