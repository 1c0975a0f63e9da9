"""From Kafka's bytes to columns: every record is either decoded, or gets a reason for which it goes to quarantine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.value import BytesValueSpec, JsonValueSpec
from lakebound_spark.batch.changed_values import as_named, changes, decoded_type, half_character
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS, outside_years, some_field
from lakebound_spark.batch.row_writer import KEY_FIELDS

PROBLEM = "_problem"
"""Null for a record that can be landed; else the reason, a tab, and the detail in words."""
SKIPPED = "null_value_skipped"
"""Reason of a tombstone that gives no row, because the pipeline skips it, or deletes its key from the stores: counted as
filtered, not put into quarantine (where its key cannot be read, ``lakebound_spark.batch.tombstones`` does)."""
VALUE = "_value"
"""The record's bytes."""
_BODY = "_body"
_OBJECT = r"^[ \t\r\n]*\{"
_BRACKET_BEHIND = r"\}[ \t\r\n]*\]"
"""Where there is none, the text closes no array that it has not opened: such a bracket stands behind the object."""


@dataclass(frozen=True)
class Decoder:
    """Decodes batches of one pipeline. Its columns are built once: each one costs calls into the JVM.

    Attributes:
        stages: Columns, selected one after another.
        refused: Records that were found to be bad in another way: topic, partition, offset and problem of each.
    """

    stages: tuple[tuple[Column, ...], ...]
    refused: pa.Table | None = None

    def decode(self, records: DataFrame) -> DataFrame:
        """Return Kafka's records as _kafka, _key, _value, _parsed and _problem."""
        for columns in self.stages:
            records = records.select(*columns)
        return records if self.refused is None else _with_problems(records, self.refused)

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
    located = (kafka_struct(topic_ids).alias(KAFKA_COLUMN), F.col("key").alias("_key"), F.col("value").alias(VALUE))
    if isinstance(spec.value, BytesValueSpec):
        parsed = F.struct(F.col("key"), F.col("value")).alias("_parsed")
        problem = F.when(F.col("value").isNull(), F.lit(_null_problem(spec))).alias(PROBLEM)
        return Decoder(((*located, parsed, problem),))
    schema = _columns(spec.value)
    corrupt = _unused_name(schema)
    relaxed = StructType([StructField(f.name, decoded_type(f.dataType)) for f in schema.fields]).add(corrupt, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}
    body = F.from_json(F.col("value").cast("string"), relaxed, options).alias(_BODY)
    columns = [as_named(F.col(_BODY).getField(f.name), f.dataType).alias(f.name) for f in schema.fields]
    problem = _json_problem(spec, spec.value, schema, unhoused).alias(PROBLEM)
    kept = (F.col(KAFKA_COLUMN), F.col("_key"), F.col(VALUE))
    return Decoder(((*located, body), (*kept, F.struct(*columns).alias("_parsed"), problem)))


def _with_problems(decoded: DataFrame, refused: pa.Table) -> DataFrame:
    problems = decoded.sparkSession.createDataFrame(refused)
    joined = decoded.join(F.broadcast(problems), at_place(decoded[KAFKA_COLUMN], problems), "left")
    problem = F.coalesce(decoded[PROBLEM], problems["problem"]).alias(PROBLEM)
    return joined.select(*(decoded[name] for name in decoded.columns if name != PROBLEM), problem)


def at_place(kafka: Column, places: DataFrame) -> Column:
    """Return the condition that a row of records and one of places are of the same record."""
    return reduce(and_, (kafka.getField(name) == places[name] for name in KEY_FIELDS))


def value_fields(spec: PipelineSpec) -> list[str]:
    """Return the top-level fields of a pipeline's records; of bytes there are none."""
    schema = value_schema(spec)
    return [field.name for field in schema.fields] if schema is not None else []


def value_schema(spec: PipelineSpec) -> StructType | None:
    """Return the schema of a pipeline's records; None where they are bytes."""
    return _columns(spec.value) if isinstance(spec.value, JsonValueSpec) else None


def _unused_name(schema: StructType) -> str:
    """Return the field into which Spark puts a text that it cannot decode; no field of the records has its name."""
    name, taken = "_corrupt_record", {field.name.casefold() for field in schema.fields}
    while name in taken:
        name = f"_{name}"
    return name


