"""One function on the same records gives the same rows in every lane: whoever reads and decodes them, and whoever writes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.value_lanes import LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.ledger.entry import Entry
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch import direct, local_relation
from lakebound_spark.batch.kept_plan import KeptPlan
from lakebound_spark.batch.transform import Transform
from lakebound_spark.columns import explode, from_epoch

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
SCHEMA = (
    "id STRING NOT NULL, n INT, big BIGINT, d DOUBLE, ok BOOLEAN, at TIMESTAMP, tags ARRAY<STRING>, "
    "items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>, place STRUCT<x: DOUBLE, `odd name`: STRING>"
)
RECORDS = 40
NOW_MS = round(time.time() * 1000)
DOUBTFUL = (b'{"id": 7}', b"{", b"", None)
"""The driver leaves all of them to Spark, for which the first one is good."""


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
    """Two rows of some records, of one ordinal."""
    sides = frame.sparkSession.createDataFrame([(0, "l"), (0, "r"), (1, "l")], "n INT, side STRING")
    return frame.join(sides, "n").select("id", "side", KAFKA_COLUMN)


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

Several rows or none are also in every lane in ``test_records_that_the_driver_doubts_are_decoded_by_spark_alone``, Python in
rows in ``test_transform_errors.py``.
"""
BACKLOGS = (exploded_with_empty, by_python)
ORDERED = {*FUNCTIONS} - {joined_by_sorting, joined_with_several}
"""Their rows stand in the order of their records. In an inner join Spark may broadcast the records, not the other side."""


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


def pipeline(**changes: Any) -> PipelineSpec:
    """Return a pipeline with one table, for a test that asks no broker."""
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": SCHEMA},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.values"}],
        "complete_hours": {},
        **changes,
    }
    return PipelineSpec.model_validate(body)


def world(session: SparkSession, folder: Path, way: Lane, transform: Transform, **changes: str) -> LaneWorld:
    return LaneWorld(session, folder, pipeline(**changes), way, transform, has_transform=True)


def sent(first: int, values: list[bytes | None]) -> Sent:
    """Records of the last hours, two in each: an entry tells to which hours the rows belong."""
    return Sent(first, values, [NOW_MS - at * 1_900_000 for at in range(len(values))])


@dataclass(frozen=True)
class Told:
    """What is in a world: the rows of each record as text, the quarantine, and the last entry but for who wrote it."""

    rows: list[tuple[int, list[str]]]
    bad: dict[int, list[tuple[str, str, bytes | None]]]
    entry: Entry


def told(of_world: LaneWorld) -> Told:
    landed = of_world.read()
    [rows], [target] = landed.tables.values(), of_world.targets
    entry = target.table.read_ledger().entry
    assert entry is not None
    texts = [(offset, [repr(row) for row in of_record]) for offset, of_record in rows.items()]
    return Told(texts, landed.bad, entry.model_copy(update={"commit": "", "lane": None}))


def assert_alike(found: Mapping[Lane, Told]) -> None:
    """Check that every lane landed the same, in whatever order."""
    of_direct = found["direct"]
    for way in ("driver", "cluster"):
        of_other = found[way]
        assert in_order(of_direct) == in_order(of_other), way
        assert (of_direct.bad, of_direct.entry) == (of_other.bad, of_other.entry), way


def in_order(one: Told) -> list[tuple[int, list[str]]]:
    return sorted((offset, sorted(rows)) for offset, rows in one.rows)


