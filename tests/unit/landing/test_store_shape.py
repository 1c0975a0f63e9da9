"""The shape of a store: what of a changed YAML is a difference, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from lakebound.landing.to_stores.shape import StoreShape, differences, shape_of
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.table import KAFKA_TYPE

SERVERS: dict[str, Any] = {
    "redis": {"host": "cache"},
    "postgres": {"host": "db", "database": "shop", "username": "lake", "password": {"env": "LAKEBOUND_SECRET_X"}},
}
OUTPUT: dict[str, pa.DataType] = {
    "card": pa.string(),
    "shop": pa.string(),
    "paid_at": pa.timestamp("us", tz="UTC"),
    "seen_at": pa.timestamp("us", tz="UTC"),
    "cents": pa.int32(),
    "points": pa.int64(),
    "gone": pa.bool_(),
}
COUNTERS = {"time": "paid_at", "windows": {"1m": "5s"}, "sums": ["cents"]}
ROWS = {"columns": ["cents", "shop"]}


def shape(body: Mapping[str, Any], server: str = "redis", **types: pa.DataType) -> StoreShape:
    spec = ToStoreSpec.model_validate({"name": "cards", "key": "card", server: SERVERS[server], **body})
    return shape_of(spec, staged_schema(spec, pa.schema({**OUTPUT, **types, "_kafka": KAFKA_TYPE})))


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (ROWS, {"counters": COUNTERS}, "counters: it holds rows"),
        ({"counters": COUNTERS}, ROWS, "counters: it holds counters"),
        (ROWS, {**ROWS, "key": "points"}, "key: its rows are named by 'card'"),
        (ROWS, {**ROWS, "delete_if": "gone"}, "delete_if: its keys were removed by no column, and now by 'gone'"),
        (ROWS, {"columns": ["cents"]}, "columns: 'shop' is in its rows"),
        ({"counters": COUNTERS}, {"counters": {**COUNTERS, "time": "seen_at"}}, "counters.time: its buckets are by 'paid_at'"),
        ({"counters": COUNTERS}, {"counters": {**COUNTERS, "sums": []}}, "counters.sums: 'cents' is in the store"),
        ({"counters": COUNTERS}, {"counters": {**COUNTERS, "sums": ["cents", "points"]}}, "counters.sums: 'points' is not in"),
        ({"counters": COUNTERS}, {"counters": {**COUNTERS, "windows": {"1m": "5s", "1h": "1m"}}}, "counters.windows: "),
        (
            {"counters": COUNTERS},
            {"counters": {**COUNTERS, "windows": {"1m": "10s"}}},
            "buckets of 5 s in the store, and buckets",
        ),
    ],
)
def test_a_difference_names_its_field(server: str, old: Mapping[str, Any], new: Mapping[str, Any], told: str) -> None:
    held = StoreShape.model_validate_json(shape(old, server).model_dump_json(exclude_defaults=True))
    found = differences(held, shape(new, server))
    assert any(told in one for one in found), found
    assert differences(held, shape(old, server)) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ROWS, {"columns": ["shop", "cents"]}),
        (ROWS, {"columns": ["cents", "shop", "points"]}),
        ({"counters": {**COUNTERS, "sums": ["cents", "points"]}}, {"counters": {**COUNTERS, "sums": ["points", "cents"]}}),
        (ROWS, {**ROWS, "name": "others"}),
    ],
)
def test_what_reads_the_same_is_no_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    assert differences(shape(old), shape(new)) == ()


def test_a_value_that_looks_different_is_a_difference_and_a_wider_number_is_not() -> None:
    assert differences(shape(ROWS), shape(ROWS, cents=pa.int64())) == ()
    assert differences(shape(ROWS), shape(ROWS, cents=pa.string())) == (
        "columns: 'cents' is whole number in the store, and text in the pipeline",
    )


def test_a_windows_name_is_seen_in_redis_alone() -> None:
    named = {"counters": {**COUNTERS, "windows": {"60s": "5s"}}}
    assert differences(shape({"counters": COUNTERS}, "postgres"), shape(named, "postgres")) == ()
    assert len(differences(shape({"counters": COUNTERS}), shape(named))) == 2


def test_without_the_columns_the_rest_is_compared() -> None:
    spec = ToStoreSpec.model_validate({"name": "cards", "key": "shop", "redis": SERVERS["redis"]})
    assert differences(shape(ROWS), shape_of(spec, None)) == (
        "key: its rows are named by 'card', and the pipeline names them by 'shop'",
    )
