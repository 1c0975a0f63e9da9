"""Stores as targets, without a server: the last row of a key, buckets, texts, statements, and what the YAML may say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from lakebound.errors import TableMismatchError
from lakebound.landing.to_stores.bucket_counts import bucket_counts
from lakebound.landing.to_stores.postgres_statements import column_problem, table_columns
from lakebound.landing.to_stores.redis_script import packed
from lakebound.landing.to_stores.store_rows import last_of_each_key, row_changes, staged_schema, texts, tombstone_rows
from lakebound.spec.to_stores import CountersSpec, ToStoreSpec
from lakebound.tables.fitting import fit_rows
from lakebound.tables.table import KAFKA_TYPE

POSTGRES = {"host": "db", "database": "shop", "username": "lake", "password": {"env": "LAKEBOUND_SECRET_X"}}
REDIS = {"host": "cache"}
TIME = pa.timestamp("us", tz="UTC")
OUTPUT = pa.schema(
    {
        "card": pa.string(),
        "paid_at": TIME,
        "cents": pa.int64(),
        "gone": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "_kafka": KAFKA_TYPE,
    }
)
COUNTERS = {"time": "paid_at", "windows": {"1m": "5s"}, "sums": ["cents"]}


def store(**more: Any) -> ToStoreSpec:
    where = {} if "postgres" in more else {"redis": REDIS}
    return ToStoreSpec.model_validate({"name": "cards", "key": "card", **where, **more})


def rows(*given: tuple[str, int, int], **columns: Any) -> pa.Table:
    """Return rows of (card, partition, offset)."""
    kafka = [
        {"topic": "t", "topic_id": "i", "partition": partition, "offset": offset, "timestamp": None, "ordinal": 0}
        for _, partition, offset in given
    ]
    return pa.table({"card": [card for card, _, _ in given], **columns, "_kafka": pa.array(kafka, KAFKA_TYPE)})


def test_the_last_row_of_a_key_is_by_source_position_and_not_by_its_place_in_the_batch() -> None:
    given = rows(("a", 0, 9), ("b", 1, 1), ("a", 0, 3), ("a", 0, 7), ("b", 0, 99), n=[1, 2, 3, 4, 5])

    assert sorted(last_of_each_key(given, "card").select(["card", "n"]).to_pylist(), key=str) == [
        {"card": "a", "n": 1},
        {"card": "b", "n": 2},
    ]


def test_a_key_goes_where_its_last_row_says_so() -> None:
    given = rows(("a", 0, 1), ("a", 0, 2), ("b", 0, 3), ("b", 0, 4), ("c", 0, 5), gone=[False, True, True, None, True])
    found = row_changes(store(delete_if="gone"), given)

    assert found.rows is not None
    assert found.gone is not None
    assert (found.rows.to_pylist(), sorted(found.gone.to_pylist())) == ([{"card": "b"}], ["a", "c"])


@pytest.mark.parametrize("delete_if", [None, "gone"])
def test_a_tombstone_is_the_last_of_its_key_or_is_not_by_its_place_in_kafka(delete_if: str | None) -> None:
    upserts = rows(("a", 0, 1), ("b", 0, 2), ("c", 0, 7), ("c", 1, 1), gone=pa.array([None] * 4, pa.bool_()))
    gone = rows(("a", 0, 4), ("b", 0, 1), ("c", 0, 9), ("d", 0, 5))
    tombstones = tombstone_rows("card", gone["card"].combine_chunks(), gone["_kafka"].combine_chunks())
    batch = pa.concat_tables([fit_rows(tombstones, upserts.schema), upserts])

    found = row_changes(store(delete_if=delete_if), batch, tombstones=True)

    assert found.rows is not None
    assert found.gone is not None
    assert sorted(found.rows["card"].to_pylist()) == ["b", "c"]
    assert sorted(found.gone.to_pylist()) == ["a", "d"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["é", None]), ["é".encode(), None]),
        (pa.array([b"\xff"]), [b"\xff"]),
        (pa.array([-7, 2**62]), [b"-7", b"4611686018427387904"]),
        (pa.array([True]), [b"true"]),
        (pa.array([0.1]), [b"0.1"]),
        (pa.array([Decimal("1.50")]), [b"1.50"]),
        (pa.array([date(2026, 1, 2)]), [b"2026-01-02"]),
        (pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC)], TIME), [b"2026-01-02T03:04:05.000006Z"]),
        (pa.array([["a", "é"]]), ['["a","é"]'.encode()]),
        (pa.array([{"n": 1, "at": date(2026, 1, 2)}]), [b'{"n":1,"at":"2026-01-02"}']),
        (pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())), [b'{"k":1.5}']),
    ],
)
def test_values_stand_in_redis_as_text(values: pa.Array, expected: list[bytes | None]) -> None:
    assert texts(pa.chunked_array([values])) == expected


def test_rows_are_counted_in_the_bucket_of_their_time_unless_it_is_over_or_far_ahead() -> None:
    now = 1_000_000
    seconds = [now, now - 1, now - 5, now - 61, now - 65, now + 60, now + 61]
    times = pa.array([second * 1_000_000 + 999_999 for second in seconds], TIME)
    table = pa.table({"card": ["a"] * 7, "paid_at": times, "cents": pa.array([1, 2, 4, 8, 16, None, 64], pa.int32())})

    found = bucket_counts(table, "card", CountersSpec.model_validate(COUNTERS), "1m", now)

    assert sorted(found.to_pylist(), key=lambda one: one["bucket"]) == [
        {"_key": "a", "bucket": now - 5, "count": 2, "cents": 6},
        {"_key": "a", "bucket": now, "count": 1, "cents": 1},
        {"_key": "a", "bucket": now + 60, "count": 1, "cents": 0},
    ]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"key": "nothing"}, "needs the column 'nothing'"),
        ({"key": "tags"}, "its key 'tags' is of type ARRAY"),
        ({"delete_if": "cents"}, "not BOOLEAN"),
        ({"counters": {**COUNTERS, "time": "cents"}}, "not TIMESTAMP"),
        ({"counters": {**COUNTERS, "sums": ["tags"]}}, "sums are of whole numbers"),
    ],
)
def test_columns_that_a_store_cannot_use_are_refused(more: Mapping[str, Any], what: str) -> None:
    with pytest.raises(TableMismatchError, match=what):
        staged_schema(store(**more), OUTPUT)


def test_a_table_has_types_of_postgresql_and_may_have_wider_ones() -> None:
    rows = store(postgres=POSTGRES, delete_if="gone")
    wanted = table_columns(rows, staged_schema(store(delete_if="gone"), OUTPUT))
    assert wanted == {"card": "text", "paid_at": "timestamp with time zone", "cents": "bigint", "tags": "jsonb"}
    assert column_problem(rows, wanted, {**wanted, "cents": "numeric", "more": "xml"}) is None
    assert "no column cents" in str(column_problem(rows, wanted, {"card": "text", "paid_at": wanted["paid_at"]}))
    assert "is of type integer" in str(column_problem(rows, wanted, {**wanted, "cents": "integer"}))
    counters = store(postgres=POSTGRES, counters=COUNTERS)
    assert list(table_columns(counters, staged_schema(counters, OUTPUT))) == [
        "card",
        "window_seconds",
        "bucket",
        "count",
        "cents",
    ]


def test_lists_and_bytes_are_packed_as_old_servers_read_them() -> None:
    assert packed(["é", [b"\xff"]]) == b"\xdd\0\0\0\x02\xdb\0\0\0\x02\xc3\xa9\xdd\0\0\0\x01\xdb\0\0\0\x01\xff"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"redis": REDIS, "postgres": POSTGRES}, "either 'postgres' or 'redis'"),
        ({"redis": REDIS, "name": "lakebound"}, "uses itself"),
        ({"redis": REDIS, "name": "a:b"}, "is not a name"),
        ({"redis": REDIS, "counters": {**COUNTERS, "windows": {"1m": "7s"}}}, "whole buckets"),
        ({"redis": REDIS, "counters": {**COUNTERS, "windows": {"1m": "5s", "60s": "5s"}}}, "the same length"),
        ({"redis": REDIS, "counters": {**COUNTERS, "sums": ["count"]}}, "rename the column"),
        ({"redis": REDIS, "counters": COUNTERS, "columns": ["cents"]}, "not for counters"),
        ({"redis": {"host": "redis://:hunter2@cache"}}, "must be a host's name"),
        ({"redis": {"host": "cache", "username": "lake"}}, "password is missing"),
    ],
)
def test_a_store_that_cannot_be_is_a_mistake_in_the_yaml(body: Mapping[str, Any], what: str) -> None:
    with pytest.raises(ValidationError, match=what) as refused:
        ToStoreSpec.model_validate({"name": "cards", "key": "card", **body})
    assert "hunter2" not in str([error["msg"] for error in refused.value.errors()])
