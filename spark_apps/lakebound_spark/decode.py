"""From Kafka's bytes to columns: every record is either decoded, or gets a reason for which it goes to quarantine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StringType, StructField, StructType

from lakebound.spec import BytesValueSpec, JsonValueSpec, PipelineSpec
from lakebound.tables import KAFKA_COLUMN

PROBLEM = "_problem"
"""Null for a record that can be landed; else the reason, a tab, and the detail in words."""
SKIPPED = "null_value_skipped"
"""Reason of a tombstone that the pipeline skips: counted as filtered, not put into quarantine."""
_CORRUPT = "_corrupt_record"
VALUE = "_value"
"""The record's bytes."""
_BODY = "_body"
_OBJECT = r"^[ \t\r\n]*\{"


@dataclass(frozen=True)
class Decoder:
    """Decodes batches of one pipeline. Its columns are built once: each one costs calls into the JVM."""

    stages: tuple[tuple[Column, ...], ...]

    def decode(self, records: DataFrame) -> DataFrame:
        """Return Kafka's records as _kafka, _key, _value, _parsed and _problem."""
        for columns in self.stages:
            records = records.select(*columns)
        return records


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
    relaxed = StructType([StructField(f.name, f.dataType) for f in schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    body = F.from_json(F.col("value").cast("string"), relaxed, options).alias(_BODY)
    columns = [F.col(_BODY).getField(field.name).alias(field.name) for field in schema.fields]
    problem = _json_problem(spec, spec.value, schema, unhoused).alias(PROBLEM)
    kept = (F.col(KAFKA_COLUMN), F.col("_key"), F.col(VALUE))
    return Decoder(((*located, body), (*kept, F.struct(*columns).alias("_parsed"), problem)))


def value_fields(spec: PipelineSpec) -> list[str]:
    """Return the top-level fields of a pipeline's records; of bytes there are none."""
    schema = value_schema(spec)
    return [field.name for field in schema.fields] if schema is not None else []


def value_schema(spec: PipelineSpec) -> StructType | None:
    """Return the schema of a pipeline's records; None where they are bytes."""
    return _columns(spec.value) if isinstance(spec.value, JsonValueSpec) else None


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
        F.col("timestamp"),
        F.lit(0).alias("ordinal"),
    )


def good_columns(decoded: DataFrame) -> DataFrame:
    """Return what the transform gets: the value's columns and ``_kafka`` of records without a problem."""
    return decoded.where(F.col(PROBLEM).isNull()).select("_parsed.*", KAFKA_COLUMN)


def is_bad() -> Column:
    """Return the condition that a decoded record goes to quarantine."""
    return F.col(PROBLEM).isNotNull() & (F.col(PROBLEM) != SKIPPED)


def _json_problem(spec: PipelineSpec, value: JsonValueSpec, schema: StructType, unhoused: Collection[str]) -> Column:
    """One flat CASE: the expression is planned for every batch, so it is kept small."""
    body, text = F.col(_BODY), F.col(VALUE).cast("string")
    missing = [F.when(body.getField(f.name).isNull(), F.lit(f.name)) for f in schema.fields if not f.nullable]
    infinite = [c for f in schema.fields if (c := _infinite(body.getField(f.name), f.dataType)) is not None]
    # from_json reads the first value of a text and ignores the rest; as an array's only element the text must be one value.
    one_value = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))).eqNullSafe(F.lit(1))
    problem = (
        F.when(F.col(VALUE).isNull(), F.lit(_null_problem(spec)))
        .when(F.length(F.col(VALUE)) == 0, F.lit("empty_value\tthe value has no bytes"))
        .when(~F.is_valid_utf8(text), F.lit("not_utf8\tthe value is not UTF-8"))
        .when(~text.rlike(_OBJECT), F.lit("not_an_object\tthe value is not a JSON object"))
        .when(~one_value, F.lit("malformed_json\tnot one well-formed JSON value"))
        .when(
            body.isNull() | body.getField(_CORRUPT).isNotNull(),
            F.lit("does_not_fit\ta value does not fit the type that the schema gives it"),
        )
    )
    if missing:
        names = F.concat_ws(", ", *missing)
        problem = problem.when(names != "", F.concat(F.lit("missing_field\trequired but missing or null: "), names))
    if infinite:
        too_large = F.coalesce(reduce(or_, infinite), F.lit(False))
        problem = problem.when(too_large, F.lit("does_not_fit\ta number is too large for its type"))
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
    return SKIPPED if spec.null_values == "skip" else "null_value\tthe record has no value"


def _infinite(value: Column, kind: DataType) -> Column | None:
    """A condition that finds a number which became infinite because it is beyond its type; None where there are none."""
    if isinstance(kind, FloatType | DoubleType):
        return F.abs(value) == F.lit(float("inf"))
    if isinstance(kind, StructType):
        inside = [c for field in kind.fields if (c := _infinite(value.getField(field.name), field.dataType)) is not None]
        return reduce(or_, inside) if inside else None
    element = kind.elementType if isinstance(kind, ArrayType) else kind.valueType if isinstance(kind, MapType) else None
    if element is None or _infinite(F.lit(None), element) is None:
        return None
    values = F.map_values(value) if isinstance(kind, MapType) else value
    return F.exists(values, lambda item: cast(Column, _infinite(item, element)))
