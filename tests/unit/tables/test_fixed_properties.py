"""Properties that no table of ours can have are refused before a table is made, and for one that is there."""

from __future__ import annotations

import pytest
from tests.support.tables.local_tables import SCHEMA, pipeline_over

from lakebound.spec.table import TableSpec
from lakebound.tables.plan import FoundTable, plan_table

FIXED = [
    ("delta", "delta.columnMapping.mode", "none", "name"),
    ("delta", "delta.columnMapping.mode", "none", "id"),
    ("iceberg", "format-version", "2", "3"),
    ("iceberg", "write.format.default", "parquet", "orc"),
    ("iceberg", "write.object-storage.enabled", "false", "true"),
]


@pytest.mark.parametrize(("kind", "name", "right", "wrong"), FIXED)
def test_a_property_has_its_one_value_or_is_refused_with_its_place(kind: str, name: str, right: str, wrong: str) -> None:
    for value, is_refused in ((right, False), (wrong, True)):
        body = {"format": kind, "name": "shop.orders", "properties": {name: value}}
        spec = TableSpec.model_validate(body)
        for found in (None, FoundTable(SCHEMA, (), properties={name: value})):
            plan = plan_table(pipeline_over(spec), spec, found, SCHEMA, ())
            assert [one.keys for one in plan.differences] == ([("properties", name)] if is_refused else [])
