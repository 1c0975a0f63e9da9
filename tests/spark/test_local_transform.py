"""The rows that a transform gets from the driver are all that it gets, however many, and they do not fill the JVM."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.support.tables.kept_function import KeptFunction

from lakebound_spark.batch import local_relation, plan_keeper
from lakebound_spark.batch.kept_plan import analysed
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.spark_objects import spark_objects

pytestmark = pytest.mark.spark

TEXTS = StructType().add("id", "long").add("text", "string")
LARGEST_RELATION = "spark.sql.execution.arrow.localRelationThreshold"


def shouted(frame: DataFrame) -> DataFrame:
    return frame.where("id >= 0").select("id", F.upper("text").alias("text"))


def texts(count: int, length: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    made = [f"{i % 7}" + "a" * (length - 1) for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(made, pa.string())})


# By py4j, by a file, and in more than one part; the tables before and after the one have another number of rows.
@pytest.mark.parametrize(("count", "length"), [(0, 1), (1, 1), (1, 70_000), (2_600, 9), (2_900, 9), (10_000, 3), (25_001, 9)])
def test_every_number_of_rows_comes_back_in_its_order(session: SparkSession, count: int, length: int) -> None:
    transform = LocalTransform(PlanKeeper(shouted, dict), TEXTS)
    for rows in (texts(3, 5), texts(count, length), texts(4, 5), texts(count, length, first=-count // 2), texts(0, 5)):
        wanted = [{"id": row["id"], "text": row["text"].upper()} for row in rows.to_pylist() if row["id"] >= 0]
        assert transform(session, rows).to_pylist() == wanted


def test_rows_in_several_chunks_one_of_them_empty_all_come_back(session: SparkSession) -> None:
    transform = LocalTransform(PlanKeeper(shouted, dict), TEXTS)
    rows = pa.concat_tables([texts(0, 5), texts(3_000, 50), texts(0, 5), texts(3_000, 50, first=3_000)])
    assert rows.column("id").num_chunks == 4
    assert transform(session, rows)["id"].to_pylist() == [*range(6_000)]


@pytest.mark.parametrize("by_lakebound", [True, False], ids=["as many rows", "as many bytes"])
def test_rows_of_which_spark_makes_a_scan_come_back_and_the_plan_is_kept_for_all(
    session: SparkSession, by_lakebound: bool
) -> None:
    calls = []

    def counted(frame: DataFrame) -> DataFrame:
        calls.append(frame)
        return shouted(frame)

    keeper, relation = KeptFunction(counted, dict, monotonic=lambda: 0.0), LocalRelations(TEXTS, may_scan=by_lakebound)
    session.conf.set(LARGEST_RELATION, "48MB" if by_lakebound else "200KB")
    try:
        for count in (10, 10, 10, 30_000, 10):
            records = relation(session, texts(count, 9))
            assert analysed(records).nodeName() == ("LogicalRDD" if count > 10 else "LocalRelation")
            assert arrow_of(keeper(records))["id"].to_pylist() == [*range(count)]
        assert session.conf.get(LARGEST_RELATION) == ("48MB" if by_lakebound else "200KB")
    finally:
        session.conf.unset(LARGEST_RELATION)
    assert len(calls) == 2


def test_rows_that_the_jvm_cannot_give_are_not_taken_for_the_end(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = LocalRelations(TEXTS)(session, texts(20_000, 9)).where("id >= 0")
    real = spark_objects(session._jvm)
    wrong = real.to_seq(["this is no row"])

    class Converters:
        def toBatchWithSchemaIterator(self, rows: Any, *others: Any) -> Any:
            return real.converters.toBatchWithSchemaIterator(wrong.iterator(), *others)

    monkeypatch.setattr(local_relation, "spark_objects", lambda jvm: replace(real, converters=Converters()))
    with pytest.raises(Py4JError, match="ClassCastException"):
        arrow_of(frame)


@pytest.mark.parametrize("count", [10, 10_000], ids=["a relation's", "a scan's"])
def test_a_kept_plan_holds_no_rows(session: SparkSession, count: int) -> None:
    keeper, relation = KeptFunction(shouted, dict), LocalRelations(TEXTS, may_scan=True)
    for _ in range(2):
        keeper(relation(session, texts(count, 9)))
    assert keeper._known is not None and keeper._known.plan is not None
    assert keeper._known.used is not None and keeper._known.used is not keeper._known.plan
    for plan in (keeper._known.plan, keeper._known.used):
        leaf = plan.steps[-1].node.collectLeaves().apply(0)
        assert (leaf.nodeName(), int(leaf.data().size())) == ("LocalRelation", 0)


@pytest.mark.parametrize(("renewed_seconds", "most"), [(60.0, 400), (0.0, 700)])
def test_rows_of_earlier_batches_are_given_back_though_python_seldom_searches_for_garbage(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, renewed_seconds: float, most: int
) -> None:
    monkeypatch.setattr(plan_keeper, "_RENEWED_SECONDS", renewed_seconds)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "text": ["a" * 20_000] * 100})
    transform = LocalTransform(PlanKeeper(shouted, dict), TEXTS)
    gc.collect()
    before = objects_of_the_jvm()
    gc.disable()
    try:
        for _ in range(40):
            assert transform(session, rows).num_rows == 100
        assert objects_of_the_jvm() - before < most, "22 of each batch, as many of each renewal, and 8 batches until a search"
    finally:
        gc.enable()


def objects_of_the_jvm() -> int:
    return sum(isinstance(one, JavaObject) for one in gc.get_objects())
