"""Files of both lanes, committed to real tables and read back."""

from __future__ import annotations

import datetime
import math
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from tests.support.tables.local_tables import (
    SCHEMA,
    Lander,
    genesis,
    landed_offsets,
    lander,
    layout_of,
    make_table,
    places,
    rows,
)

from lakebound.errors import TableMismatchError
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import list_data_files, write_data_files
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.partition_values import delta_partition_text, delta_partition_texts
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, Table, open_table


def delta(*partition_by: str) -> TableSpec:
    return TableSpec(format="delta", name="shop.orders", partition_by=partition_by)


def iceberg(*partition_by: str) -> TableSpec:
    return TableSpec(format="iceberg", name="shop.orders", partition_by=partition_by)


def content(spec: TableSpec, at: Places) -> pa.Table:
    """Read the table as any other tool would."""
    if spec.format == "delta":
        return open_at(at.folder(spec)).to_pyarrow_table().sort_by("id")
    table = open_catalog(at).load_table(spec.name)
    return table.scan().to_arrow().sort_by("id")


@pytest.mark.parametrize("spec", [delta(), delta("city"), iceberg(), iceberg("city"), iceberg("day(at)", "truncate(5, id)")])
def test_rows_come_back_as_they_were(spec: TableSpec, at: Places) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 50)
    found = content(spec, at).select(SCHEMA.names).cast(SCHEMA)
    assert found.to_pylist() == rows(0, 50).to_pylist()


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    assert write_data_files(rows(0, 0), layout_of(delta(), tmp_path / "never"), "t") == []
    assert not (tmp_path / "never").exists()


def test_a_delta_file_holds_one_partition_and_its_column(at: Places) -> None:
    files = write_data_files(rows(0, 9), layout_of(delta("city"), at.home), "t")
    assert [dict(file.partition) for file in files] == [{"city": f"city {n}"} for n in range(3)]
    assert [file.rows for file in files] == [3, 3, 3]
    for file in files:
        assert pq.read_table(file.path.path)["city"].unique().to_pylist() == [file.partition["city"]]
        assert file.size_bytes == file.path.path.stat().st_size
        assert file.metadata.num_rows == pq.read_metadata(file.path.path).num_rows


def test_an_iceberg_table_is_partitioned_by_day(at: Places) -> None:
    spec = iceberg("day(at)")
    make_table(spec, at)
    app = lander(spec, at)
    files = app.write(0, 60)
    assert [file.rows for file in files] == [24, 24, 12]
    app.land(0, 60, files)
    table = open_catalog(at).load_table(spec.name)
    partitions = table.inspect.partitions().sort_by("record_count").to_pylist()
    assert [found["record_count"] for found in partitions] == [12, 24, 24]
    assert {found["partition"]["at_day"] for found in partitions} == {datetime.date(2023, 11, 15 + n) for n in range(3)}
    assert table.scan(row_filter=EqualTo("id", 30)).to_arrow().num_rows == 1
    assert len(list(table.scan(row_filter="at >= '2023-11-17T00:00:00+00:00'").plan_files())) == 1


KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int32(), [1, -7, None]),
    "date": (pa.date32(), [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "string": (pa.string(), ["plain", "a b/c=d%20é?#", None]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime.datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=datetime.UTC), None, None]),
}


def keyed(kind: pa.DataType, values: list[Any]) -> tuple[pa.Schema, pa.Table]:
    kafka = rows(0, len(values))["_kafka"]
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("key", kind), pa.field("_kafka", KAFKA_TYPE)])
    table = pa.table({"id": range(len(values)), "key": pa.array(values, kind), "_kafka": kafka}, schema=schema)
    return schema, table


@pytest.mark.parametrize("name", sorted(KEYS))
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_partition_values_of_each_type_come_back(name: str, format_: Any, at: Places) -> None:
    kind, values = KEYS[name]
    schema, batch = keyed(kind, values)
    spec = TableSpec(format=format_, name="shop.keyed", partition_by=("key",))
    table = open_table(spec, at)
    table.create(schema, genesis())
    app = lander(spec, at)
    app.land(0, 3, write_data_files(batch, app.table.layout(), "t"))
    found = content(spec, at)
    assert (
        found.select(["id", "key"]).cast(pa.schema([schema.field("id"), schema.field("key")])).to_pylist()
        == batch.select(["id", "key"]).to_pylist()
    )


