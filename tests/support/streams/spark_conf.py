"""The small Spark sessions that tests start, most of them in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from lakebound.landing.class_archive import class_archive_option
from lakebound.landing.spark_command import METASPACE, QUICK_START
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from tests.support.tables.local_tables import places
from tests.support.waiting import HANGS_SECONDS


def session_conf(jars: Path) -> dict[str, str]:
    """Return the settings of a local session that starts fast, with both table formats on its class path.

    Args:
        jars: The folder of checked jars (``Settings.jars``).
    """
    return {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        # As our applications do: with this class path the JVM maps the class archive.
        "spark.driver.extraClassPath": f"{jars}/spark/*",
        "spark.driver.extraJavaOptions": f"{QUICK_START} {METASPACE} {class_archive_option(jars)}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
        "spark.sql.codegen.wholeStage": "false",
        # Spark's VACUUM of a Delta table lists with so many tasks; the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def start_spark(jars: str) -> None:
    """Start a Spark with both formats in this process."""
    builder = SparkSession.builder
    for name, value in session_conf(Path(jars)).items():
        builder = builder.config(name, value)
    builder.getOrCreate()


def enter_session(folder: str) -> None:
    """Have a session of this process's Spark whose Iceberg catalog ``ice`` is the one of the tables in ``folder``.

    It is the active one from here on, and shares neither catalogs nor settings nor views with those before it.
    """
    at, before = places(Path(folder)), SparkSession.getActiveSession()
    assert before is not None
    session, jvm = before.newSession(), before._jvm
    assert jvm is not None
    settings = {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "jdbc",
        "spark.sql.catalog.ice.uri": f"jdbc:{at.iceberg_catalog_uri.replace('sqlite:///', 'sqlite:')}",
        "spark.sql.catalog.ice.warehouse": f"file://{at.iceberg_warehouse}",
        "spark.sql.catalog.ice.cache-enabled": "false",
    }
    for name, value in settings.items():
        session.conf.set(name, value)
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    SparkSession._activeSession = session


def set_log_level(level: str) -> None:
    """Say what this process's Spark writes into its log."""
    session = SparkSession.getActiveSession()
    assert session is not None
    session.sparkContext.setLogLevel(level)


@contextmanager
def silenced(process: ProcessPoolExecutor) -> Iterator[None]:
    """Have a process's Spark write no log, where tests make much of it fail."""
    process.submit(set_log_level, "OFF").result(timeout=HANGS_SECONDS)
    try:
        yield
    finally:
        process.submit(set_log_level, "WARN").result(timeout=HANGS_SECONDS)  # as PySpark has it


def source_of(spec: TableSpec, at: Places) -> str:
    """Return the table's name in a query of that session."""
    return f"delta.`{at.delta_path(spec)}`" if spec.format == "delta" else f"ice.{spec.name}"
