"""Columns that a function only passes on stay in Python, and its rows are the same as if Spark had got all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.transform_functions import FUNCTIONS, NOT_KEPT, ORDERED, SHORT, encoded, records
from tests.support.tables.transform_worlds import few_rows_by_jobs, pipeline, sent
from tests.support.tables.value_lanes import IDS

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch import local_transform
from lakebound_spark.batch.decoded_rows import row_decoder
from lakebound_spark.batch.kept_plan import kept
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.narrow_plan import narrowed
from lakebound_spark.batch.passed_columns import POSITION, Narrowing
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.transform import Transform, planned_input
from lakebound_spark.columns import explode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

SLICES = 5
APART = 100
"""Offsets between the first records of two slices: so a row's offset says of which slice it is."""
SEEDS = range(60 if LONG_FORM else 12)
Step = Callable[[random.Random, DataFrame], DataFrame]


@pytest.fixture(scope="module")
def schema(session: SparkSession) -> StructType:
    return planned_input(session, pipeline()).schema


@pytest.fixture(scope="module")
def slices() -> list[pa.Table]:
    spec = pipeline()
    decode = row_decoder(spec, IDS)
    made = []
    for number in range(SLICES):
        columns = sent(number * APART, [*records(random.Random(number), 10 + number)]).records
        made.append(decode(columns).rows)
    return made


def filtered(dice: random.Random, frame: DataFrame) -> DataFrame:
    column = dice.choice(frame.columns)
    return frame.where(F.col(f"`{column}`").isNotNull() if dice.random() < 0.5 else F.xxhash64(f"`{column}`") % 3 != 0)


def computed(dice: random.Random, frame: DataFrame) -> DataFrame:
    """A new column, or another one under a name that is there."""
    of, name = dice.choice(plain(frame)), dice.choice([*plain(frame), "more"])
    return frame.withColumn(name, F.to_json(F.struct(F.col(of))))


def chosen(dice: random.Random, frame: DataFrame) -> DataFrame:
    left = dice.sample(plain(frame), dice.randrange(1, len(plain(frame)) + 1))
    return frame.select(*dice.sample([*left, KAFKA_COLUMN], len(left) + 1))


def renamed(dice: random.Random, frame: DataFrame) -> DataFrame:
    return frame.withColumnRenamed(dice.choice(plain(frame)), "renamed")


def exchanged(dice: random.Random, frame: DataFrame) -> DataFrame:
    one, other = dice.choice(plain(frame)), dice.choice(plain(frame))
    others = [name for name in frame.columns if name not in (one, other)]
    return frame.select(F.col(one).alias(other), *([F.col(other).alias(one)] if one != other else []), *others)


def named(dice: random.Random, frame: DataFrame) -> DataFrame:
    column = dice.choice(plain(frame))
    return frame.alias("named").select("named.*", F.col(f"named.{column}").isNull().alias("is_null"))


def joined(dice: random.Random, frame: DataFrame) -> DataFrame:
    """Any join whose rows have the columns of the records, which are on either side."""
    column = dice.choice(plain(frame))
    names = frame.sparkSession.range(-5, 5).select((F.col("id") % 3).alias("rest"), F.col("id").alias("other"))
    condition = F.coalesce(F.xxhash64(frame[column]), F.lit(0)) % 4 == F.col("rest")
    if dice.random() < 0.4:
        found = names.join(frame, condition, dice.choice(["left", "right", "full", "inner"]))
    else:
        found = frame.join(names, condition, dice.choice(["left", "inner", "right", "full", "left_semi", "left_anti"]))
    return of_records(found).drop("rest")


def of_records(frame: DataFrame) -> DataFrame:
    """Leave out the rows of no record: none of them may land."""
    return frame.where(F.col(KAFKA_COLUMN).isNotNull())


def looked_up(dice: random.Random, frame: DataFrame) -> DataFrame:
    names = frame.sparkSession.range(-3, 3).select(F.col("id").cast("int").alias("key"), F.col("id").alias("found"))
    column = dice.choice([name for name, kind in frame.dtypes if kind == "int"] or ["null"])
    return of_records(frame.join(names, F.expr(column) == F.col("key"), dice.choice(["left", "inner", "right"]))).drop("key")


def exploded(dice: random.Random, frame: DataFrame) -> DataFrame:
    lists = [name for name, kind in frame.dtypes if kind.startswith("array<string")]
    if not lists or "tag" in frame.columns:
        return frame
    return explode(frame, dice.choice(lists), "tag", keep_empty=dice.random() < 0.5)


