"""The Kafka source: a stream that reads from exact offsets, and a range of offsets that is read once."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from lakebound.landing.jaas import jaas_quoted
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secrets import read_secret

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connection_options(connection: ConnectionSpec) -> dict[str, str]:
    """Return Kafka options for Spark. They hold the password: they are set in-process and never logged.

    Raises:
        MissingSecretError: The password is not where the connection says.
    """
    options = {
        "kafka.bootstrap.servers": connection.bootstrap_servers,
        "kafka.security.protocol": connection.security_protocol,
    }
    if connection.tls_ca_file:
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.location"] = connection.tls_ca_file
    if connection.sasl:
        password = read_secret(connection.sasl.password, "connection.sasl.password")
        login = f"username={jaas_quoted(connection.sasl.username)} password={jaas_quoted(password)}"
        options["kafka.sasl.mechanism"] = connection.sasl.mechanism
        options["kafka.sasl.jaas.config"] = f"{_LOGIN_MODULES[connection.sasl.mechanism]} required {login};"
    return options


def stream_options(spec: PipelineSpec, start: NextOffsets) -> dict[str, str]:
    """Return all options of the pipeline's stream.

    Args:
        spec: The pipeline.
        start: An offset for every partition that there is; Spark refuses a list with one missing.
    """
    return {
        **_reader_options(spec),
        "subscribe": ",".join(spec.topics),
        "startingOffsets": _json(start),
        "maxOffsetsPerTrigger": str(spec.limits.max_records_per_batch),
        "kafka.fetch.max.wait.ms": "50",
    }


def range_options(spec: PipelineSpec, start: NextOffsets, end: NextOffsets) -> dict[str, str]:
    """Return all options of a read from ``start`` up to but without ``end``, in the partitions that these name."""
    assigned = {topic: sorted(partitions) for topic, partitions in start.items()}
    return {
        **_reader_options(spec),
        "assign": json.dumps(assigned),
        "startingOffsets": _json(start),
        "endingOffsets": _json(end),
    }


def read_stream(session: SparkSession, spec: PipelineSpec, start: NextOffsets) -> DataFrame:
    """Return the streaming DataFrame with Kafka's own columns.

    Args:
        session: Spark session in which the stream runs.
        spec: Pipeline whose topics are read.
        start: Next offset to read, for every partition that there is; Spark refuses a list with one missing.
    """
    return session.readStream.format("kafka").options(**stream_options(spec, start)).load()


def read_range(session: SparkSession, spec: PipelineSpec, start: NextOffsets, end: NextOffsets) -> DataFrame:
    """Return the records from ``start`` up to but without ``end`` with Kafka's own columns.

    Args:
        session: Spark session in which the records are read.
        spec: Pipeline whose connection is used.
        start: First offset to read, per topic and partition.
        end: Offset after the last one to read, for the same partitions.
    """
    return session.read.format("kafka").options(**range_options(spec, start, end)).load()


def _reader_options(spec: PipelineSpec) -> dict[str, str]:
    return {
        **connection_options(spec.connection),
        "failOnDataLoss": "true",
        "groupIdPrefix": f"lakebound-{spec.pipeline}",
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "50",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "10000",
        # An outage is to be noticed and named within seconds, then waited out (lakebound_spark.stream.application).
        "kafka.default.api.timeout.ms": "15000",
        "kafka.request.timeout.ms": "10000",
    }


def _json(offsets: NextOffsets) -> str:
    return json.dumps({t: {str(p): offset for p, offset in partitions.items()} for t, partitions in offsets.items()})
