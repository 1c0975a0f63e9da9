"""From Kafka's bytes to columns: every record is either decoded, or gets a reason for which it goes to quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StringType, StructField, StructType

from lakebound.spec import BytesValueSpec, JsonValueSpec, PipelineSpec
from lakebound.tables import KAFKA_COLUMN

REASON = "_reason"
DETAIL = "_detail"
SKIPPED = "null_value_skipped"
"""Reason of a tombstone that the pipeline skips: counted as filtered, not put into quarantine."""
_CORRUPT = "_corrupt_record"
_VALUE = "_value"
_OBJECT = r"^[ \t\r\n]*\{"


@dataclass(frozen=True)
class Decoder:
    """Decodes batches of one pipeline. Its columns are built once: each one costs calls into the JVM."""

    stages: tuple[tuple[Column, ...], ...]

    def decode(self, records: DataFrame) -> DataFrame:
        """Return Kafka's records as _kafka, _key, _value, _parsed, _reason (null when good) and _detail."""
        for columns in self.stages:
            records = records.select(*columns)
        return records


def make_decoder(spec: PipelineSpec, topic_ids: Mapping[str, str]) -> Decoder:
    """Return the decoder of a pipeline; every row will carry its topic's id from ``topic_ids``."""
    located = (kafka_struct(topic_ids).alias(KAFKA_COLUMN), F.col("key").alias("_key"), F.col("value").alias(_VALUE))
    if isinstance(spec.value, BytesValueSpec):
        reason = F.when(F.col(_VALUE).isNull(), F.lit(_null_reason(spec))).alias(REASON)
        parsed = F.struct(F.col("_key").alias("key"), F.col(_VALUE).alias("value")).alias("_parsed")
        return Decoder((located, (F.col("*"), parsed, reason, _no_detail())))
    return Decoder((located, *_json_stages(spec, spec.value)))


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
    """Return what the transform gets: the value's columns and ``_kafka`` of records without a reason."""
    return decoded.where(F.col(REASON).isNull()).select("_parsed.*", KAFKA_COLUMN)


def quarantine_columns(decoded: DataFrame) -> DataFrame:
    """Return the rows of the quarantine table: where the record is, why it could not be landed, and its bytes."""
    bad = decoded.where(F.col(REASON).isNotNull() & (F.col(REASON) != SKIPPED))
    return bad.select(
        F.col(KAFKA_COLUMN),
        F.col(REASON).alias("reason"),
        F.col(DETAIL).alias("error"),
        F.col("_key").alias("key"),
        F.col(_VALUE).alias("value"),
    )


def _json_stages(spec: PipelineSpec, value: JsonValueSpec) -> tuple[tuple[Column, ...], ...]:
    schema = cast(StructType, StructType.fromDDL(value.value_schema))
    relaxed = StructType([StructField(f.name, f.dataType) for f in schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    columns = [F.col("_all").getField(field.name).alias(field.name) for field in schema.fields]
    reason, detail = _json_reason(spec, value, schema)
    kept = (F.col(KAFKA_COLUMN), F.col("_key"), F.col(_VALUE))
    return (
        (*kept, F.col(_VALUE).cast("string").alias("_text")),
        (*kept, F.col("_text"), F.from_json(F.col("_text"), relaxed, options).alias("_all")),
        (*kept, F.struct(*columns).alias("_parsed"), reason.alias(REASON), detail.alias(DETAIL)),
    )


def _json_reason(spec: PipelineSpec, value: JsonValueSpec, schema: StructType) -> tuple[Column, Column]:
    body = F.col("_all")
    missing = [F.when(body.getField(field.name).isNull(), F.lit(field.name)) for field in schema.fields if not field.nullable]
    missing_names = F.concat_ws(", ", *missing) if missing else F.lit("")
    infinite = [c for field in schema.fields if (c := _infinite(body.getField(field.name), field.dataType)) is not None]
    unknown = F.array_except(F.json_object_keys(F.col("_text")), F.array(*(F.lit(field.name) for field in schema.fields)))
    # from_json reads the first value of a text and ignores the rest; as an array's only element the text must be one value.
    one_value = F.json_array_length(F.concat(F.lit("["), F.col("_text"), F.lit("]"))).eqNullSafe(F.lit(1))
    rules: list[tuple[Column, str, Column]] = [
        (F.col(_VALUE).isNull(), _null_reason(spec), F.lit("the record has no value")),
        (F.length(F.col(_VALUE)) == 0, "empty_value", F.lit("the value has no bytes")),
        (~F.is_valid_utf8(F.col("_text")), "not_utf8", F.lit("the value is not UTF-8")),
        (~F.col("_text").rlike(_OBJECT), "not_an_object", F.lit("the value is not a JSON object")),
        (~one_value, "malformed_json", F.lit("not one well-formed JSON value")),
        (
            body.isNull() | body.getField(_CORRUPT).isNotNull(),
            "does_not_fit",
            F.lit("a value does not fit the type that the schema gives it"),
        ),
        (missing_names != "", "missing_field", F.concat(F.lit("required but missing or null: "), missing_names)),
    ]
    if infinite:
        too_large = F.coalesce(reduce(or_, infinite), F.lit(False))
        rules.append((too_large, "does_not_fit", F.lit("a number is too large for its type")))
    if value.unknown_fields == "quarantine":
        names = F.concat_ws(", ", unknown)
        rules.append((F.size(unknown) > 0, "unknown_field", F.concat(F.lit("not in the schema: "), names)))
    reason = detail = F.lit(None).cast("string")
    for condition, name, text in reversed(rules):
        reason = F.when(condition, F.lit(name)).otherwise(reason)
        detail = F.when(condition, text).otherwise(detail)
    return reason, detail


def _null_reason(spec: PipelineSpec) -> str:
    return SKIPPED if spec.null_values == "skip" else "null_value"


def _no_detail() -> Column:
    return F.when(F.col(_VALUE).isNull(), F.lit("the record has no value")).alias(DETAIL)


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
