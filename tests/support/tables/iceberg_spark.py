"""A Spark in a process of its own, configured as the maintenance application is, and the steps that it carries out."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakebound.control.folder import ControlFolder
from lakebound.landing.batch_command import batch_conf
from lakebound.landing.spark_command import QUICK_START
from lakebound.operations.maintenance.submission import maintenance_orders
from lakebound.settings import Settings
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound_spark.maintain.iceberg_actions import IcebergActions
from tests.support.tables.maintained import maintained_pipeline


def start_spark(folder: str, jars: str) -> None:
    """Start a Spark in this process, configured as the maintenance application is; and with Delta, to look at its tables."""
    home = Path(folder)
    settings = Settings(
        home=home,
        pipelines=home,
        apps=home,
        warehouse=home / "lake",
        jars=Path(jars),
        kafka="none",
        spark_master="local[1]",
        jvm_options=QUICK_START,
    )
    conf = batch_conf(maintenance_orders(maintained_pipeline({}), settings, "maintain-test"), settings)
    conf |= {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.sql.extensions": f"io.delta.sql.DeltaSparkSessionExtension,{conf['spark.sql.extensions']}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    builder.getOrCreate().sparkContext.setLogLevel("OFF")


def act_in_spark(kind: str, table: TableSpec, at: Places, step: Any, times: int = 1) -> Any:
    """Carry out a step, so many times at once; return what became of it, an error as its class and text."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    actions, results = IcebergActions(spark, at, ControlFolder(at.home, "orders")), list[Any]()

    def act() -> None:
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # it is a thread's own
        try:
            results.append(getattr(actions, kind)(table, step))
        except Exception as exc:
            results.append((type(exc).__name__, str(exc)))

    threads = [threading.Thread(target=act) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results if times > 1 else results[0]
