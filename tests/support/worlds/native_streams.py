"""Plain Spark streams from Kafka to Delta and Iceberg, written by Spark's own sinks: what Lakebound did not start."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.streams.spark_conf import session_conf
from tests.support.waiting import HANGS_SECONDS

RUN_DEADLINE_SECONDS = HANGS_SECONDS


@dataclass(frozen=True)
class NativeStream:
    """One run of a query, until it has read all that there is (Trigger.AvailableNow).

    Attributes:
        table: Folder of a Delta table, or name of an Iceberg table in the catalog ``hadoop``.
        starting: Kafka's startingOffsets.
        retained_batches: spark.sql.streaming.minBatchesToRetain.
    """

    servers: str
    topic: str
    format: str
    table: str
    checkpoint: str
    starting: str = "earliest"
    batch_offsets: int = 60
    retained_batches: int = 100


class StreamFailedError(Exception):
    """The query ended with an error; its text is Spark's."""


class NativeSpark:
    """A Spark in a process of its own, whose session is the active one there."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def run(self, stream: NativeStream) -> None:
        """Run a query to its end.

        Raises:
            StreamFailedError: It failed.
        """
        error = self._pool.submit(_run, stream).result(timeout=RUN_DEADLINE_SECONDS)
        if error is not None:
            raise StreamFailedError(error)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self._pool.submit(_sql, statement).result(timeout=RUN_DEADLINE_SECONDS)


@contextmanager
def native_spark(warehouse: Path, jars: Path) -> Iterator[NativeSpark]:
    """Start a Spark with Kafka and both formats; Iceberg tables lie below ``warehouse``."""
    context = multiprocessing.get_context("spawn")
    arguments = (str(warehouse), str(jars))
    with ProcessPoolExecutor(1, context, initializer=_session, initargs=arguments) as pool:
        yield NativeSpark(pool)


def produce(servers: str, topic: str, counts: dict[int, int]) -> None:
    """Send so many records to each partition."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for partition, count in counts.items():
        for number in range(count):
            producer.produce(topic, value=f"{partition}-{number}".encode(), partition=partition)
    if producer.flush(60):
        raise RuntimeError("not all records were taken")


def landed(table: Path) -> Counter[tuple[int, int]]:
    """Return how often each partition and offset stands in a Delta table."""
    if not DeltaTable.is_deltatable(str(table)):
        return Counter()
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["partition", "offset"])
    return Counter(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))


def _session(warehouse: str, jars: str) -> None:
    settings = {
        **session_conf(Path(jars)),
        "spark.sql.catalog.hadoop": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.hadoop.type": "hadoop",
        "spark.sql.catalog.hadoop.warehouse": f"file://{warehouse}",
        "spark.sql.catalog.hadoop.cache-enabled": "false",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder.getOrCreate().sparkContext.setLogLevel("OFF")


def _run(stream: NativeStream) -> str | None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(stream.retained_batches))
    # A purge in the background may come before or after the next batch's files.
    spark.conf.set("spark.sql.streaming.asyncLogPurge.enabled", "false")
    options = {
        "kafka.bootstrap.servers": stream.servers,
        "subscribe": stream.topic,
        "startingOffsets": stream.starting,
        "maxOffsetsPerTrigger": str(stream.batch_offsets),
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    writer = frame.selectExpr("partition", "offset", "CAST(value AS STRING) AS value").writeStream.format(stream.format)
    writer = writer.option("checkpointLocation", stream.checkpoint).trigger(availableNow=True)
    try:
        query = writer.start(stream.table) if stream.format == "delta" else writer.toTable(stream.table)
        query.awaitTermination()
    except PySparkException as exc:  # it cannot be pickled
        return str(exc)
    return None


def _sql(statement: str) -> list[tuple[Any, ...]]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return [tuple(row) for row in spark.sql(statement).collect()]
