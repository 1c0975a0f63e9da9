"""What the driver makes of records that it holds: rows as tables get them, and the bad ones as the quarantine gets them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebound.formats.contract import NO_VALUE, Problem, Records, ValueDecoder
from lakebound.formats.headers import headers_array
from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.landing.direct_read import RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.tombstones import DELETE
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.decode import HEADERS, KEY
from lakebound_spark.batch.record_format import record_format, skips_nulls
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA


@dataclass(frozen=True)
class DecodedRows:
    """What became of records.

    Attributes:
        rows: Of those without a problem: the columns of key, value and headers, and ``_kafka``.
        bad: Rows of the quarantine table.
        skipped: ``_kafka``, ``_key`` and ``_headers`` of tombstones that give no row; None where there are none, or nobody asks
            for them.
    """

    rows: pa.Table
    bad: pa.Table
    skipped: pa.Table | None = None


@dataclass(frozen=True)
class RowDecoder:
    """Decodes records of one pipeline that the driver holds.

    Attributes:
        decoder: Of the records.
        topic_ids: Kafka's id of each topic, by name.
        is_null_skipped: Whether a record without a value gives no row, and is no mistake.
        keeps_keys: Whether the keys of these are asked for.
        reads_headers: Whether the decoder needs the headers.
        reads_topics: Whether it needs the topics.
    """

    decoder: ValueDecoder
    topic_ids: Mapping[str, str]
    is_null_skipped: bool
    keeps_keys: bool = False
    reads_headers: bool = False
    reads_topics: bool = False

    def __call__(self, records: RecordColumns) -> DecodedRows:
        """Return what becomes of records.

        Raises:
            DirectReadRefusedError: The client cannot read a header that is needed.
        """
        headers = [one or () for one in records.headers()] if self.reads_headers else None
        decoded = self.decoder.decode(
            Records(records.keys, records.values, headers, records.topics if self.reads_topics else None)
        )
        kafka = kafka_of(records, self.topic_ids)
        if not decoded.problems:
            return DecodedRows(pa.table({**decoded.columns, KAFKA_COLUMN: kafka}), QUARANTINE_SCHEMA.empty_table())
        rows = pa.table({**decoded.columns, KAFKA_COLUMN: kafka.take(pa.array(decoded.good, pa.int64()))})
        skipped, bad = list[int](), dict[int, Problem]()
        for at, problem in decoded.problems.items():
            if self.is_null_skipped and problem == NO_VALUE:
                skipped.append(at)
            else:
                bad[at] = problem
        columns = [
            kafka.take(pa.array([*bad], pa.int64())),
            [problem.reason for problem in bad.values()],
            [problem.detail for problem in bad.values()],
            [records.keys[at] for at in bad],
            [records.values[at] for at in bad],
            headers_array(records.headers([*bad])),
        ]
        quarantined = pa.table(columns, names=QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)
        return DecodedRows(rows, quarantined, _keys(kafka, records, skipped) if skipped and self.keeps_keys else None)


def row_decoder(spec: PipelineSpec, topic_ids: Mapping[str, str], unhoused: Collection[str] = ()) -> RowDecoder:
    """Return the decoder of records of a pipeline that the driver holds.

    Args:
        spec: The pipeline.
        topic_ids: Every row will carry its topic's id.
        unhoused: Fields of the schema for which a table has no column: a record that has one is not landed.
    """
    form, keeps_keys = record_format(spec, unhoused), spec.null_values == DELETE
    return RowDecoder(form.decoder(), topic_ids, skips_nulls(spec), keeps_keys, form.reads_headers, form.reads_topics)


def kafka_of(records: RecordColumns, topic_ids: Mapping[str, str]) -> pa.StructArray:
    """Return the ``_kafka`` column of records.

    Args:
        records: The records.
        topic_ids: Kafka's id of each topic, by name.
    """
    stamps = np.array(records.timestamps_ms, dtype=np.int64)
    milliseconds = pa.array(stamps, pa.timestamp("ms"), mask=(stamps < FIRST_MS) | (stamps > LAST_MS))
    kafka = {
        "topic": pa.array(records.topics, pa.string()),
        "topic_id": pa.array(list(map(topic_ids.__getitem__, records.topics)), pa.string()),
        "partition": pa.array(records.partitions, pa.int32()),
        "offset": pa.array(records.offsets, pa.int64()),
        "timestamp": milliseconds.cast(pa.timestamp("us")).cast(KAFKA_TYPE.field("timestamp").type),
        "ordinal": pa.array(np.zeros(len(records), dtype=np.int32)),
    }
    return pa.StructArray.from_arrays([kafka[field.name] for field in KAFKA_TYPE], fields=list(KAFKA_TYPE))


def _keys(kafka: pa.StructArray, records: RecordColumns, places: list[int]) -> pa.Table:
    keys, headers = pa.array([records.keys[at] for at in places], pa.binary()), headers_array(records.headers(places))
    return pa.table({KAFKA_COLUMN: kafka.take(pa.array(places, pa.int64())), KEY: keys, HEADERS: headers})
