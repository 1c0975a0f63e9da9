"""Transforms as people write them, each a function on the frame of ``SCHEMA``, and records of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.transform import Transform
from lakebound_spark.columns import explode, from_epoch

SCHEMA = (
    "id STRING NOT NULL, n INT, big BIGINT, d DOUBLE, ok BOOLEAN, at TIMESTAMP, tags ARRAY<STRING>, "
    "items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>, place STRUCT<x: DOUBLE, `odd name`: STRING>"
)


def encoded(frame: DataFrame) -> DataFrame:
    """What people write most: a filter, and columns of one column each."""
    return frame.where("n % 3 <> 0 or n is null").select(
        F.upper("id").alias("id"),
        F.sha2("id", 256).alias("hash"),
        F.xxhash64("id", "n").alias("number"),
        F.substring("id", 2, 3).alias("part"),
        F.when(F.col("ok"), F.col("d") * 2).otherwise(-F.col("d")).alias("d"),
        F.try_add("big", F.lit(1)).alias("next"),
        "at",
        "place.odd name",
        KAFKA_COLUMN,
    )


def as_they_are(frame: DataFrame) -> DataFrame:
    return frame


def none_left(frame: DataFrame) -> DataFrame:
    return frame.where("n > 0 and n < 0")


def exploded(frame: DataFrame) -> DataFrame:
    return explode(frame.select("id", "tags", KAFKA_COLUMN), "tags", "tag").where("tag <> 'b' or tag is null")


def exploded_with_empty(frame: DataFrame) -> DataFrame:
    return explode(frame, "items", "item", keep_empty=True).withColumn("price", F.col("item.price"))


def joined(frame: DataFrame) -> DataFrame:
    names = frame.sparkSession.range(-3, 3).select(F.col("id").cast("int").alias("n"), F.concat(F.lit("n"), "id").alias("name"))
    return frame.join(F.broadcast(names), "n", "left").withColumn("known", F.col("name").isNotNull())


def joined_with_several(frame: DataFrame) -> DataFrame:
    """Two rows of some records, to which the function gives one number."""
    sides = frame.sparkSession.createDataFrame([(0, "l"), (0, "r"), (1, "l")], "n INT, side STRING")
    return frame.join(sides, "n").select("id", "side", KAFKA_COLUMN)


def exploded_twice(frame: DataFrame) -> DataFrame:
    """As many rows of a record as there are pairs, which the second explode alone does not number."""
    return explode(explode(frame.select("id", "tags", "items", KAFKA_COLUMN), "tags", "tag"), "items", "item")


def exploded_by_spark(frame: DataFrame) -> DataFrame:
    return frame.select("id", F.explode_outer("tags").alias("tag"), KAFKA_COLUMN).where("tag is null or tag > 'a'")


def joined_by_sorting(frame: DataFrame) -> DataFrame:
    names = frame.sparkSession.range(-3, 3).select(F.col("id").cast("int").alias("n"), F.col("id").alias("other"))
    return frame.join(names.hint("merge"), "n", "left")


def by_python(frame: DataFrame) -> DataFrame:
    @F.udf("string")
    def reversed_text(text: str | None) -> str | None:
        return None if text is None else text[::-1]

    @F.udf("boolean")
    def is_even(number: int | None) -> bool:
        return number is None or number % 2 == 0

    return frame.where(is_even("n")).withColumn("back", reversed_text("id"))


def by_pandas(frame: DataFrame) -> DataFrame:
    @F.pandas_udf("double")
    def doubled(values: pd.Series) -> pd.Series:
        return values * 2

    return frame.withColumn("twice", doubled("d")).select("id", "twice", KAFKA_COLUMN)


def by_arrow_and_python(frame: DataFrame) -> DataFrame:
    @F.udf("array<string>", useArrow=True)
    def letters(text: str) -> list[str]:
        return sorted(set(text))

    return explode(frame.select(letters("id").alias("letters"), "n", KAFKA_COLUMN), "letters", "letter")


def nested(frame: DataFrame) -> DataFrame:
    return frame.select(
        F.transform("tags", lambda tag: F.concat(tag, F.lit("!"))).alias("tags"),
        F.aggregate("items", F.lit(0.0), lambda sum_, item: sum_ + F.coalesce(item["price"], F.lit(0.0))).alias("sum"),
        F.col("place").withField("y", F.col("n")).alias("place"),
        F.to_json(F.struct("id", "items", "place")).alias("text"),
        F.create_map(F.lit("n"), F.col("n"), F.lit("size"), F.size("tags")).alias("facts"),
        F.filter("items", lambda item: item["price"] > 0).alias("dear"),
        KAFKA_COLUMN,
    )


def typed(frame: DataFrame) -> DataFrame:
    """Types that the decoder of the driver does not know."""
    return frame.select(
        F.col("d").try_cast("decimal(12,3)").alias("m"),
        F.to_date("at").alias("day"),
        F.date_trunc("hour", "at").alias("hour"),
        F.col("at").cast("timestamp_ntz").alias("local"),
        from_epoch("big", "milliseconds").alias("then"),
        F.encode("id", "UTF-8").alias("bytes"),
        F.col("n").cast("float").alias("f"),
        F.lit(None).cast("string").alias("nothing"),
        KAFKA_COLUMN,
    )


def by_sql(frame: DataFrame) -> DataFrame:
    session = frame.sparkSession
    return session.sql("select upper(id) as id, n, least(n, 5) as few, _kafka from {records} where id > 'b'", records=frame)


def with_one_value(frame: DataFrame) -> DataFrame:
    most = frame.sparkSession.range(5).agg(F.max("id")).scalar()
    return frame.withColumn("most", most).where(F.col("n").isNull() | (F.col("n") <= most))


FUNCTIONS: tuple[Transform, ...] = (
    encoded,
    as_they_are,
    none_left,
    exploded,
    exploded_with_empty,
    exploded_twice,
    exploded_by_spark,
    joined,
    joined_with_several,
    joined_by_sorting,
    by_python,
    by_pandas,
    by_arrow_and_python,
    nested,
    typed,
    by_sql,
    with_one_value,
)
SHORT = (encoded, joined_with_several, by_pandas, typed, by_sql)
"""Of ``make test``: Spark's own functions, other tables, Python in columns, types and SQL.

