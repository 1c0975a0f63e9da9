"""Orders of which one in a hundred is bad, in five ways, landed in real tables; and which these are."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import Any

import pyarrow as pa

from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table
from tests.support.tables.local_tables import PIPELINE, TOPIC, TOPIC_ID, genesis, offsets

SCHEMA = pa.schema(
    [
        pa.field("order_id", pa.string()),
        pa.field("customer_id", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("currency", pa.string()),
        pa.field("total", pa.float64()),
        pa.field("placed_at", pa.timestamp("us", tz="UTC")),
        pa.field("items", pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("quantity", pa.int32())]))),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)
STATUSES = ("placed", "paid", "shipped")
CUSTOMERS = 200
STRANGE = "</code></td><script>eaten()</script><img src=x onerror='eaten()'>&lt;b&gt;\""
"""A status that would be markup in a page."""

KINDS = ("no_time", "strange_status", "negative_total", "second_time", "lower_currency")


class BadOrders:
    """Makes rows, and remembers the offsets of the bad ones by kind."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self.bad: defaultdict[str, list[int]] = defaultdict(list)

    def rows(self, start: int, end: int) -> pa.Table:
        """Return one row per offset; of every hundred, one is bad, each time in the next way."""
        return pa.Table.from_pylist([self._row(offset, start) for offset in range(start, end)], schema=SCHEMA)

    def _row(self, offset: int, first: int) -> dict[str, Any]:
        now_us = time.time_ns() // 1000
        row: dict[str, Any] = {
            "order_id": f"order-{offset:07d}",
            "customer_id": self._chance.randrange(CUSTOMERS),
            "status": self._chance.choice(STATUSES),
            "currency": "EUR",
            "total": round(self._chance.uniform(1, 500), 2),
            "placed_at": now_us,
            "items": [{"sku": "a", "quantity": 1}],
            "_kafka": {
                "topic": TOPIC,
                "topic_id": TOPIC_ID,
                "partition": 0,
                "offset": offset,
                "timestamp": now_us,
                "ordinal": 0,
            },
        }
        if offset % 100 == 50:
            kind = KINDS[offset // 100 % len(KINDS)]
            self.bad[kind].append(offset)
            row |= {
                "no_time": {"placed_at": None},
                "strange_status": {"status": STRANGE},
                "negative_total": {"total": -1.0},
                # Of an order that came shortly before, perhaps in another commit.
                "second_time": {"order_id": f"order-{offset - 51:07d}"},
                "lower_currency": {"currency": "eur"},
            }[kind]
        return row


def make(spec: TableSpec, at: Places, schema: pa.Schema = SCHEMA) -> None:
    """Make an empty table."""
    table = open_table(spec, at)
    table.create(schema, genesis())


def land(spec: TableSpec, at: Places, rows: pa.Table, start: int) -> None:
    """Land rows, whose offsets begin at ``start``, in one commit."""
    table = open_table(spec, at)
    view = table.read_ledger()
    count = rows.num_rows
    entry = Entry(
        kind="land",
        pipeline=PIPELINE,
        epoch=view.epoch,
        commit=new_commit_id(),
        range=offsets(start, start + count),
        read=count,
        landed=count,
        rows=count,
        lane="driver",
    )
    files = write_data_files(rows, table.layout(), f"batch-{start}")
    commit_entry(table, view, files, entry, own_epoch=view.epoch, check_lease=lambda: None, attempts=3)
