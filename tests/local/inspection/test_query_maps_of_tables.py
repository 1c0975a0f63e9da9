"""A map of a real table is indexed in a query, in both formats."""

from __future__ import annotations

import pyarrow as pa
from tests.support.tables.bad_orders import land, make
from tests.support.tables.local_tables import TOPIC, TOPIC_ID

from lakebound.inspection.query import PipelineTables, run_query
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE

SCHEMA = pa.schema([pa.field("tags", pa.map_(pa.string(), pa.int64())), pa.field("_kafka", KAFKA_TYPE)])


def test_a_map_is_indexed_by_a_key(spec: TableSpec, at: Places) -> None:
    kafka = {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "timestamp": 10**15, "ordinal": 0}
    tags = [[("colour", 1), ("size", 2)], [("colour", 3)], [], None]
    rows = [{"tags": one, "_kafka": {**kafka, "offset": offset}} for offset, one in enumerate(tags)]
    make(spec, at, SCHEMA)
    land(spec, at, pa.Table.from_pylist(rows, schema=SCHEMA), 0)
    tables = {"orders": PipelineTables([spec], at)}
    found = run_query(f"SELECT tags['colour'] FROM {spec.name} ORDER BY _kafka.offset", tables)
    assert found.rows == ((1,), (3,), (None,), (None,))
