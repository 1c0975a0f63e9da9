"""One local Spark for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark_conf import session_conf


@pytest.fixture(scope="session")
def session(jars: Path) -> Iterator[SparkSession]:
    """A small session, in which no table format is at work."""
    builder = SparkSession.builder.appName("tests")
    for name, value in session_conf(jars).items():
        if name not in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
            builder = builder.config(name, value)
    started = builder.getOrCreate()
    yield started
    started.stop()
