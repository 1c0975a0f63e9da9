"""Batches with a record whose time Spark's Kafka source cannot read: the driver reads them instead.

A producer may give a record's time in nanoseconds, and older brokers take it. Spark multiplies it by a thousand, which
overflows, and the whole batch fails before anything of it is seen. The driver's own consumer takes any time.

What the driver reads goes to the executors slice by slice, and stays on their disks: they may have no disk in common with the
driver, and the driver has no memory for a whole batch.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lakebound.formats.headers import headers_array
from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.landing.direct_read import DirectReader, RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.local_relation import LocalRelations
from lakebound_spark.batch.transform import KAFKA_SCHEMA

log = logging.getLogger(__name__)

_OVERFLOW = "java.lang.ArithmeticException: long overflow"
_PATIENCE_SECONDS = 60.0
_KAFKA_HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))


def may_be_rescued(error: Exception) -> bool:
    """Whether a batch's error can be that of a time that Spark cannot read."""
    return _OVERFLOW in str(error)


class Rescuer:
    """Reads batches for Spark."""

    def __init__(self, session: SparkSession, spec: PipelineSpec) -> None:
        """Read nothing yet.

        Args:
            session: Spark's.
            spec: The pipeline.
        """
        self._session = session
        self._spec = spec
        self._relation = LocalRelations(KAFKA_SCHEMA)
        self._held: list[DataFrame] = []

    def read(self, offsets: Offsets) -> DataFrame:
        """Return Kafka's columns of the records with these offsets, and of those in between.

        An executor that is lost takes its part along. The batch then fails, and is read again.

        Raises:
            DirectReadRefusedError: Kafka does not give them.
        """
        log.warning("the driver reads this batch for Spark, which cannot read the time of one of its records")
        self.close()
        reader = DirectReader(self._spec.connection, self._spec.pipeline)
        try:
            for records in reader.read(_without_holes(offsets), _PATIENCE_SECONDS):
                if len(records):
                    self._held.append(self._hold(kafka_columns(records)))
        finally:
            reader.close()
        return reduce(DataFrame.unionAll, self._held or [self._session.createDataFrame([], KAFKA_SCHEMA)])

    def close(self) -> None:
        """Delete what the executors hold."""
        held, self._held = self._held, []
        with suppress(Exception):  # with its executors, or with Spark, it is gone
            context = self._session.sparkContext._jsc.sc()
            for frame in held:
                context.unpersistRDD(frame._jdf.queryExecution().analyzed().rdd().id(), False)

    def _hold(self, rows: pa.Table) -> DataFrame:
        # Without a plan that leads back to the rows: the driver would keep them.
        # One partition: each is a task of every job on the batch, which has many slices.
        return self._relation(self._session, rows).coalesce(1).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _without_holes(offsets: Offsets) -> Offsets:
    return {
        topic: TopicOffsets(
            topic_id=held.topic_id,
            partitions={p: ((intervals[0][0], intervals[-1][1]),) for p, intervals in held.partitions.items()},
        )
        for topic, held in offsets.items()
    }


def kafka_columns(records: RecordColumns) -> pa.Table:
    """Return the records as Spark's Kafka source would, a time that is none as null."""
    stamps = np.array(records.timestamps_ms, dtype=np.int64)
    times = pa.array(stamps, pa.timestamp("ms"), mask=(stamps < FIRST_MS) | (stamps > LAST_MS)).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "key": pa.array(records.keys, pa.binary()),
            "value": pa.array(records.values, pa.binary()),
            "topic": pa.array(records.topics, pa.string()),
            "partition": pa.array(records.partitions, pa.int32()),
            "offset": pa.array(records.offsets, pa.int64()),
            "timestamp": times,
            "timestampType": pa.array(np.zeros(len(records), dtype=np.int32)),
            "headers": kafka_headers(headers_array(records.readable_headers())),
        }
    )


def kafka_headers(headers: pa.ListArray) -> pa.ListArray:
    """Return headers as Spark's Kafka source names their parts."""
    inside = headers.values  # A cast would match the parts by their names, and lose the headers' names.
    elements = pa.StructArray.from_arrays([inside.field(0), inside.field(1)], fields=list(_KAFKA_HEADERS.value_type))
    return pa.Array.from_buffers(
        _KAFKA_HEADERS, len(headers), headers.buffers()[:2], headers.null_count, headers.offset, children=[elements]
    )
