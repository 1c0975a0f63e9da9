"""A rehearsal runs the function once on a made-up record, keeps nothing, and can do no harm."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.tables.transform_worlds import pipeline
from tests.support.tables.value_cases import NESTED, SCALARS

from lakebound_spark.batch.decoded_rows import row_decoder
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.record_format import value_schema
from lakebound_spark.batch.rehearsal import Rehearsal
from lakebound_spark.batch.transform import Transform, planned_input

pytestmark = pytest.mark.spark

COLUMNS = {f"v{number}": kind for number, kind in enumerate({**SCALARS, **NESTED})}


def rehearsal(session: SparkSession, value: object, transform: Transform) -> Rehearsal:
    spec = pipeline(value=value)
    decode = row_decoder(spec, {"orders": "an id"})
    given = planned_input(session, spec).schema
    return Rehearsal(value_schema(spec), "orders", decode, LocalTransform(PlanKeeper(transform, dict), given))


def test_the_made_up_record_has_a_value_of_every_type(session: SparkSession) -> None:
    seen: list[pa.Table] = []

    def keeping(frame: DataFrame) -> DataFrame:
        seen.append(frame.toArrow())
        return frame

    schema = ", ".join(f"{name} {kind} NOT NULL" for name, kind in COLUMNS.items())
    assert rehearsal(session, {"format": "json", "schema": schema}, keeping).run(session) == 1
    (row,) = seen[0].select([*COLUMNS]).to_pylist()
    assert [name for name, value in row.items() if value is None or value in ([], {})] == []


def test_it_runs_for_a_topic_of_bytes(session: SparkSession) -> None:
    assert rehearsal(session, {"format": "bytes"}, lambda frame: frame.where("value is not null")).run(session) == 1


def test_what_the_function_raises_on_it_is_no_error(session: SparkSession) -> None:
    def raising(frame: DataFrame) -> DataFrame:
        return frame.withColumn("part", F.lit(1) / (F.col("n") - 1))

    def missing(frame: DataFrame) -> DataFrame:
        raise OSError("a service is away")

    json = {"format": "json", "schema": "n INT NOT NULL"}
    assert [rehearsal(session, json, function).run(session) for function in (raising, missing)] == [0, 0]
