"""Records without a value delete keys of stores, in every lane of a batch, beside a table that skips them.

What the stores must hold is folded here, from what was sent; it is read by clients that know nothing of Lakebound.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.stores import expected
from tests.support.stores.redis_server import RedisServer, running_redis
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.transform_worlds import LANES, sent
from tests.support.tables.value_lanes import IDS, LaneWorld, OneWay, Sent

from lakebound.errors import TransformRefusedError
from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.sampling import TopicSample
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.schemas import normalise_schema
from lakebound_spark.batch.tombstones import TombstonesMismatchError
from lakebound_spark.batch.transform import Transform, planned_output
from lakebound_spark.check.trial import _unreadable_keys
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.parts import plan_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

SECRET = "LAKEBOUND_SECRET_OF_STORES"
UNREADABLE: tuple[bytes | None, ...] = (None, b"\xff", b'"card-1"', b'{"card": 1}', b'{"card": "card-1", "n": 1}')
RECORDS = list[tuple[bytes | None, bytes | None]]
Read = Callable[[], tuple[dict[str, int], dict[str, int]]]


def identity(records: DataFrame) -> DataFrame:
    return records


def filtered_and_joined(records: DataFrame) -> DataFrame:
    """Changes and filters everything but the key."""
    names = records.sparkSession.range(1).select(F.lit("card-0").alias("of"), F.lit("first").alias("name"))
    joined = records.join(F.broadcast(names), F.col("card") == F.col("of"), "left").drop("of")
    return joined.select("_kafka", F.upper("name").alias("name"), (F.col("number") + 0).alias("number"), "card").where(
        "number <> 13"
    )


@pytest.fixture(scope="module")
def servers(postgresql: PostgreSQL) -> Iterator[tuple[RedisServer, psycopg.Connection[Any], dict[str, Any]]]:
    database = postgresql.new_database()
    login = {"host": os.path.dirname(postgresql.socket), "user": USER, "password": PASSWORD, "dbname": database}
    where = {"host": "127.0.0.1", "port": PostgreSQLProxy(postgresql).port, "database": database, "username": USER}
    with running_redis() as server, psycopg.connect(**login, autocommit=True) as own, pytest.MonkeyPatch.context() as patch:
        patch.setenv(SECRET, PASSWORD)
        own.execute(b"SELECT 1")
        logins = {
            "redis": {"host": "127.0.0.1", "port": PostgreSQLProxy(server).port},
            "postgres": {**where, "password": {"env": SECRET}},
        }
        yield server, own, logins


def spec_of(stores: list[dict[str, Any]], **more: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "json", "schema": "card STRING, number BIGINT"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "shop.cards"}],
            "null_values": "delete",
            "to_stores": stores,
            **more,
        }
    )


def opened(one: Any, spec: PipelineSpec, schema: Any, folder: Path) -> StoreTarget:
    target = open_store(one, spec, schema=schema, scratch=folder, check_lease=lambda: None)
    target.check()
    target.create(schema, Entry(kind="genesis", pipeline=spec.pipeline, epoch=1, commit=new_commit_id()))
    return target


def world(session: SparkSession, folder: Path, way: Lane, transform: Transform, servers: Any) -> tuple[LaneWorld, Read]:
    """Return a pipeline with a table, a store in Redis and one in PostgreSQL, and what reads these."""
    server, own, logins = servers
    name = f"cards_{random.randrange(10**12)}"
    spec = spec_of([{"name": name, "key": "card", kind: login} for kind, login in logins.items()])
    output = normalise_schema(to_arrow_schema(planned_output(session, spec, transform).schema))
    schemas = {one.id: staged_schema(one, output) for one in spec.to_stores}
    targets = [opened(one, spec, schemas[one.id], folder / one.format) for one in spec.to_stores]
    made = LaneWorld(session, folder, spec, way, transform, has_transform=transform is not identity, others=targets)
    assert hasattr(made.lander, "_lanes")
    made.lander._lanes = OneWay(way)  # type: ignore[assignment]
    made.lander._how = replace(
        made.lander._how, left_out={store: frozenset(output.names) - {*schema.names} for store, schema in schemas.items()}
    )
    return made, lambda: (expected.rows_in_redis(server.client(), name), expected.rows_in_postgres(own, name))


def history(dice: random.Random, count: int) -> RECORDS:
    """Return records of few keys: rows, deletions by both forms of a key, bad values, and tombstones without a key of a row."""
    made: RECORDS = []
    for number in range(count):
        card = f"card-{dice.randrange(5)}"
        key = card.encode() if dice.random() < 0.5 else json.dumps({"card": card}).encode()
        kind = dice.choices(("row", "gone", "bad", "unreadable"), (6, 4, 1, 1))[0]
        if kind == "row":
            made.append((key, json.dumps({"card": card, "number": number}).encode()))
        elif kind == "gone":
            made.append((key, None))
        else:
            made.append((key, b"{") if kind == "bad" else (dice.choice(UNREADABLE), None))
    return made


def batch(first: int, records: RECORDS) -> Sent:
    one = sent(first, [value for _, value in records])
    return Sent(one.first, one.values, one.stamps_ms, [key for key, _ in records])


def fold(records: RECORDS, *, filters: bool) -> dict[str, int]:
    """Return what a store must hold."""
    told: list[tuple[str, int | None]] = []
    for key, value in records:
        if value is None and key not in UNREADABLE:
            assert key is not None
            told.append((json.loads(key)["card"] if key.startswith(b"{") else key.decode(), None))
        elif value is not None and value != b"{":
            body = json.loads(value)
            if not (filters and body["number"] == 13):
                told.append((body["card"], body["number"]))
    return expected.folded(told)


@pytest.mark.parametrize("transform", [identity, filtered_and_joined] if LONG_FORM else [filtered_and_joined])
def test_every_lane_deletes_what_a_fold_deletes(
    session: SparkSession, tmp_path: Path, servers: Any, transform: Transform
) -> None:
    dice = random.Random(transform.__name__)
    records = history(dice, 60)
    only_gone: RECORDS = [(b"card-1", None), (b'{"card":"card-2"}', None)]
    records = [*records[:40], *only_gone, *records[40:], (b"x", None), (b'"x"', None)]
    cuts = [0, 17, 40, 42, 61, len(records)]
    entries = []
    for way in LANES:
        one, read = world(session, tmp_path / way, way, transform, servers)
        for first, end in pairwise(cuts):
            one.land(batch(first, records[first:end]))
            wanted = fold(records[:end], filters=transform is not identity)
            assert read() == (wanted, wanted), (way, first, end)
        landed = one.read()
        unreadable = {at for at, (key, value) in enumerate(records) if value is None and (key in UNREADABLE or key == b'"x"')}
        bad = {at for at, (_, value) in enumerate(records) if value == b"{"}
        assert {at for at, [(reason, *_)] in landed.bad.items() if reason == "unreadable_key"} == unreadable, way
        assert {*landed.bad} == unreadable | bad, way
        [rows] = landed.tables.values()
        assert {*rows} <= {at for at, (_, value) in enumerate(records) if value not in (None, b"{")}, way
        entries.append([target.table.read_ledger().entry for target in one.targets])
        one.close()
    counts = [
        [{name: getattr(entry, name) for name in ("rows", "filtered", "read", "quarantined", "landed")} for entry in of_way]
        for of_way in entries
    ]
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("way", ["driver", "cluster"] if LONG_FORM else ["cluster"])
def test_tombstones_that_vanish_between_two_readings_are_not_passed_over(
    session: SparkSession, tmp_path: Path, servers: Any, way: Lane
) -> None:
    one, read = world(session, tmp_path, way, identity, servers)
    one.land(batch(0, [(b"a", b'{"card": "a", "number": 1}'), (b"b", b'{"card": "b", "number": 2}')]))
    records = batch(2, [(b"a", None), (b"b", None)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "lakebound_spark.landing.lander.skipped_columns",
            lambda frame: frame.where("false").select("_kafka", "_key", "_headers"),
        )
        with pytest.raises(TombstonesMismatchError, match="2 records of the batch were counted as tombstones, but 0"):
            one.land(records)
    assert read() == ({"a": 1, "b": 2}, {"a": 1, "b": 2})
    one.land(records)
    assert read() == ({}, {})
    one.close()


REFUSED: dict[str, tuple[Transform, str]] = {
    "computed": (lambda records: records.withColumn("card", F.lower("card")), "makes the column 'card' anew"),
    "renamed": (lambda records: records.withColumn("card", F.col("other")), "makes the column 'card' anew"),
    "exploded": (lambda records: records.drop("card").withColumn("card", F.explode("more")), "makes the column 'card' anew"),
    "joined": (
        lambda records: records.drop("card").crossJoin(records.sparkSession.range(1).select(F.lit("x").alias("card"))),
        "makes the column 'card' anew",
    ),
    "cast": (lambda records: records.withColumn("card", F.col("card").cast("binary")), "makes the column 'card' anew"),
}
TAKEN: dict[str, Transform] = {
    "selected": lambda records: records.select("card", "_kafka"),
    "filtered": lambda records: records.where("number > 1").withColumn("number", F.lit(1)),
    "named again": lambda records: records.withColumn("kept", F.col("card")).drop("card").withColumnRenamed("kept", "card"),
    "exploded": lambda records: records.withColumn("one", F.explode("more")),
}


@pytest.mark.parametrize("name", [*REFUSED, *TAKEN])
def test_a_transform_may_do_anything_but_make_the_key(session: SparkSession, name: str) -> None:
    store = {"name": "cards", "key": "card", "redis": {"host": "cache"}}
    value = {"format": "json", "schema": "card STRING, other STRING, number BIGINT, more ARRAY<STRING>"}
    spec = spec_of([store], value=value, transform="transforms.of_a_test.clean")
    if name in REFUSED:
        transform, told = REFUSED[name]
        with pytest.raises(TransformRefusedError, match=told):
            planned_output(session, spec, transform)
        planned_output(session, spec.model_copy(update={"null_values": "skip"}), transform)
    if name in TAKEN:
        planned_output(session, spec, TAKEN[name])


def test_a_key_of_bytes_is_taken_only_where_it_is_the_records_own(session: SparkSession) -> None:
    store = {"name": "cards", "key": "key", "redis": {"host": "cache"}}
    planned_output(session, spec_of([store], value={"format": "bytes"}), identity)
    with pytest.raises(TransformRefusedError, match="as bytes that JSON has in Base64"):
        planned_output(session, spec_of([store], value={"format": "json", "schema": "key BINARY"}), identity)


def test_a_trial_finds_the_tombstones_whose_key_names_no_row(session: SparkSession) -> None:
    spec = spec_of([{"name": "cards", "key": "card", "redis": {"host": "cache"}}])
    records = batch(0, [(b"card-1", None), (b"card-1", b'{"card": "card-1"}'), (b'"card-1"', None), (None, None)]).records
    found = _unreadable_keys(Assembly(plan_pipeline(session, spec), IDS), TopicSample(records, IDS))
    assert [row["offset"] for row in found["_kafka"].to_pylist()] == [2, 3]
    assert {*found["reason"].to_pylist()} == {"unreadable_key"}
    skipping = spec.model_copy(update={"null_values": "skip"})
    assert _unreadable_keys(Assembly(plan_pipeline(session, skipping), IDS), TopicSample(records, IDS)).num_rows == 0