def by_sql(dice: random.Random, frame: DataFrame) -> DataFrame:
    return frame.sparkSession.sql("select *, 1 as one from {records}", records=frame) if "one" not in frame.columns else frame


def by_python(dice: random.Random, frame: DataFrame) -> DataFrame:
    @F.udf("string")
    def text(value: object) -> str:
        return repr(value)

    return frame.withColumn("text", text(dice.choice(plain(frame))))


STEPS: tuple[Step, ...] = (
    filtered,
    computed,
    chosen,
    renamed,
    exchanged,
    named,
    joined,
    looked_up,
    exploded,
    by_sql,
    by_python,
)


def plain(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name != KAFKA_COLUMN]


def drawn(seed: int) -> Transform:
    """Return a function of some steps, the same at each call."""

    def function(frame: DataFrame) -> DataFrame:
        dice = random.Random(seed)
        for step in dice.sample(STEPS, dice.randrange(1, 6)):  # once each: a table has no two columns of one name
            frame = step(dice, frame)
        return frame

    return function


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    "function",
    [
        *(pytest.param(one, id=one.__name__) for one in (FUNCTIONS if LONG_FORM else SHORT)),
        *(pytest.param(drawn(seed), id=f"drawn-{seed}") for seed in (SEEDS if LONG_FORM else SEEDS[::3])),
    ],
)
def test_the_rows_are_those_of_the_function(
    session: SparkSession, schema: StructType, slices: list[pa.Table], monkeypatch: pytest.MonkeyPatch, function: Transform
) -> None:
    monkeypatch.setattr(local_transform, "_FEW", 3)
    calls = []

    def counted(frame: DataFrame) -> DataFrame:
        calls.append(frame)
        return function(frame)

    transform = LocalTransform(PlanKeeper(counted, dict, monotonic=lambda: 0.0), schema)
    # What the function gives of one record does not depend on others: one query says it of all slices.
    of_all = arrow_of(function(LocalRelations(schema)(session, pa.concat_tables(slices))))
    wanted: list[list[dict[str, Any]]] = [[] for _ in slices]
    for row in of_all.to_pylist():
        wanted[row[KAFKA_COLUMN]["offset"] // APART].append(row)
    for number, rows in enumerate(slices):
        with few_rows_by_jobs() if number == SLICES - 1 else nullcontext():
            made = transform(session, rows)
        found = made.to_pylist()
        assert (made.schema, in_order(found)) == (of_all.schema, in_order(wanted[number])), number
        if function in ORDERED:
            assert found == wanted[number], number
    assert len(calls) == 2 or function in NOT_KEPT, "the other slices had a plan"


def test_many_functions_pass_something_on(session: SparkSession, schema: StructType, slices: list[pa.Table]) -> None:
    records, found = LocalRelations(schema)(session, slices[0]), dict[str, Narrowing | None]()
    for name, function in {"encoded": encoded, **{str(seed): drawn(seed) for seed in SEEDS}}.items():
        plan = kept(records, function(records))
        found[name] = narrowed(session, plan).narrowing if plan is not None else None
    by_encoded = found["encoded"]
    assert by_encoded is not None and {*by_encoded.passed_on} == {"at", KAFKA_COLUMN}
    assert {*by_encoded.sent} == {"id", "n", "big", "d", "ok", "place"}
    assert sum(one is not None for one in found.values()) > len(found) / 3, "the others join rows of no record, or are not kept"


@pytest.mark.parametrize(("kind", "is_left"), [("right", True), ("full", True), ("left", False), ("full", False)])
def test_a_join_with_rows_of_no_record_gets_all_columns(
    session: SparkSession, schema: StructType, slices: list[pa.Table], kind: str, is_left: bool
) -> None:
    def function(frame: DataFrame) -> DataFrame:
        names = frame.sparkSession.range(900, 905).select(F.col("id").cast("int").alias("n"))
        return frame.join(names, "n", kind) if is_left else names.join(frame, "n", kind)

    records = LocalRelations(schema)(session, slices[0])
    plan = kept(records, function(records))
    assert plan is not None and narrowed(session, plan) is plan


def test_rows_of_no_record_are_never_taken_for_those_of_one() -> None:
    shape = Narrowing((), {"id": "id"}, StructType().add("id", "long"))
    made = pa.table({POSITION.name: pa.array([0, None], pa.int32())})
    with pytest.raises(ValueError, match="a row is of no record"):
        shape.whole(pa.table({"id": [1, 2]}), made)