@pytest.mark.parametrize(
    ("field", "groups"),
    [
        ("year(at)", 2),
        ("month(at)", 3),
        ("day(at)", 4),
        ("hour(at)", 5),
        ("truncate(10, number)", 3),
        ("truncate(2, text)", 3),
    ],
)
def test_each_iceberg_transform_splits_as_iceberg_does(field: str, groups: int, at: Places) -> None:
    """PyIceberg refuses a file whose bounds lie in two partitions, so that a wrong split cannot be committed."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("at", pa.timestamp("us", tz="UTC")),
            pa.field("number", pa.int32()),
            pa.field("text", pa.string()),
            pa.field("_kafka", KAFKA_TYPE),
        ]
    )
    moments = [
        "1969-12-31T23:59:59",
        "1970-01-01T00:00:00",
        "1970-01-01T23:30:00",
        "1970-01-02T00:00:00",
        "1970-02-01T00:00:00",
    ]
    batch = pa.table(
        {
            "id": range(5),
            "at": pc.assume_timezone(pa.array(moments).cast(pa.timestamp("us")), "UTC"),
            "number": pa.array([-1, -10, 0, 9, 10], pa.int32()),
            "text": ["éa", "éab", "é", "zz", "zzz"],
            "_kafka": rows(0, 5)["_kafka"],
        },
        schema=schema,
    )
    spec = TableSpec(format="iceberg", name="shop.times", partition_by=(field,))
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    files = write_data_files(batch, app.table.layout(), "t")
    assert len(files) == groups
    app.land(0, 5, files)
    assert content(spec, at)["id"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_file_across_two_partitions_is_refused(at: Places) -> None:
    spec = iceberg("day(at)")
    make_table(spec, at)
    app = lander(spec, at)
    files = write_data_files(rows(0, 60), replace(app.table.layout(), fields=()), "t")
    with pytest.raises(TableMismatchError, match=files[0].path.name):
        app.table.commit(files, app.view.entry)  # type: ignore[arg-type]
    assert landed_offsets(app.table) == []


@pytest.mark.parametrize("spec", [delta("nothing"), iceberg("nothing"), iceberg("day(city)"), iceberg("truncate(3, at)")])
def test_rows_that_cannot_be_partitioned_so_are_refused(spec: TableSpec, tmp_path: Path) -> None:
    with pytest.raises(TableMismatchError):
        write_data_files(rows(0, 3), layout_of(spec, tmp_path), "t")


def test_nulls_beside_values_are_refused_because_bounds_do_not_show_them(at: Places) -> None:
    schema, batch = keyed(pa.string(), ["a", None, "a"])
    spec = TableSpec(format="iceberg", name="shop.keyed", partition_by=("key",))
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    files = write_data_files(batch, replace(app.table.layout(), fields=()), "t")
    with pytest.raises(TableMismatchError, match="do not tell one partition"):
        app.land(0, 3, files)


def spark_writes(table: Table, folder: Path, batch: pa.Table, partitions: dict[str, Any], name: str = "part-0") -> Path:
    """Write a file where and how Spark's partitionBy would, leftovers included."""
    for key, value in partitions.items():
        folder = folder / f"{key}={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(str(value), safe=' é')}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.c000.snappy.parquet"
    pq.write_table(batch.cast(table.layout().of_files(batch.schema)), path)
    (folder / f".{path.name}.crc").write_bytes(b"crc")
    return path


def leftovers(folder: Path, source: Path) -> None:
    (folder / "_SUCCESS").touch()
    (folder / "_temporary" / "0").mkdir(parents=True)
    shutil.copy(source, folder / "_temporary" / "0" / "part-9.parquet")
    shutil.copy(source, folder / ".hidden.parquet")


def test_files_of_spark_are_found_and_leftovers_are_not(at: Places) -> None:
    spec = delta()
    app = Lander(make_table(spec, at), lander(spec, at).view)
    written = app.table.layout().folder.path / "lb-1"
    paths = [spark_writes(app.table, written, rows(n, n + 5), {}, f"part-{n}") for n in (0, 5)]
    spark_writes(app.table, written, rows(0, 0), {}, "part-empty")
    leftovers(written, paths[0])
    files = list_data_files(app.table.layout(), written)
    assert [file.path.path for file in files] == paths
    app.land(0, 10, files)
    assert content(spec, at)["id"].to_pylist() == list(range(10))


