"""From Kafka's bytes to columns in batches: every record is either decoded, or gets a reason for which it goes to quarantine.

The format's own decoder (``lakebound.formats``) runs in Python, in the driver and in Spark's executors alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructField, StructType

from lakebound.formats.contract import NO_VALUE, Decoded, Records, ValueDecoder
from lakebound.formats.headers import headers_of
from lakebound.formats.kinds import ValueFormat, decoder_of
from lakebound.formats.room import in_parts
from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.record_format import record_format, skips_nulls
from lakebound_spark.batch.row_writer import KEY_FIELDS

PROBLEM = "_problem"
"""Null for a record that can be landed; else the reason, a tab, and the detail in words."""
SKIPPED = "null_value_skipped"
"""Reason of a tombstone that gives no row, because the pipeline skips it, or deletes its key from the stores: counted as
filtered, not put into quarantine (where its key cannot be read, ``lakebound_spark.batch.tombstones`` does)."""
KEY, VALUE, HEADERS = "_key", "_value", "_headers"
"""What the record has. Of a record without a problem they are only there where one may be found later."""
VALUE_BYTES = "_value_bytes"

*_PLACE, _ORDINAL = from_arrow_schema(pa.schema(KAFKA_TYPE)).fields
_KAFKA = StructType([*_PLACE, StructField(_ORDINAL.name, _ORDINAL.dataType, nullable=False)])
_HEADERS = ArrayType(StructType([StructField("name", StringType()), StructField("value", BinaryType())]))
Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Decoder:
    """Decodes batches of one pipeline.

    Attributes:
        form: Of the records.
        kafka: Makes the column ``_kafka``.
        is_null_skipped: Whether a record without a value gives no row, and is no mistake.
        refused: Records that were found to be bad in another way: topic, partition, offset and problem of each.
    """

    form: ValueFormat
    kafka: Column
    is_null_skipped: bool
    refused: pa.Table | None = None

    @property
    def columns(self) -> StructType:
        """What the transform gets of the records without a problem."""
        return StructType([*parsed_type(self.form).fields, StructField(KAFKA_COLUMN, _KAFKA, nullable=False)])

    def decode(self, records: DataFrame) -> DataFrame:
        """Return Kafka's records as _kafka, _key, _value, _headers, _value_bytes, _parsed and _problem."""
        given = records.select(self.kafka.alias(KAFKA_COLUMN), *raw_columns())
        parsed = parsed_type(self.form)
        schema = StructType(
            [
                StructField(KAFKA_COLUMN, _KAFKA, nullable=False),
                StructField(KEY, BinaryType()),
                StructField(VALUE, BinaryType()),
                StructField(HEADERS, _HEADERS),
                StructField(VALUE_BYTES, IntegerType()),
                StructField("_parsed", parsed),
                StructField(PROBLEM, StringType()),
            ]
        )
        made = _decoded_batches(
            self.form, to_arrow_type(parsed), is_null_skipped=self.is_null_skipped, keeps_bytes=self.refused is not None
        )
        decoded = given.mapInArrow(made, schema)
        return decoded if self.refused is None else _with_problems(decoded, self.refused)

    def refusing(self, refused: pa.Table) -> Decoder:
        """Return a decoder that gives these records their problems, too."""
        known = [] if self.refused is None else [self.refused.cast(refused.schema)]
        # In one chunk: createDataFrame of PySpark 4.1.3 loses all rows behind an empty one.
        return replace(self, refused=pa.concat_tables([*known, refused]).combine_chunks())


def make_decoder(spec: PipelineSpec, topic_ids: Mapping[str, str], unhoused: Collection[str] = ()) -> Decoder:
    """Return the decoder of a pipeline.

    Args:
        spec: The pipeline.
        topic_ids: Every row will carry its topic's id.
        unhoused: Fields of the schema for which a table has no column: a record that has one is not landed.
    """
    return Decoder(record_format(spec, unhoused), kafka_struct(topic_ids), skips_nulls(spec))


def raw_columns() -> tuple[Column, Column, Column]:
    """Return _key, _value and _headers of Kafka's own columns."""
    return F.col("key").alias(KEY), F.col("value").alias(VALUE), F.col("headers").cast(_HEADERS).alias(HEADERS)


def parsed_type(form: ValueFormat) -> StructType:
    """Return Spark's type of decoded records; every part may be null."""
    columns = from_arrow_schema(form.columns, prefer_timestamp_ntz=True)
    return StructType([StructField(field.name, field.dataType) for field in columns.fields])


def _decoded_batches(
    form: ValueFormat, parsed: pa.DataType, *, is_null_skipped: bool, keeps_bytes: bool
) -> Callable[[Batches], Batches]:
    """Return what decodes batches of ``_kafka``, ``_key``, ``_value`` and ``_headers`` in an executor."""
    whether = Whether(is_null_skipped, keeps_bytes, form.reads_headers, form.reads_topics)

    def decoded_batches(batches: Batches) -> Batches:
        decoder = decoder_of(form)
        for batch in batches:
            yield from in_parts(len(batch), partial(decoded, batch, decoder))

    def decoded(batch: pa.RecordBatch, decoder: ValueDecoder, places: range) -> pa.RecordBatch:
        return decoded_batch(batch.slice(places.start, len(places)), decoder, parsed, whether)

    return decoded_batches


