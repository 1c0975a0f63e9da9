"""A partition's name and values, as a plan has them, stand for the conditions that its rows meet."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from lakebound.operations.maintenance.iceberg.partition import Condition, PartitionUnknownError, conditions


def metadata(kind: IcebergType, *transforms: str) -> TableMetadata:
    schema = Schema(NestedField(1, "c", kind, required=False), NestedField(2, "other", StringType(), required=False))
    fields = [
        PartitionField(source_id=1, field_id=1000 + number, transform=parse_transform(text), name=f"c_{number}")
        for number, text in enumerate(transforms)
    ]
    return new_table_metadata(schema, PartitionSpec(*fields), UNSORTED_SORT_ORDER, "file:///t", {})


@pytest.mark.parametrize(
    ("kind", "transform", "value", "literal"),
    [
        (TimestamptzType(), "day", 19_676, "2023-11-15"),
        (TimestamptzType(), "hour", 472_224 + 5, 472_229),
        (TimestamptzType(), "hour", -5, -5),
        (TimestamptzType(), "month", 646, 646),
        (TimestamptzType(), "month", -3, -3),
        (TimestamptzType(), "year", 53, 53),
        (TimestamptzType(), "year", -3, -3),
        (TimestamptzType(), "identity", 1_700_006_400_000_001, "2023-11-15T00:00:00.000001+00:00"),
        (DateType(), "identity", 19_676, "2023-11-15"),
        (DateType(), "month", 646, 646),
        (StringType(), "identity", "a/b=c d", "a/b=c d"),
        (StringType(), "truncate[3]", "abc", "abc"),
        (StringType(), "bucket[16]", 7, 7),
        (LongType(), "identity", 2**40, 2**40),
        (LongType(), "truncate[10]", -20, -20),
        (IntegerType(), "bucket[4]", 0, 0),
        (BooleanType(), "identity", True, True),
        (BooleanType(), "identity", False, False),
        (DecimalType(9, 2), "identity", Decimal("-1.50"), Decimal("-1.50")),
        (DoubleType(), "identity", 1.5, 1.5),
    ],
)
def test_a_value_as_iceberg_writes_it_is_read_back(kind: IcebergType, transform: str, value: Any, literal: Any) -> None:
    text = parse_transform(transform).to_human_string(kind, value)
    (found,) = conditions({"c_0": text}, metadata(kind, transform), "t")
    assert found == Condition(transform, "c", literal) and type(found.value) is type(literal)


def test_null_is_a_value_of_its_own() -> None:
    assert conditions({"c_0": None}, metadata(StringType(), "identity"), "t") == (Condition("identity", "c", None),)
    assert conditions({"c_0": "null"}, metadata(StringType(), "identity"), "t")[0].value == "null"


def test_a_field_that_was_given_up_is_no_condition() -> None:
    found = conditions({"c_0": None, "c_1": "5"}, metadata(LongType(), "void", "identity"), "t")
    assert found == (Condition("identity", "c", 5),)


@pytest.mark.parametrize(
    ("kind", "partition"),
    [(LongType(), {"day": "2023-11-15"}), (LongType(), {"c_0": "x"}), (BinaryType(), {"c_0": "AA=="}), (LongType(), {})],
)
def test_what_is_none_of_the_tables_partitions_is_refused(kind: IcebergType, partition: dict[str, str | None]) -> None:
    with pytest.raises(PartitionUnknownError, match="the next run makes a new plan"):
        conditions(partition, metadata(kind, "identity"), "t")
