"""Batches with a record whose time Spark's Kafka source cannot read: the driver reads them instead.

A producer may give a record's time in nanoseconds, and older brokers take it. Spark multiplies it by a thousand, which
overflows, and the whole batch fails before anything of it is seen. The driver's own consumer takes any time.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lakebound.control.private_files import make_private_folder
from lakebound.landing.direct_read import DirectReader, RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS
from lakebound_spark.batch.transform import KAFKA_SCHEMA

log = logging.getLogger(__name__)

_OVERFLOW = "java.lang.ArithmeticException: long overflow"
_PATIENCE_SECONDS = 60.0


def may_be_rescued(error: Exception) -> bool:
    """Whether a batch's error can be that of a time that Spark cannot read."""
    return _OVERFLOW in str(error)


class Rescuer:
    """Reads batches for Spark."""

    def __init__(self, session: SparkSession, spec: PipelineSpec, folder: Path) -> None:
        """Read nothing yet.

        Args:
            session: Spark's.
            spec: The pipeline.
            folder: Where a batch's records are kept until the next one.
        """
        self._session = session
        self._spec = spec
        self._folder = folder

    def read(self, offsets: Offsets) -> DataFrame:
        """Return Kafka's columns of the records with these offsets, and of those in between.

        Raises:
            DirectReadRefusedError: Kafka does not give them.
        """
        log.warning("the driver reads this batch for Spark, which cannot read the time of one of its records")
        self.close()
        make_private_folder(self._folder)
        reader = DirectReader(self._spec.connection, self._spec.pipeline)
        try:
            for number, records in enumerate(reader.read(_without_holes(offsets), _PATIENCE_SECONDS)):
                pq.write_table(kafka_columns(records), self._folder / f"{number:06d}.parquet")
        finally:
            reader.close()
        return self._session.read.schema(KAFKA_SCHEMA).parquet(f"file://{self._folder}")

    def close(self) -> None:
        """Delete what is kept."""
        shutil.rmtree(self._folder, ignore_errors=True)


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
        }
    )