@dataclass(frozen=True)
class Whether:
    """How batches are decoded.

    Attributes:
        is_null_skipped: Whether a record without a value gives no row, and is no mistake.
        keeps_bytes: Whether key, value and headers of the records without a problem are needed, too.
        reads_headers: Whether the decoder needs the headers.
        reads_topics: Whether it needs the topics.
    """

    is_null_skipped: bool
    keeps_bytes: bool = False
    reads_headers: bool = False
    reads_topics: bool = False


def decoded_batch(batch: pa.RecordBatch, decoder: ValueDecoder, parsed: pa.DataType, whether: Whether) -> pa.RecordBatch:
    """Return a batch with its records decoded.

    Args:
        batch: With ``_kafka``, ``_key``, ``_value`` and ``_headers``.
        decoder: Of the records.
        parsed: Type of what is decoded.
        whether: How.
    """
    keys, values, headers = batch[KEY], batch[VALUE], batch[HEADERS]
    told = headers_of(headers) if whether.reads_headers else None
    topics = batch[KAFKA_COLUMN].field("topic").to_pylist() if whether.reads_topics else None
    decoded = decoder.decode(Records(keys.to_pylist(), values.to_pylist(), told, topics))
    sizes = pc.binary_length(values)
    columns = [decoded.columns[field.name] for field in parsed.fields]
    rows = pa.StructArray.from_arrays(columns, fields=parsed.fields)
    if decoded.problems:
        rows = rows.take(_places_of_rows(decoded))
        problem = _problems(decoded, is_null_skipped=whether.is_null_skipped)
    else:
        problem = pa.nulls(len(batch), pa.string())
    if not whether.keeps_bytes:
        is_needed = problem.is_valid()
        keys, values = (pc.if_else(is_needed, one, pa.scalar(None, pa.binary())) for one in (keys, values))
        headers = _only(headers, is_needed)
    made = [batch[KAFKA_COLUMN], keys, values, headers, sizes, rows, problem]
    return pa.record_batch(made, [KAFKA_COLUMN, KEY, VALUE, HEADERS, VALUE_BYTES, "_parsed", PROBLEM])


def _only(headers: pa.ListArray, is_needed: pa.BooleanArray) -> pa.ListArray:
    """Return the headers of some of the records, and null for the others."""
    if headers.null_count == len(headers):
        return headers
    return headers.take(pc.if_else(is_needed, pa.array(np.arange(len(headers))), pa.scalar(None, pa.int64())))


def _places_of_rows(decoded: Decoded) -> pa.Array:
    """Return for each record which of the rows is its own; null where it has none."""
    has_none = np.zeros(decoded.count, np.bool_)
    has_none[[*decoded.problems]] = True
    return pa.array(np.cumsum(~has_none) - 1, pa.int64(), mask=has_none)


def _problems(decoded: Decoded, *, is_null_skipped: bool) -> pa.Array:
    told: list[str | None] = [None] * decoded.count
    for at, problem in decoded.problems.items():
        told[at] = SKIPPED if is_null_skipped and problem == NO_VALUE else f"{problem.reason}\t{problem.detail}"
    return pa.array(told, pa.string())


def _with_problems(decoded: DataFrame, refused: pa.Table) -> DataFrame:
    problems = decoded.sparkSession.createDataFrame(refused)
    joined = decoded.join(F.broadcast(problems), at_place(decoded[KAFKA_COLUMN], problems), "left")
    problem = F.coalesce(decoded[PROBLEM], problems["problem"]).alias(PROBLEM)
    return joined.select(*(decoded[name] for name in decoded.columns if name != PROBLEM), problem)


def at_place(kafka: Column, places: DataFrame) -> Column:
    """Return the condition that a row of records and one of places are of the same record."""
    return reduce(and_, (kafka.getField(name) == places[name] for name in KEY_FIELDS))


def kafka_struct(topic_ids: Mapping[str, str]) -> Column:
    """Return the ``_kafka`` column of Kafka's own columns."""
    topic_id = F.lit(None).cast("string")
    for topic, known_id in topic_ids.items():
        topic_id = F.when(F.col("topic") == topic, F.lit(known_id)).otherwise(topic_id)
    return F.struct(
        F.col("topic"),
        topic_id.alias("topic_id"),
        F.col("partition"),
        F.col("offset"),
        _known_time(F.col("timestamp")).alias("timestamp"),
        F.lit(0).alias("ordinal"),
    )


def _known_time(timestamp: Column) -> Column:
    """Return Kafka's time of a record; null where a producer gave it in another unit than milliseconds."""
    first, last = (F.timestamp_micros(F.lit(milliseconds * 1000)) for milliseconds in (FIRST_MS, LAST_MS + 1))
    return F.when((timestamp >= first) & (timestamp < last), timestamp)


def good_columns(decoded: DataFrame) -> DataFrame:
    """Return what the transform gets: the columns of key, value and headers, and ``_kafka``, of records without a problem."""
    return decoded.where(F.col(PROBLEM).isNull()).select("_parsed.*", KAFKA_COLUMN)


def is_bad() -> Column:
    """Return the condition that a decoded record goes to quarantine."""
    return F.col(PROBLEM).isNotNull() & (F.col(PROBLEM) != SKIPPED)


def is_skipped() -> Column:
    """Return the condition that a decoded record is a tombstone that gives no row."""
    return F.col(PROBLEM).eqNullSafe(F.lit(SKIPPED))
