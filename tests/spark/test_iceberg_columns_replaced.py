"""Somebody else renames or drops columns of an Iceberg table, and adds others of the same names."""

from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.tables.colleague import Colleague
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import Lander, lander, make_table

from lakebound.errors import FilesOutdatedError, LakeboundError
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

pytestmark = pytest.mark.spark

RENAMED = ("ALTER TABLE {t} RENAME COLUMN city TO town", "ALTER TABLE {t} ADD COLUMN city string")
DROPPED = ("ALTER TABLE {t} DROP COLUMN city", "ALTER TABLE {t} ADD COLUMN city string")
INSIDE = ("ALTER TABLE {t} RENAME COLUMN items.element.sku TO code", "ALTER TABLE {t} ADD COLUMN items.element.sku string")
_numbers = itertools.count()


@pytest.fixture
def app(at: Places) -> Lander:
    """An application that has landed ten rows in a table of its own."""
    spec = TableSpec(format="iceberg", name=f"replaced.t{next(_numbers)}")
    make_table(spec, at)
    opened = lander(spec, at)
    opened.open()
    opened.land(0, 10)
    return opened


@pytest.fixture
def colleague(app: Lander, at: Places, pool: ProcessPoolExecutor) -> Colleague:
    return Colleague(pool, app.table.spec, at)


def cities(numbers: range, town: range, city: range) -> list[dict[str, Any]]:
    return [
        {"id": n, "town": f"city {n % 3}" if n in town else None, "city": f"city {n % 3}" if n in city else None}
        for n in numbers
    ]


def test_rows_landed_before_and_after_a_rename_keep_their_columns(app: Lander, colleague: Colleague) -> None:
    colleague.does(*RENAMED)
    before = colleague.does("SELECT count(*) AS n FROM {t}.snapshots")
    with pytest.raises(FilesOutdatedError, match="city"):
        app.land(10, 20)  # its handle does not know yet
    assert colleague.does("SELECT count(*) AS n FROM {t}.snapshots") == before
    app.view = app.table.read_ledger()
    app.land(10, 20)
    for reader, found in colleague.readers(("id", "town", "city")):
        assert found == cities(range(20), range(10), range(10, 20)), reader


def test_dropped_values_do_not_return(app: Lander, colleague: Colleague) -> None:
    written = app.write(10, 20)
    colleague.does(*DROPPED)
    with pytest.raises(FilesOutdatedError, match="city"):
        app.land(10, 20, written)
    app.view = app.table.read_ledger()
    app.land(10, 20)
    wanted = [{"id": n, "city": f"city {n % 3}" if n >= 10 else None} for n in range(20)]
    for reader, found in colleague.readers(("id", "city")):
        assert found == wanted, reader


def test_fields_inside_of_lists_keep_their_values(app: Lander, colleague: Colleague) -> None:
    written = app.write(10, 20)
    colleague.does(*INSIDE)
    with pytest.raises(FilesOutdatedError, match="sku"):
        app.land(10, 20, written)
    found = colleague.does("SELECT id, items[0].code AS code, items[0].sku AS sku FROM {t} ORDER BY id")
    assert found == [{"id": n, "code": f"sku-{n}", "sku": None} for n in range(10)]


def test_each_file_has_the_ids_of_the_columns(app: Lander, at: Places) -> None:
    handle = foreign_iceberg(app.table.spec, at)
    assert "schema.name-mapping.default" not in handle.properties
    paths = handle.inspect.files()["file_path"].to_pylist()
    assert paths
    for path in paths:
        found = pq.read_schema(path.removeprefix("file://"))
        element = found.field("items").type.value_field
        ids = [field.metadata[b"PARQUET:field_id"] for field in (*found, element, *element.type, *found.field("_kafka").type)]
        assert len({*ids}) == len(ids) == 5 + 1 + 2 + 6


def test_a_table_with_files_without_ids_is_refused_once_a_name_means_another_column(
    app: Lander, colleague: Colleague, at: Places
) -> None:
    spec = app.table.spec
    mapping = foreign_iceberg(spec, at).schema().name_mapping.model_dump_json()
    colleague.does(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('schema.name-mapping.default' = '{mapping}')")
    lander(spec, at).open()  # an older version's table: its files go on being read by the mapping
    colleague.does(*RENAMED)
    with pytest.raises(LakeboundError, match=r"schema\.name-mapping\.default") as refused:
        lander(spec, at)
    wanted = str(refused.value).partition("= '")[2].partition("'")[0]
    colleague.does(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('schema.name-mapping.default' = '{wanted}')")
    later = lander(spec, at, epoch=2)
    later.open()
    later.land(10, 20)
    for reader, found in colleague.readers(("id", "town", "city")):
        assert found == cities(range(20), range(10), range(10, 20)), reader
