"""The Kafka source: a stream that reads from exact offsets, and a range of offsets that is read once."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from lakebound.landing.kafka_settings import java_config
from lakebound.ledger.entry import Offsets, intervals_of
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.records import in_offsets

_DEFAULT_API_TIMEOUT_MS = 15_000
_REQUEST_TIMEOUT_MS = 10_000


def connection_options(connection: ConnectionSpec) -> dict[str, str]:
    """Return Kafka options for Spark. They hold secrets: they are set in-process and never logged.

    Raises:
        MissingSecretError: A secret is not where the connection says, or a file of TLS cannot be used.
        ForbiddenSecretError: A secret may not be read on this machine.
    """
    return {f"kafka.{name}": value for name, value in java_config(connection).items()}


def stream_options(spec: PipelineSpec, start: NextOffsets, *, in_batches: bool = True) -> dict[str, str]:
    """Return all options of the pipeline's stream.

    Args:
        spec: The pipeline.
        start: An offset for every partition that there is; Spark refuses a list with one missing.
        in_batches: Whether batches are bounded; in real time there is nothing to bound.
    """
    options = {
        "kafka.fetch.max.wait.ms": "50",
        **_reader_options(spec),
        "subscribe": ",".join(spec.topics),
        "startingOffsets": _json(start),
    }
    return {**options, "maxOffsetsPerTrigger": str(spec.limits.max_records_per_batch)} if in_batches else options


def range_options(spec: PipelineSpec, start: NextOffsets, end: NextOffsets) -> dict[str, str]:
    """Return all options of a bounded read, in the partitions that its bounds name.

    Args:
        spec: The pipeline.
        start: First offset per topic and partition.
        end: Offset after the last one, for the same partitions.
    """
    assigned = {topic: sorted(partitions) for topic, partitions in start.items()}
    return {
        **_reader_options(spec),
        "assign": json.dumps(assigned),
        "startingOffsets": _json(start),
        "endingOffsets": _json(end),
    }


def read_stream(session: SparkSession, spec: PipelineSpec, start: NextOffsets, *, in_batches: bool = True) -> DataFrame:
    """Return the streaming DataFrame with Kafka's own columns.

    Args:
        session: Spark session in which the stream runs.
        spec: Pipeline whose topics are read.
        start: Next offset to read, for every partition that there is; Spark refuses a list with one missing.
        in_batches: Whether batches are bounded.
    """
    return session.readStream.format("kafka").options(**stream_options(spec, start, in_batches=in_batches)).load()


def read_range(session: SparkSession, spec: PipelineSpec, start: NextOffsets, end: NextOffsets) -> DataFrame:
    """Return the records from ``start`` up to but without ``end`` with Kafka's own columns.

    Args:
        session: Spark session in which the records are read.
        spec: Pipeline whose connection is used.
        start: First offset to read, per topic and partition.
        end: Offset after the last one to read, for the same partitions.
    """
    return session.read.format("kafka").options(**range_options(spec, start, end)).load()


def read_offsets(session: SparkSession, spec: PipelineSpec, offsets: Offsets) -> DataFrame:
    """Return the records of the offsets with Kafka's own columns: one range per partition, filtered where it has holes.

    Args:
        session: Spark session in which the records are read.
        spec: Pipeline whose connection is used.
        offsets: At least one.
    """
    start: dict[str, dict[int, int]] = {}
    end: dict[str, dict[int, int]] = {}
    has_holes = False
    for topic, partition, intervals in intervals_of(offsets):
        start.setdefault(topic, {})[partition] = intervals[0][0]
        end.setdefault(topic, {})[partition] = intervals[-1][1]
        has_holes = has_holes or len(intervals) > 1
    records = read_range(session, spec, start, end)
    return records.where(in_offsets(offsets)) if has_holes else records


def _reader_options(spec: PipelineSpec) -> dict[str, str]:
    connection = connection_options(spec.connection)
    # An outage is to be noticed and named within seconds, then waited out (lakebound_spark.stream.application).
    request_timeout_ms = int(connection.get("kafka.request.timeout.ms", _REQUEST_TIMEOUT_MS))
    return {
        **connection,
        "failOnDataLoss": "true",
        # Bad records keep their headers in the quarantine, whoever asks for headers.
        "includeHeaders": "true",
        "groupIdPrefix": f"lakebound-{spec.pipeline}",
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "50",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "10000",
        "kafka.default.api.timeout.ms": str(max(_DEFAULT_API_TIMEOUT_MS, request_timeout_ms)),
        "kafka.request.timeout.ms": str(request_timeout_ms),
    }


def _json(offsets: NextOffsets) -> str:
    return json.dumps({t: {str(p): offset for p, offset in partitions.items()} for t, partitions in offsets.items()})