Several rows or none are also in every lane in ``tests/spark/test_transform_lanes.py``, where the driver doubts records, and
Python in rows in ``tests/spark/test_transform_errors.py``.
"""
ORDERED = {*FUNCTIONS} - {joined_by_sorting, joined_with_several}
"""Their rows stand in the order of their records. In an inner join Spark may broadcast the records, not the other side."""
NOT_KEPT = {with_one_value, joined_with_several}
"""Plans that are made anew for each slice: one has a subquery, which might have read the records, too; the other makes a
table of its own at each call."""


def records(dice: random.Random, count: int) -> list[bytes]:
    """Return records that the driver decodes by itself."""

    def text() -> str:
        return "".join(dice.choices('abßé€😀 "\\/\n0', k=dice.randrange(9)))

    def maybe(make: Callable[[], Any]) -> Any:
        return make() if dice.random() < 0.8 else None

    def moment() -> str:
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=dice.randrange(10**14))).isoformat()[:26].rstrip("+")

    def number() -> float:
        return dice.choice((0.0, -0.0, 0.1, -1e300, 5e-324, 1e16, dice.uniform(-1e6, 1e6)))

    def item() -> dict[str, Any]:
        return {"sku": maybe(text), "price": maybe(number)}

    def record() -> dict[str, Any]:
        fields = {
            "n": maybe(lambda: dice.choice((0, 1, 2, -3, 2**31 - 1, -(2**31)))),
            "big": maybe(lambda: dice.choice((0, -1, 2**63 - 1, -(2**63), 1_767_225_600_123))),
            "d": maybe(number),
            "ok": maybe(lambda: dice.random() < 0.5),
            "at": maybe(moment),
            "tags": maybe(lambda: [maybe(lambda: dice.choice("abc")) for _ in range(dice.randrange(4))]),
            "items": maybe(lambda: [maybe(item) for _ in range(dice.randrange(3))]),
            "place": maybe(lambda: {"x": maybe(number), "odd name": maybe(text)}),
        }
        return {"id": text(), **{name: value for name, value in fields.items() if value is not None or dice.random() < 0.5}}

    return [json.dumps(record(), ensure_ascii=dice.random() < 0.5).encode() for _ in range(count)]
