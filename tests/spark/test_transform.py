"""A transform is refused where a wider replay would give other rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakebound.errors import TransformRefusedError
from lakebound.formats.epoch_units import Unit
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import Transform, load_transform, planned_output
from lakebound_spark.batch.transform_plan import may_multiply
from lakebound_spark.columns import explode, from_epoch

pytestmark = pytest.mark.spark


def pipeline(transform: str | None = None) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": "order_id STRING NOT NULL, n INT, items ARRAY<STRUCT<sku: STRING>>"},
            "freshness": "1s",
            "transform": transform,
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


def numbered(frame: DataFrame) -> DataFrame:
    return frame.withColumn("row", F.row_number().over(Window.orderBy("n")))


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (lambda frame: frame.select("order_id"), "loses the column _kafka"),
        (lambda frame: frame.groupBy("order_id").count(), "loses the column _kafka"),
        (lambda frame: frame.groupBy("_kafka").count(), "uses Aggregate"),
        (lambda frame: frame.limit(3), "Limit"),
        (lambda frame: frame.distinct(), "uses Deduplicate"),
        (lambda frame: frame.dropDuplicates(["order_id"]), "uses Deduplicate"),
        (lambda frame: frame.orderBy("n"), "uses Sort"),
        (numbered, "uses Window"),
        (lambda frame: frame.sample(0.5), "uses Sample"),
        (lambda frame: frame.union(frame), "uses Union"),
        (lambda frame: frame.withColumn("r", F.rand()), "another result each time"),
        (lambda frame: frame.withColumn("_kafka", F.struct(F.lit(1).alias("offset"))), "changes the fields of _kafka"),
        (lambda frame: frame.select("*", F.col("n").alias("order_id")), "two columns the name order_id"),
        (lambda frame: frame.select("_kafka", "nowhere"), "fails on the schema"),
        (lambda frame: frame.collect(), "returns list"),
    ],
)
def test_a_transform_that_would_break_a_replay_is_refused(session: SparkSession, transform: Transform, reason: str) -> None:
    with pytest.raises(TransformRefusedError, match=reason):
        planned_output(session, pipeline(), transform)


def test_a_transform_that_ignores_its_input_is_refused(session: SparkSession) -> None:
    other = planned_output(session, pipeline(), lambda frame: frame)
    with pytest.raises(TransformRefusedError, match="does not use the DataFrame"):
        planned_output(session, pipeline(), lambda _: session.createDataFrame([], other.schema))


def test_projection_filter_and_static_join_are_accepted(session: SparkSession) -> None:
    names = session.range(3).select(F.col("id").alias("n"), F.lit("x").alias("name"))

    def transform(frame: DataFrame) -> DataFrame:
        return frame.where("n > 0").join(F.broadcast(names), "n", "left").withColumn("twice", F.col("n") * 2)

    output = planned_output(session, pipeline(), transform)
    assert {"name", "twice", "_kafka"} <= set(output.columns)
    assert may_multiply(output)


def test_our_explode_numbers_the_rows(session: SparkSession) -> None:
    output = planned_output(session, pipeline(), lambda frame: explode(frame, "items", "item"))
    assert may_multiply(output)
    assert output.columns == ["order_id", "n", "item", "_kafka"]


@pytest.mark.parametrize(
    ("unit", "number", "micros"),
    [
        ("milliseconds", 1_767_323_045_678, 1_767_323_045_678_000),
        ("milliseconds", -1, -1000),
        ("milliseconds", 253_402_300_799_999, 253_402_300_799_999_000),
        ("milliseconds", 253_402_300_800_000, None),
        ("milliseconds", 2**63 - 1, None),
        ("milliseconds", -(2**63), None),
        ("microseconds", 1_767_323_045_678_901, 1_767_323_045_678_901),
        ("microseconds", 2**63 - 1, None),
        ("nanoseconds", 1_767_323_045_678_901_234, 1_767_323_045_678_901),
        ("nanoseconds", 2**63 - 1, 9_223_372_036_854_775),
        ("seconds", 1_767_323_045, 1_767_323_045_000_000),
        ("seconds", 2**63 - 1, None),
        ("seconds", None, None),
    ],
)
def test_a_number_since_1970_becomes_a_time_and_no_number_fails(
    session: SparkSession, unit: Unit, number: int | None, micros: int | None
) -> None:
    frame = session.createDataFrame([(number,)], "n BIGINT")
    [row] = frame.select(F.unix_micros(from_epoch("n", unit))).collect()
    assert row[0] == micros


def test_the_recipe_for_nested_times_works_as_it_stands_in_the_docs(session: SparkSession) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "new-pipeline.md").read_text()
    recipe = page.partition("## Times in epoch milliseconds")[2]
    schema = re.search(r"`(merchant STRUCT[^`]*)`", recipe)
    code = re.search(r"```python\n(.*?)```", recipe, re.DOTALL)
    assert schema is not None and code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    number = 1_795_428_000_250
    rows = [(("m", number), [("a", number), ("b", None)]), (None, None)]
    frame = session.createDataFrame(rows, schema[1])
    made = names["clean"](frame)
    assert [field.dataType.simpleString() for field in made.schema] == [
        "struct<name:string,opened_at:timestamp>",
        "array<struct<sku:string,added_at:timestamp>>",
    ]
    first, second = made.select(F.unix_millis("merchant.opened_at"), "merchant", "items").collect()
    assert first[0] == number and [item["added_at"] is None for item in first["items"]] == [False, True]
    assert second["merchant"] is None and second["items"] is None


def test_a_plain_pipeline_has_one_row_per_record(session: SparkSession) -> None:
    assert not may_multiply(planned_output(session, pipeline(), lambda frame: frame))


def test_a_transform_that_is_not_there_is_named() -> None:
    with pytest.raises(TransformRefusedError, match=r"transforms\.nowhere\.clean: cannot be imported"):
        load_transform(pipeline("transforms.nowhere.clean"))
