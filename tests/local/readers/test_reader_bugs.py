"""What readers do wrong, each by the smallest case, and what goes right instead; see docs/readers.md.

A test that fails here is good news: the reader was mended. Take its bug out of
``tests/support/readers/bugs.py`` and of the docs.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.support.readers.bugs import BUGS
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import genesis, lander, rows
from tests.support.tables.mapped_columns import ColumnMapping, seen_rows

from lakebound.operations.maintenance.engines import carried_entry
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan, Widening
from lakebound.tables.table import KAFKA_TYPE, open_table

DELTA, ICEBERG = (TableSpec(format=kind, name="shop.values") for kind in ("delta", "iceberg"))
VERSIONS = {"deltalake": "1.6.6", "pyarrow": "26.0.1", "pyiceberg": "0.12.0", "polars": "2.1.0"}


def make(spec: TableSpec, at: Places, kind: pa.DataType, files: Sequence[Sequence[Any]], added: str = "") -> None:
    """Land files of these values; with ``added`` the last is one of a table that has this column since."""
    columns = [pa.field("id", pa.int64()), pa.field("v", kind), pa.field("_kafka", KAFKA_TYPE)]
    open_table(spec, at).create(pa.schema([one for one in columns if not added or one.name != "v"]), genesis())
    start = 0
    for number, values in enumerate(files):
        if added and number == len(files) - 1:
            open_table(spec, at).change_schema(SchemaPlan((Addition((added,), kind),)), carried_entry(spec, at))
        batch = rows(start, start + len(values))
        held = {"id": batch["id"], added or "v": pa.array(values, kind), "_kafka": batch["_kafka"]}
        if added and number < len(files) - 1:
            del held[added]
        app = lander(spec, at)
        app.land(start, start + len(values), write_data_files(pa.table(held), app.table.layout(), "t"))
        start += len(values)


def dataset(at: Places, expression: ds.Expression, spec: TableSpec = DELTA) -> list[int]:
    found: list[int] = DeltaTable(str(at.delta_path(spec))).to_pyarrow_dataset().to_table(filter=expression)["id"].to_pylist()
    return sorted(found)


def sql(at: Places, condition: str) -> list[int]:
    builder = QueryBuilder().register("t", DeltaTable(str(at.delta_path(DELTA))))
    return sorted(pa.table(builder.execute(f"SELECT id FROM t WHERE {condition}").read_all())["id"].to_pylist())


def pyiceberg(at: Places, condition: Any) -> list[int]:
    found: list[int] = foreign_iceberg(ICEBERG, at).scan(condition).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_the_bugs_are_those_of_these_versions() -> None:
    """Of other versions this file must be gone through, and docs/readers.md."""
    assert {name: version(name) for name in VERSIONS} == VERSIONS
    text = (Path(__file__).parents[3] / "docs" / "readers.md").read_text()
    for bug in BUGS:
        assert f"`{bug.name}`" in text, f"docs/readers.md does not tell of {bug.name}"
    for name, number in VERSIONS.items():
        assert number in text, f"docs/readers.md does not name {name} {number}"


def test_nan_bound(at: Places) -> None:
    """deltalake takes the upper bound that is missing for one that no row satisfies; SQL and Polars do not."""
    make(DELTA, at, pa.float64(), [[1.0, math.nan], [2.0, 3.0]])
    assert dataset(at, ds.field("v") < 5.0) == [2, 3]
    assert dataset(at, ds.field("v") == 1.0) == []
    assert dataset(at, ds.field("v").is_valid()) == [0, 1, 2, 3]
    assert sql(at, "v >= 1 AND v < 3") == [0, 2]


def test_nan_literal(at: Places) -> None:
    make(DELTA, at, pa.float64(), [[1.0], [2.0]])
    assert dataset(at, ds.field("v") < math.nan) == [0, 1]


def test_null_count_of_added_column(at: Places) -> None:
    make(DELTA, at, pa.int64(), [[1, 2], [None, 4]], added="later")
    assert dataset(at, ds.field("later").is_null()) == [2]
    assert dataset(at, ds.field("later").is_valid()) == [0, 1, 3]
    assert sql(at, "later IS NULL") == [0, 1, 2]


def test_negative_decimal_partition(at: Places) -> None:
    spec = TableSpec(format="delta", name="shop.values", partition_by=("v",))
    make(spec, at, pa.decimal128(9, 2), [[Decimal("-1.50")]])
    with pytest.raises(pa.ArrowInvalid, match=r"-1\.-50"):
        dataset(at, ds.field("id") == 0, spec)
    assert sql(at, "v = -1.5") == [0]


def test_zeros_in_list(at: Places) -> None:
    for spec in (DELTA, ICEBERG):
        make(spec, at, pa.float64(), [[-0.0, 0.0, 1.0]])
    assert dataset(at, ds.field("v").isin([0.0, 1.0])) == [1, 2]
    assert dataset(at, ds.field("v") == 0.0) == [0, 1]
    assert pyiceberg(at, "v in (0.0, 1.0)") == [1, 2]
    assert pyiceberg(at, "v = 0.0") == [0, 1]


def test_column_mapping_of_old_protocol(at: Places) -> None:
    """PyArrow's reader goes by the names that people know; queries go by the names in the files."""
    make(DELTA, at, pa.string(), [["a"]])
    folder = at.delta_path(DELTA)
    mapping = ColumnMapping(folder)
    mapping.switch_on("legacy")
    mapping.rename("v", "w")
    mapping.add("v")
    assert [(row["w"], row["v"]) for row in seen_rows(folder)] == [("a", None)]
    assert DeltaTable(str(folder)).to_pyarrow_table(columns=["w", "v"]).to_pylist() == [{"w": None, "v": "a"}]


