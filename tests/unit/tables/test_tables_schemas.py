from __future__ import annotations

import pyarrow as pa
import pytest

from lakebound.errors import TableMismatchError
from lakebound.spec.table import TableSpec
from lakebound.tables.schemas import check_partitioning, leaves, normalise_schema, unusable_names


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


def test_types_become_those_that_tables_and_files_hold() -> None:
    found = normalise_schema(
        pa.schema(
            [
                pa.field("a", pa.timestamp("ns", tz="Europe/Berlin"), nullable=False, metadata={"k": "v"}),
                pa.field("b", pa.large_list(pa.field("item", pa.large_string(), nullable=False))),
                pa.field("c", pa.dictionary(pa.int8(), pa.string())),
                pa.field("d", pa.struct([pa.field("e", pa.timestamp("ms"), nullable=False)])),
                pa.field("f", pa.map_(pa.large_string(), pa.binary(3))),
            ]
        ),
    )
    wanted = pa.schema(
        [
            pa.field("a", pa.timestamp("us", tz="UTC")),
            pa.field("b", pa.list_(pa.field("element", pa.string()))),
            pa.field("c", pa.string()),
            pa.field("d", pa.struct([pa.field("e", pa.timestamp("us"))])),
            pa.field("f", pa.map_(pa.string(), pa.binary())),
        ]
    )
    assert found.equals(wanted, check_metadata=True)
    assert normalise_schema(found).equals(found)


@pytest.mark.parametrize(
    ("format_", "field", "kind"),
    [
        ("iceberg", "day(c)", pa.string()),
        ("iceberg", "hour(c)", pa.date32()),
        ("iceberg", "truncate(3, c)", pa.float64()),
        ("iceberg", "c", pa.float64()),
        ("iceberg", "c", pa.binary()),
        ("delta", "c", pa.struct([("x", pa.int64())])),
        ("delta", "missing", pa.int64()),
    ],
)
def test_a_partitioning_that_does_not_go_with_its_column_is_refused(format_: str, field: str, kind: pa.DataType) -> None:
    spec = TableSpec.model_validate({"format": format_, "name": "shop.orders", "partition_by": [field]})
    with pytest.raises(TableMismatchError, match="partitioned by"):
        check_partitioning(spec.id, spec.format, spec.partition_fields(), schema(c=kind))


def test_leaves_are_the_columns_below_structs() -> None:
    nested = schema(
        a=pa.int64(), s=pa.struct([("x", pa.string()), ("t", pa.struct([("y", pa.date32())]))]), l=pa.list_(pa.int64())
    )
    assert [path for path, _ in leaves(nested)] == [("a",), ("s", "x"), ("s", "t", "y"), ("l",)]


def test_columns_that_spark_adds_to_iceberg_tables_are_no_names_there() -> None:
    added = ["_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number", "_FILE"]
    assert unusable_names("iceberg", ["a", "file", "_kafka"]) == {}
    for name in added:
        assert unusable_names("iceberg", ["a", name]).keys() == {name}
        assert unusable_names("delta", ["a", name]) == {}
