"""Which plans of a transform are refused: operators in each position, functions that ask for rows, and a running stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakebound.errors import TransformRefusedError
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import load_transform, planned_input, planned_output
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS, refusal, shape
from lakebound_spark.columns import explode

pytestmark = pytest.mark.spark

Operator = Callable[[DataFrame], DataFrame]
COLUMNS = ("id", "n", "items", "_kafka")


def pipeline() -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": "id STRING, n INT, items ARRAY<STRING>"},
            "freshness": "1s",
            "transform": "transforms.of_a_test.clean",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


def static(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.range(3).select(F.col("id").cast("int").alias("n"), F.lit("x").alias("name"))


def static_totals(frame: DataFrame) -> DataFrame:
    """A table that is not made of the records may be aggregated."""
    return static(frame).groupBy("n").agg(F.max("name").alias("name")).orderBy("n")


def in_a_view(frame: DataFrame, query: str) -> DataFrame:
    frame.createOrReplaceTempView("records_of_a_test")
    return frame.sparkSession.sql(query)


PER_RECORD: dict[str, Operator] = {
    "project": lambda r: r.select(*COLUMNS).withColumn("n", F.col("n") + 1),
    "filter": lambda r: r.where("n > 1 or n is null"),
    "explode": lambda r: explode(r.withColumn("again", F.col("items")), "again", "item").drop("item"),
    "explode of Spark's": lambda r: r.withColumn("item", F.explode("items")).drop("item"),
    "explode of an explode": lambda r: r.withColumn("a", F.explode("items")).withColumn("b", F.explode("items")).drop("a", "b"),
    "inner join": lambda r: r.join(static(r), "n").select(*COLUMNS),
    "left join": lambda r: r.join(F.broadcast(static_totals(r)), "n", "left").select(*COLUMNS),
    "right join of a table": lambda r: static(r).join(r, "n", "right").select(*COLUMNS),
    "semi join": lambda r: r.join(static(r), "n", "semi").select(*COLUMNS),
    "anti join": lambda r: r.join(static(r), "n", "anti").select(*COLUMNS),
    "cross join": lambda r: r.crossJoin(static(r).select("name")).select(*COLUMNS),
    "subquery on a table": lambda r: r.where(r.n <= static(r).agg(F.max("n")).scalar()),
    "renamed there and back": lambda r: r.withColumnRenamed("_kafka", "k").withColumnRenamed("k", "_kafka"),
    "SQL": lambda r: in_a_view(r, "select id, n + 1 as n, items, _kafka from records_of_a_test where n > 0"),
}
OF_THE_BATCH: dict[str, Operator] = {
    "aggregate": lambda r: r.groupBy(*COLUMNS).count().select(*COLUMNS),
    "distinct": lambda r: r.distinct(),
    "drop duplicates": lambda r: r.dropDuplicates(["id"]),
    "sort": lambda r: r.orderBy("n"),
    "limit": lambda r: r.limit(3),
    "window": lambda r: r.withColumn("n", F.row_number().over(Window.partitionBy("id").orderBy("n"))),
    "sample": lambda r: r.sample(0.5),
    "random": lambda r: r.withColumn("n", F.rand()),
    "union with itself": lambda r: r.where("n > 1").union(r.where("n <= 1")),
    "union with a table": lambda r: r.union(r.sparkSession.range(1).select(*(F.lit(None).cast(f.dataType) for f in r.schema))),
    "self join": lambda r: r.join(r.select(F.col("id").alias("other")), F.col("id") == F.col("other")).select(*COLUMNS),
    "join with its aggregate": lambda r: r.join(r.groupBy("id").count(), "id").select(*COLUMNS),
    "full join": lambda r: r.join(static(r), "n", "full").select(*COLUMNS),
    "right join": lambda r: r.join(static(r), "n", "right").select(*COLUMNS),
    "left join of a table": lambda r: static(r).join(r, "n", "left").select(*COLUMNS),
    "random table": lambda r: r.join(static(r).withColumn("r", F.rand()), "n").select(*COLUMNS),
    "its own maximum": lambda r: r.where(r.n == r.agg(F.max("n")).scalar()),
    "exists in itself": lambda r: in_a_view(
        r, "select * from records_of_a_test a where exists (select 1 from records_of_a_test b where b.n > a.n)"
    ),
    "SQL with WITH": lambda r: in_a_view(r, "with t as (select * from records_of_a_test) select * from t"),
    "SQL with an aggregate": lambda r: in_a_view(
        r, "select id, max(n) as n, first(items) as items, _kafka from records_of_a_test group by id, _kafka"
    ),
    "another _kafka": lambda r: r.withColumn("_kafka", F.when(F.col("n") > 0, F.col("_kafka"))),
    "another offset": lambda r: r.withColumn("_kafka", F.col("_kafka").withField("offset", F.lit(1).cast("bigint"))),
}


def cached(frame: DataFrame, operator: Operator) -> DataFrame:
    held = frame.cache()
    try:
        return operator(held)
    finally:
        held.unpersist()


Place = Callable[[DataFrame, Operator], DataFrame]
LONG = os.environ.get("LAKEBOUND_CHAOS") == "full"
ABOVE: dict[str, Place] = {
    "on the path": lambda r, operator: operator(r),
    "below a projection": lambda r, operator: operator(r).select(*COLUMNS).where("n > 0"),
    "above a filter": lambda r, operator: operator(r.where("n > 0")),
    "below an alias": lambda r, operator: operator(r.alias("r")).alias("s"),
    "below a cache": cached,
    "below a join": lambda r, operator: operator(r).join(static(r), "n", "left").select(*COLUMNS),
}
BESIDE: dict[str, Place] = {
    "in the side of a join": lambda r, operator: r.join(operator(r).select(F.col("id").alias("o")), F.col("id") == F.col("o")),
    "in a subquery": lambda r, operator: r.where(F.col("n") == operator(r).agg(F.max("n")).scalar()),
    "in a branch of a union": lambda r, operator: r.union(operator(r).select(*COLUMNS)),
}


@pytest.fixture
def records(session: SparkSession) -> DataFrame:
    return planned_input(session, pipeline()).alias(SOURCE_ALIAS)


def some(places: dict[str, Place], number: int) -> list[tuple[str, Place]]:
    """Return the positions of an operator: all in the long form, else one on the path and another one."""
    found = [*places.items()]
    return found if LONG else [found[0], *([found[1 + number % (len(found) - 1)]])]


def test_each_operator_is_judged_the_same_in_each_position(records: DataFrame) -> None:
    wrong, tried = [], 0
    for operators, is_accepted in ((PER_RECORD, True), (OF_THE_BATCH, False)):
        for number, (name, operator) in enumerate(operators.items()):
            for position, place in some(ABOVE, number):
                said = refusal(place(records, operator))
                tried += 1
                if (said is None) != is_accepted:
                    wrong.append((name, position, said))
    assert not wrong and tried >= 2 * (len(PER_RECORD) + len(OF_THE_BATCH))


def test_records_in_a_second_place_are_refused_whatever_is_done_there(records: DataFrame) -> None:
    tried = [
        (name, position, refusal(place(records, operator)))
        for number, (name, operator) in enumerate(PER_RECORD.items())
        for position, place in (some(BESIDE, number) if LONG else some(BESIDE, number)[1:])
    ]
    assert tried and not [one for one in tried if one[2] is None]


def test_kafka_may_not_be_read_by_the_function(records: DataFrame) -> None:
    reader = records.sparkSession.read.format("kafka").option("kafka.bootstrap.servers", "nowhere:9092")
    other = reader.option("subscribe", "orders").load().select(F.col("partition").alias("n")).distinct()
    assert "reads Kafka by itself" in str(refusal(records.join(other, "n", "left")))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Operator], Any]]:
    def load(function: Operator) -> Any:
        monkeypatch.setitem(sys.modules, "transforms.of_a_test", SimpleNamespace(clean=function))
        return load_transform(pipeline())

    yield load


def deduplicated_unless_empty(frame: DataFrame) -> DataFrame:
    return frame if frame.isEmpty() else frame.dropDuplicates(["id"])


def deduplicated_and_silent(frame: DataFrame) -> DataFrame:
    """It does not say that its question could not be answered."""
    try:
        is_small = frame.count() < 10
    except Exception:
        is_small = True
    return frame if is_small else frame.dropDuplicates(["id"])


def counted(frame: DataFrame) -> DataFrame:
    return frame.withColumn("of", F.lit(frame.count()))


def written_elsewhere(frame: DataFrame) -> DataFrame:
    frame.write.format("noop").mode("overwrite").save()
    return frame


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (deduplicated_unless_empty, "runs an action"),
        (deduplicated_and_silent, "Deduplicate"),
        (counted, "runs an action"),
        (written_elsewhere, "runs an action"),
        (lambda frame: frame.sparkSession.createDataFrame(frame.collect(), frame.schema), "runs an action"),
    ],
)
def test_a_function_that_asks_for_rows_is_refused_before_the_start(
    session: SparkSession, loaded: Callable[[Operator], Any], function: Operator, reason: str
) -> None:
    with pytest.raises(TransformRefusedError, match=reason) as raised:
        planned_output(session, pipeline(), loaded(function))
    assert raised.value.runbook == "transform-refused"


def test_a_table_may_be_asked_for_rows(session: SparkSession, loaded: Callable[[Operator], Any]) -> None:
    def clean(frame: DataFrame) -> DataFrame:
        return frame.where(F.col("n") <= static(frame).count())

    assert planned_output(session, pipeline(), loaded(clean)).columns == [*COLUMNS]


def test_another_plan_in_a_running_stream_is_refused_by_the_batch_that_has_it(
    session: SparkSession, loaded: Callable[[Operator], Any]
) -> None:
    is_late = list[bool]()

    def clean(frame: DataFrame) -> DataFrame:
        return frame.dropDuplicates(["id"]) if is_late else frame.where("n > 0")

    transform = loaded(clean)
    planned_output(session, pipeline(), transform)
    frame = planned_input(session, pipeline())
    assert transform(frame).columns == [*COLUMNS]
    is_late.append(True)
    for _ in range(2):
        with pytest.raises(TransformRefusedError, match="Deduplicate"):
            transform(frame)


@pytest.mark.parametrize(
    "more", [lambda frame: frame.crossJoin(static(frame).select("name")), lambda frame: explode(frame, "items", "item")]
)
def test_a_running_stream_gives_several_rows_of_a_record_only_if_it_did_at_the_start(
    session: SparkSession, loaded: Callable[[Operator], Any], more: Operator
) -> None:
    is_late = list[bool]()

    def clean(frame: DataFrame) -> DataFrame:
        return more(frame) if is_late else frame.where("n > 0")

    transform = loaded(clean)
    planned_output(session, pipeline(), transform)
    is_late.append(True)
    for _ in range(2):
        with pytest.raises(TransformRefusedError, match="explode or join in each call"):
            transform(planned_input(session, pipeline()))


def test_the_shape_of_a_plan_is_that_of_other_values_and_not_of_other_nodes(records: DataFrame) -> None:
    kinds = {shape(records.where(F.col("n") > number).withColumn("x", F.lit(number))) for number in range(3)}
    assert len(kinds) == 1
    others = {shape(records.join(static(records), "n", how)) for how in ("left", "full", "inner")}
    assert len({*kinds, *others, shape(records.withColumn("x", F.rand())), shape(records)}) == 6
