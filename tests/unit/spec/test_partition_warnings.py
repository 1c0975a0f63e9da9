"""A text column by which Delta is partitioned beside Iceberg is warned of by its type, also where a transform makes it."""

from __future__ import annotations

import pytest

from lakebound.spec.partition_warnings import partition_warnings
from lakebound.spec.pipeline import PipelineSpec

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "placed_at TIMESTAMP"},
        "transform": "transforms.orders.with_date",
        "freshness": "1s",
        "tables": [
            {"format": "delta", "name": "shop.orders", "partition_by": ["at_date"]},
            {"format": "iceberg", "name": "shop.orders"},
        ],
    }
)


@pytest.mark.parametrize(
    ("tables", "warned"),
    [
        ({"delta:shop.orders": {"at_date": "date"}}, 0),
        ({"delta:shop.orders": {"at_date": "string"}}, 1),
        ({"iceberg:shop.orders": {"at_date": "string"}}, 0),
        ({}, 0),
    ],
)
def test_the_type_that_a_transform_gives_a_column_decides(tables: dict[str, dict[str, str]], warned: int) -> None:
    assert len(list(partition_warnings(SPEC, tables))) == warned
