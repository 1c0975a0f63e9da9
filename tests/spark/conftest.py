"""One local Spark for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A small session, without Kafka and without table formats."""
    builder = SparkSession.builder.master("local[2]").appName("tests").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
    started = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield started
    started.stop()