def _columns(value: JsonValueSpec) -> StructType:
    return cast(StructType, StructType.fromDDL(value.value_schema))


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
    """Return what the transform gets: the value's columns and ``_kafka`` of records without a problem."""
    return decoded.where(F.col(PROBLEM).isNull()).select("_parsed.*", KAFKA_COLUMN)


def is_bad() -> Column:
    """Return the condition that a decoded record goes to quarantine."""
    return F.col(PROBLEM).isNotNull() & (F.col(PROBLEM) != SKIPPED)


def is_skipped() -> Column:
    """Return the condition that a decoded record is a tombstone that gives no row."""
    return F.col(PROBLEM).eqNullSafe(F.lit(SKIPPED))


def _json_problem(spec: PipelineSpec, value: JsonValueSpec, schema: StructType, unhoused: Collection[str]) -> Column:
    """One flat CASE: the expression is planned for every batch, so it is kept small."""
    body, text = F.col(_BODY), F.col(VALUE).cast("string")
    missing = [F.when(body.getField(f.name).isNull(), F.lit(f.name)) for f in schema.fields if not f.nullable]
    infinite = some_field(body, schema, _infinite)
    strange_years = some_field(body, schema, outside_years)
    # from_json reads the first value of a text and ignores the rest; as an array's only element the text must be one value.
    # A bracket of the text's own may close that array, and nobody reads what follows it: then one more element is not seen.
    alone, beside_another = (F.json_array_length(F.concat(F.lit("["), text, F.lit(end))) for end in ("]", ",0]"))
    closes_nothing = ~(text.contains("]") & text.rlike(_BRACKET_BEHIND)) | beside_another.eqNullSafe(F.lit(2))
    one_value = alone.eqNullSafe(F.lit(1)) & closes_nothing
    problem = (
        F.when(F.col(VALUE).isNull(), F.lit(_null_problem(spec)))
        .when(F.length(F.col(VALUE)) == 0, F.lit("empty_value\tthe value has no bytes"))
        .when(~F.is_valid_utf8(text), F.lit("not_utf8\tthe value is not UTF-8"))
        .when(half_character(text), F.lit("not_utf8\tan escape in the value is half a character"))
        .when(~(text.startswith("{") | text.rlike(_OBJECT)), F.lit("not_an_object\tthe value is not a JSON object"))
        .when(~one_value, F.lit("malformed_json\tnot one well-formed JSON value"))
        .when(
            body.isNull() | body.getField(_unused_name(schema)).isNotNull(),
            F.lit("does_not_fit\ta value does not fit the type that the schema gives it"),
        )
    )
    if missing:
        names = F.concat_ws(", ", *missing)
        problem = problem.when(names != "", F.concat(F.lit("missing_field\trequired but missing or null: "), names))
    if infinite is not None:
        problem = problem.when(F.coalesce(infinite, F.lit(False)), F.lit("does_not_fit\ta number is too large for its type"))
    for condition, words in changes(body, schema, text):
        problem = problem.when(F.coalesce(condition, F.lit(False)), F.concat(F.lit("does_not_fit\t"), words))
    if strange_years is not None:
        told = F.lit("does_not_fit\ta date or time is outside of the years 1 to 9999")
        problem = problem.when(F.coalesce(strange_years, F.lit(False)), told)
    if unhoused:
        found = F.array_intersect(F.json_object_keys(text), F.array(*(F.lit(name) for name in sorted(unhoused))))
        named = F.concat(F.lit("unknown_field\ta table has no column for it: "), F.concat_ws(", ", found))
        problem = problem.when(F.size(found) > 0, named)
    if value.unknown_fields == "quarantine":
        unknown = F.array_except(F.json_object_keys(text), F.array(*(F.lit(field.name) for field in schema.fields)))
        named = F.concat(F.lit("unknown_field\tnot in the schema: "), F.concat_ws(", ", unknown))
        problem = problem.when(F.size(unknown) > 0, named)
    return problem


def _null_problem(spec: PipelineSpec) -> str:
    return "null_value\tthe record has no value" if spec.null_values == "quarantine" else SKIPPED


def _infinite(value: Column, kind: DataType) -> Column | None:
    """A ``Test``: a number became infinite because it is beyond its type."""
    return F.abs(value) == F.lit(float("inf")) if isinstance(kind, FloatType | DoubleType) else None