@pytest.mark.parametrize("value", ["plain", "a b/c=d%20é?#:", "x" * 5000, None])
def test_partition_values_are_those_of_the_rows_whatever_the_folder_is_called(value: str | None, at: Places) -> None:
    schema, batch = keyed(pa.string(), [value, value])
    spec = TableSpec(format="delta", name="shop.keyed", partition_by=("key",))
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    written = app.table.layout().folder.path / "lb-1"
    spark_writes(app.table, written, batch, {"_lb_p0": None if value is None else "3e1f"})
    files = list_data_files(app.table.layout(), written)
    assert [dict(file.partition) for file in files] == [{"key": value}]
    assert not any("=" in str(file.path.path.relative_to(written)) for file in files), "Polars refuses such a table"
    app.land(0, 2, files)
    assert content(spec, at)["key"].to_pylist() == [value, value]
    assert pl.scan_delta(str(at.delta_path(spec))).collect()["key"].to_list() == [value, value]


def test_helper_folders_of_an_iceberg_table_are_no_columns(at: Places) -> None:
    spec = iceberg("day(at)", "city")
    make_table(spec, at)
    app = lander(spec, at)
    written = app.table.layout().folder.path / "lb-1"
    batch = rows(0, 24)
    for city in ("city 0", "city 1", "city 2"):
        chosen = batch.filter(pc.equal(batch["city"], city))
        spark_writes(app.table, written, chosen, {"_lb_p0": "2023-11-15", "_lb_p1": f"v{city}"})
    files = list_data_files(app.table.layout(), written)
    assert [dict(file.partition) for file in files] == [{}, {}, {}]
    app.land(0, 24, files)
    assert content(spec, at)["id"].to_pylist() == list(range(24))


def test_a_missing_partition_folder_is_named(at: Places) -> None:
    for number, (spec, partitions, told) in enumerate(
        (
            (delta("city"), {}, "none instead of _lb_p0"),
            (delta("city"), {"town": "x"}, "town instead of _lb_p0"),
            (delta(), {"town": "x"}, "town instead of none"),
            (iceberg("day(at)"), {}, "none instead of _lb_p0"),
        )
    ):
        table = make_table(spec, places(at.home / str(number)))
        written = table.layout().folder.path / "lb-1"
        spark_writes(table, written, rows(0, 1), partitions)
        with pytest.raises(TableMismatchError, match=told):
            list_data_files(table.layout(), written)


def test_a_file_of_spark_with_several_partition_values_is_refused(at: Places) -> None:
    table = make_table(delta("city"), at)
    written = table.layout().folder.path / "lb-1"
    spark_writes(table, written, rows(0, 3), {"_lb_p0": "any"})
    with pytest.raises(TableMismatchError, match="it does not hold one value of city"):
        list_data_files(table.layout(), written)


def test_int96_timestamps_are_refused_with_the_setting_that_mends_it(tmp_path: Path) -> None:
    pq.write_table(rows(0, 3).select(["at"]), tmp_path / "part-0.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(TableMismatchError, match=r"spark\.sql\.parquet\.outputTimestampType"):
        list_data_files(layout_of(delta(), tmp_path), tmp_path)


def test_files_outside_the_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not in"):
        list_data_files(layout_of(delta(), tmp_path / "table"), tmp_path / "elsewhere")


def test_partition_values_as_delta_writes_them() -> None:
    moment = datetime.datetime(2024, 1, 1, 1, 2, 3, 45)
    texts: list[tuple[pa.DataType, Any, str | None]] = [
        (pa.timestamp("us", "UTC"), moment, "2024-01-01 01:02:03.000045"),
        (pa.timestamp("us"), moment, "2024-01-01 01:02:03.000045"),
        (pa.date32(), datetime.date(2024, 1, 1), "2024-01-01"),
        (pa.bool_(), True, "true"),
        (pa.int64(), -7, "-7"),
        (pa.decimal128(20, 10), Decimal(0), "0.0000000000"),
        (pa.float64(), math.nan, "NaN"),
        (pa.float64(), -math.inf, "-Infinity"),
        (pa.string(), "a/b=c", "a/b=c"),
        (pa.string(), None, None),
    ]
    for kind, value, text in texts:
        assert delta_partition_texts(pa.chunked_array([pa.array([value], kind)])) == [text]
    with pytest.raises(ValueError, match="outside of the years 1 to 9999"):
        delta_partition_text(2**50, pa.date32())