@contextmanager
def few_rows_by_jobs() -> Iterator[None]:
    """Let the driver have Spark compute few rows as it does many: by a job of several tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_relation, "_SCAN_ROWS", 1)
        patch.setattr(local_relation, "_ROWS_PER_FILE_PART", 7)
        patch.setattr(KeptPlan, "compiled_once", lambda plan, session: plan)
        yield


@pytest.mark.parametrize("function", FUNCTIONS if LONG_FORM else SHORT, ids=lambda function: function.__name__)
def test_a_function_gives_the_same_rows_in_every_lane(session: SparkSession, tmp_path: Path, function: Transform) -> None:
    values = records(random.Random(function.__name__), RECORDS)
    found, counts = {}, {}
    for way in LANES:
        one = world(session, tmp_path / way, way, function)
        steps = one.land(sent(0, [*values]))
        assert ("direct_transform" in steps and "driver_lane" not in steps) is (way == "direct")
        found[way], counts[way] = told(one), one.counts
        one.close()
    assert_alike(found)
    if LONG_FORM:  # in the short form the backlogs below are, and each function's last slice in test_narrowing.py
        assert_alike_by_jobs(session, tmp_path, function, values, found["direct"])
    if function in ORDERED:
        assert found["direct"].rows == found["driver"].rows
    assert len(set(counts.values())) == 1
    counted = counts["direct"]
    assert (counted.read, counted.quarantined, counted.landed) == (RECORDS, 0, len(found["direct"].rows))
    assert counted.filtered == RECORDS - counted.landed


def assert_alike_by_jobs(session: SparkSession, folder: Path, function: Transform, values: list[bytes], direct: Told) -> None:
    """Check that the driver lands the same where Spark computes by jobs."""
    with few_rows_by_jobs():
        one = world(session, folder / "jobs", "direct", function)
        assert "direct_transform" in one.land(sent(0, [*values]))
        by_jobs = told(one)
        one.close()
    assert (by_jobs.bad, by_jobs.entry) == (direct.bad, direct.entry)
    assert by_jobs.rows == direct.rows if function in ORDERED else in_order(by_jobs) == in_order(direct)


@pytest.mark.parametrize(
    "function", [encoded, joined, *BACKLOGS] if LONG_FORM else BACKLOGS, ids=lambda function: function.__name__
)
def test_a_backlog_that_is_read_beside_the_transform_gives_the_same_rows(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Transform
) -> None:
    values, dice = [*records(random.Random(function.__name__), 2 * RECORDS), *DOUBTFUL], random.Random(2)
    dice.shuffle(values)
    collected = world(session, tmp_path / "driver", "driver", function)
    collected.land(sent(0, [*values]))
    monkeypatch.setattr(direct, "SLICE_RECORDS", 1)
    with few_rows_by_jobs():
        backlog = LaneWorld(session, tmp_path / "direct", pipeline(), "direct", function, has_transform=True, slices=9)
        steps = backlog.land(sent(0, [*values]))
    assert {"direct_read", "direct_transform", "doubts_decode"} <= steps and "driver_lane" not in steps
    found, expected = told(backlog), told(collected)
    assert (found.rows, found.bad, found.entry) == (expected.rows, expected.bad, expected.entry)
    for one in (collected, backlog):
        one.close()


def test_records_that_the_driver_doubts_are_decoded_by_spark_alone(session: SparkSession, tmp_path: Path) -> None:
    values, found = records(random.Random(1), 5), {}
    for way in LANES:
        one = world(session, tmp_path / way, way, exploded_with_empty)
        one.land(sent(0, [*values]))
        steps = one.land(sent(len(values), [*DOUBTFUL, *values]))
        assert ({"doubts_decode", "direct_transform", "quarantine"} <= steps) is (way == "direct")
        found[way] = told(one)
        assert (one.counts.read, one.counts.quarantined) == (2 * len(values) + len(DOUBTFUL), len(DOUBTFUL) - 1)
        one.close()
    assert_alike(found)


def failing_at_once(frame: DataFrame) -> DataFrame:
    if frame.columns and not frame.isEmpty():
        raise ValueError("the function itself")
    return frame


def test_what_a_function_itself_raises_is_the_same_in_every_lane(session: SparkSession, tmp_path: Path) -> None:
    raised = {}
    for way in LANES:
        one = world(session, tmp_path / way, way, failing_at_once)
        before = told(one)
        with pytest.raises(ValueError, match="the function itself") as error:
            one.land(sent(0, [b'{"id": "1"}', b'{"id": "x"}']))
        raised[way] = error.type
        assert told(one) == before, "nothing is half done"
        one.close()
    assert len({*raised.values()}) == 1, raised
