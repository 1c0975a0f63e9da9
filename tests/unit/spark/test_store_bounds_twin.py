"""The rows that a store takes: the same ones while they land and when they come from a table."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.landing.to_stores.value_bounds import value_problems
from lakebound.spec.to_stores import ToStoreSpec
from lakebound_spark.batch.store_bounds import store_bounds

COLUMNS = pa.schema(
    [
        pa.field("card", pa.string()),
        pa.field("amount", pa.int64()),
        pa.field("paid_at", pa.timestamp("us", tz="UTC")),
        pa.field("items", pa.list_(pa.struct([pa.field("tags", pa.map_(pa.string(), pa.string()))]))),
    ]
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "card": ["a", "", "x" * 512, "x" * 513, "ü" * 257, "a\x00", None],
    "amount": [0, None, 10**12, 10**12 + 1, -(10**12), -(10**12) - 1],
    "paid_at": [NOW, None],
    "items": [
        None,
        [],
        [None],
        [{"tags": None}],
        [{"tags": [("k", "v")]}],
        [{"tags": [("k", "\x00")]}],
        [{"tags": [("\x00", "v")]}],
    ],
}
SERVERS = {
    "postgres": {"host": "db", "database": "shop", "username": "lake", "password": {"env": "LAKEBOUND_SECRET_X"}},
    "redis": {"host": "cache"},
}


def test_both_refuse_the_same_rows() -> None:
    seen = set()
    for server, counts in itertools.product(SERVERS, (False, True)):
        body = {"counters": {"time": "paid_at", "windows": {"1h": "1m"}, "sums": ["amount"]}} if counts else {}
        spec = ToStoreSpec.model_validate({"name": "cards", "key": "card", server: SERVERS[server], **body})
        schema = staged_schema(spec, COLUMNS)
        for column, values in VALUES.items():
            for value in values:
                row = {"card": "a", "amount": 1, "paid_at": NOW, "items": None, column: value}
                rows = pa.Table.from_pylist([{name: row.get(name) for name in schema.names}], schema=schema)
                bounds = store_bounds(spec, COLUMNS)
                told = [one.told for one in bounds if not one.holds(rows)]
                assert value_problems(spec, rows) == [sentence.removeprefix(f"{spec.id}: ") for sentence in told], (spec, row)
                seen.update(told)
    assert len(seen) > 6