def test_zeros_in_long_list(at: Places) -> None:
    make(DELTA, at, pa.float64(), [[-0.0, 0.0, 1.0]])
    assert sql(at, f"v IN ({floats(0.0, 5.0, 6.0)})") == [0, 1]
    assert sql(at, f"v IN ({floats(0.0, 5.0, 6.0, 7.0)})") == [1]
    assert sql(at, f"v IN ({floats(-0.0, 5.0, 6.0, 7.0)})") == [0]


def test_zeros_in_long_list_of_a_struct(at: Places) -> None:
    make(DELTA, at, pa.struct([("d", pa.float64())]), [[{"d": -0.0}, {"d": 0.0}, {"d": 1.0}]])
    assert sql(at, f"v['d'] IN ({floats(0.0, 5.0)})") == [1]
    assert sql(at, f"v['d'] = {floats(0.0)}") == [0, 1]


def floats(*values: float) -> str:
    return ", ".join(f"arrow_cast('{value!r}', 'Float64')" for value in values)


def test_unequal_of_added_column(at: Places) -> None:
    make(ICEBERG, at, pa.int64(), [[1, 2], [None, 4, 5]], added="later")
    assert pyiceberg(at, "later <> 4") == [0, 1, 4]
    assert pyiceberg(at, "later > 4") == [4]


def test_literal_beyond_float32(at: Places) -> None:
    from pyiceberg.expressions import LessThanOrEqual

    make(ICEBERG, at, pa.float32(), [[-math.inf, 1.0]])
    assert pyiceberg(at, LessThanOrEqual("v", -math.inf)) == []
    assert pyiceberg(at, LessThanOrEqual("v", -3.4028234663852886e38)) == [0]


@pytest.mark.parametrize("files", [[[1, 4]], [[1], [4]]], ids=["from the start", "added"])
def test_dot_in_name(at: Places, files: list[list[int]]) -> None:
    from pyiceberg.expressions import EqualTo

    make(ICEBERG, at, pa.int64(), files, added="a.b")
    with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
        pyiceberg(at, EqualTo("a.b", 4))


def test_end_of_time(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.values", partition_by=("month(v)",))
    make(spec, at, pa.date32(), [[datetime.date(1, 1, 1), datetime.date(2026, 1, 1)]])
    for condition in ("v < '0001-01-01'", "v > '9999-12-31'"):
        with pytest.raises(OverflowError):
            pyiceberg(at, condition)
    assert pyiceberg(at, "v > '0001-01-01'") == [1]


def test_null_of_list(at: Places) -> None:
    make(ICEBERG, at, pa.list_(pa.float64()), [[[1.0], None]])
    with pytest.raises(ValueError, match="Cannot explicitly project List or Map"):
        pyiceberg(at, "v is null")


def test_null_of_structs_is_empty(at: Places) -> None:
    element = pa.struct([("b", pa.int64())])
    make(ICEBERG, at, pa.list_(pa.field("element", element)), [[None, [], [{"b": 1}]]])
    table = foreign_iceberg(ICEBERG, at)
    assert table.scan().to_arrow()["v"].to_pylist() == [[], [], [{"b": 1}]]
    (file,) = table.inspect.files()["file_path"].to_pylist()
    assert pq.read_table(file.removeprefix("file://"))["v"].to_pylist() == [None, [], [{"b": 1}]], "the file is right"


def test_literal_beyond_older_files(at: Places) -> None:
    widened(at, pa.decimal128(9, 2), pa.decimal128(30, 2), [Decimal("1.50")])
    assert pyiceberg(at, "v < 9999999.99") == [0]
    with pytest.raises(pa.ArrowInvalid, match="Decimal type with precision"):
        pyiceberg(at, "v > -99999999999999.99")


def test_literal_beyond_older_files_of_integers(at: Places) -> None:
    widened(at, pa.int32(), pa.int64(), [-(2**31), 0, 2**31 - 1, None])
    assert pyiceberg(at, f"v <= {2**31 - 1}") == [0, 1, 2]
    assert pyiceberg(at, f"v < {2**63 - 1}") == [0, 1, 2, 3], "the last is null"
    assert pyiceberg(at, f"v = {2**63 - 1}") == []


def widened(at: Places, narrow: pa.DataType, wide: pa.DataType, values: list[Any]) -> None:
    """Land a file of these values in a column that gets a wider type afterwards."""
    make(ICEBERG, at, narrow, [values])
    open_table(ICEBERG, at).change_schema(SchemaPlan(widenings=(Widening(("v",), narrow, wide),)), carried_entry(ICEBERG, at))


def test_each_bug_has_its_case() -> None:
    cases = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    cases |= {"nan-beside-numbers", "dot-beside-struct"}  # need Spark: tests/spark/test_reader_rows.py
    assert {bug.name for bug in BUGS} <= cases
