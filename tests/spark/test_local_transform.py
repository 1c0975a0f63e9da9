"""The rows that a transform gets from the driver do not fill the JVM."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound_spark.batch.local_transform import LocalTransform

pytestmark = pytest.mark.spark


def shouted(frame: DataFrame) -> DataFrame:
    return frame.where("id >= 0").select("id", F.upper("text").alias("text"))


def test_rows_of_earlier_batches_are_given_back_though_python_seldom_searches_for_garbage(session: SparkSession) -> None:
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "text": ["a" * 20_000] * 100})
    transform = LocalTransform(shouted, StructType.fromDDL("id BIGINT, text STRING"), dict)
    gc.collect()
    before = objects_of_the_jvm()
    gc.disable()
    try:
        for _ in range(40):
            assert transform(session, rows).num_rows == 100
        assert objects_of_the_jvm() - before < 400, "22 of each batch, and 8 batches until a search"
    finally:
        gc.enable()


def objects_of_the_jvm() -> int:
    return sum(isinstance(one, JavaObject) for one in gc.get_objects())
