"""Which types of a file's column become the table's: those that Iceberg widens, and no other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField, StringType

from lakebound.tables.iceberg.rows import NotRewritableError, RowReader, widens
from lakebound.tables.places import local_places


def item(held: pa.DataType) -> pa.DataType:
    return pa.struct([numbered("n", held)])


def numbered(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(ord(name[0]))})


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.int16(), pa.int32()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2)),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="UTC")),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int64()))),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64())),
        (item(pa.int32()), pa.struct([numbered("later", pa.string()), numbered("n", pa.int64())])),
    ],
)
def test_what_iceberg_widens_and_what_is_written_otherwise_is_the_same(held: pa.DataType, wanted: pa.DataType) -> None:
    assert widens(held, wanted) and widens(wanted, wanted)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.float64()),
        (pa.uint32(), pa.int64()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.decimal128(9, 2)),
        (pa.decimal128(9, 2), pa.decimal128(5, 2)),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.int32(), pa.decimal128(12, 0)),
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
        (pa.bool_(), pa.int32()),
        (pa.binary(), pa.string()),
        (pa.list_(pa.string()), pa.list_(pa.int64())),
        (pa.list_(pa.string()), pa.string()),
        (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int32())),
        (pa.map_(pa.int32(), pa.string()), pa.map_(pa.string(), pa.string())),
        (item(pa.string()), item(pa.int64())),
    ],
)
def test_everything_else_is_another_column(held: pa.DataType, wanted: pa.DataType) -> None:
    assert not widens(held, wanted)


def test_a_file_with_a_column_of_another_type_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """A column was dropped, and another one added under its name: its texts may even look like numbers."""
    schema = Schema(NestedField(1, "id", LongType(), required=False), NestedField(9, "city", LongType(), required=False))
    metadata = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(tmp_path), {})
    mapping = {"schema.name-mapping.default": metadata.schema().name_mapping.model_dump_json()}
    metadata = metadata.model_copy(update={"properties": mapping})
    handle = Table(("shop", "orders"), metadata, "", load_file_io(), NoopCatalog("none"))
    path = tmp_path / "batch.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "city": ["7"]}), path)
    reader = RowReader(handle, "iceberg:shop.orders", local_places(tmp_path, tmp_path))
    with pytest.raises(
        NotRewritableError, match=r"column city has type STRING in file batch\.parquet, but type BIGINT in the table"
    ):
        list(reader.read(str(path)))
    ids = {one.name: one.field_id for one in metadata.schema().fields}
    city = NestedField(ids["city"], "city", StringType(), required=False)
    as_text = metadata.model_copy(update={"schemas": [Schema(metadata.schema().fields[0], city)]})
    handle.metadata = as_text
    (found,) = RowReader(handle, "iceberg:shop.orders", local_places(tmp_path, tmp_path)).read(str(path))
    assert found.to_pydict() == {"id": [1], "city": ["7"]} and found.schema.field("id").type == pa.int64()
