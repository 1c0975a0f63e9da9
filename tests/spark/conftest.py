"""The sessions of this folder's tests: one for all of them, and for each module one that knows both table formats."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.streams.spark_conf import enter_session, session_conf, start_spark
from tests.support.tables.local_tables import places
from tests.support.waiting import HANGS_SECONDS

from lakebound.tables.places import Places
from lakebound_spark.jvm import remember_classes


@pytest.fixture(scope="session")
def session(jars: Path) -> Iterator[SparkSession]:
    """A small session, in which no table format is at work."""
    builder = SparkSession.builder.appName("tests")
    for name, value in session_conf(jars).items():
        if name not in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
            builder = builder.config(name, value)
    started = builder.getOrCreate()
    remember_classes(started)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def as_applications_write(session: SparkSession) -> Iterator[None]:
    """Spark's settings of a landing application, as far as values depend on them."""
    name = "spark.sql.parquet.outputTimestampType"
    session.conf.set(name, "TIMESTAMP_MICROS")
    yield
    session.conf.unset(name)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Places that the tests of a module share."""
    return places(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="session")
def both_formats(jars: Path) -> Iterator[ProcessPoolExecutor]:
    """One process with a Spark of its own: jars cannot be added to the JVM of the other tests' session."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=start_spark, initargs=(str(jars),)) as workers:
        yield workers


@pytest.fixture(scope="module")
def pool(both_formats: ProcessPoolExecutor, at: Places) -> ProcessPoolExecutor:
    """The process with both formats, in a session of the module's own."""
    both_formats.submit(enter_session, str(at.home)).result(timeout=HANGS_SECONDS)
    return both_formats
