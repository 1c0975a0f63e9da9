"""No value of a partition column, of whatever type, is taken for a null of the log: each file is read as it was written."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import genesis, lander, rows

from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table

UTC = pa.timestamp("us", tz="UTC")
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal": (pa.decimal128(9, 2), [Decimal("-0.50"), Decimal("-1.50"), Decimal("7.25"), None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 0, None]),
    "boolean": (pa.bool_(), [True, False, None, True]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2024, 2, 29), None]),
    "timestamp": (UTC, [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC), 0, 1, None]),
    "double": (pa.float64(), [-0.0, math.inf, math.nan, 1e-300]),
    "text": (pa.string(), ["", " ", "a/b=c%20 ä", None]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_partition_value_is_no_null(kind: str, at: Places) -> None:
    column, values = VALUES[kind]
    spec = TableSpec(format="delta", name="shop.orders", partition_by=("v",))
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", column), pa.field("_kafka", KAFKA_TYPE)])
    open_table(spec, at).create(schema, genesis())
    app, batch = lander(spec, at), rows(0, len(values))
    held = pa.table([batch["id"], pa.array(values, column), batch["_kafka"]], schema=schema)
    app.land(0, len(values), write_data_files(held, app.table.layout(), "values"))
    look = app.table.misread_columns()
    assert look.files == look.looked_at > 1 and look.misread == ()
