"""From Kafka's bytes to columns in real time, by expressions of Spark: Python cannot run there.

Every record is either decoded, or gets a reason for which it goes to quarantine. What Spark's ``from_json`` takes otherwise
than ``lakebound.formats`` does in batches, ``lakebound.spec.real_time_values`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakebound.formats.same_names import as_compared
from lakebound.spec.input_columns import VALUE_COLUMN
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.tombstones import ROW
from lakebound.spec.value import JsonValueSpec
from lakebound_spark.batch.decode import HEADERS, KEY, SKIPPED, VALUE, kafka_struct, raw_columns
from lakebound_spark.batch.landable import outside_years, some_field
from lakebound_spark.batch.record_format import skips_nulls, value_schema
from lakebound_spark.real_time.changed_values import as_named, changes, decoded_type, half_character
from lakebound_spark.real_time.record_parts import RecordPart, header_parts, key_part, plain_part, together

_BODY = "_body"
_OBJECT = r"^[ \t\r\n]*\{"
_BRACKET_BEHIND = r"\}[ \t\r\n]*\]"
"""Where there is none, the text closes no array that it has not opened: such a bracket stands behind the object."""


@dataclass(frozen=True)
class SparkDecoder:
    """Decodes the records of one pipeline. Its columns are built once: each one costs calls into the JVM.

    Attributes:
        stages: Columns, selected one after another.
    """

    stages: tuple[tuple[Column, ...], ...]

    def decode(self, records: DataFrame) -> DataFrame:
        """Return Kafka's records as _kafka, _key, _value, _headers, _parsed and _problem."""
        for columns in self.stages:
            records = records.select(*columns)
        return records


def make_spark_decoder(spec: PipelineSpec, topic_ids: Mapping[str, str]) -> SparkDecoder:
    """Return the decoder of a pipeline.

    Args:
        spec: The pipeline.
        topic_ids: Every row will carry its topic's id.
    """
    located = (kafka_struct(topic_ids).alias(KAFKA_COLUMN), *raw_columns())
    kept = tuple(F.col(name) for name in (KAFKA_COLUMN, KEY, VALUE, HEADERS))
    key, headers = key_part(spec), header_parts(spec)
    schema = value_schema(spec)
    if not isinstance(spec.value, JsonValueSpec):
        own = plain_part(VALUE_COLUMN, F.col(VALUE), "string" if spec.value.format == "string" else "bytes", "the value")
        null = F.when(F.col(VALUE).isNull(), F.lit(_null_problem(spec)))
        own = replace(own, problem=null if own.problem is None else F.coalesce(null, own.problem))
        return SparkDecoder((located, (*kept, *together(own, key, headers))))
    assert schema is not None
    corrupt = _unused_name(schema)
    relaxed = T.StructType([T.StructField(f.name, decoded_type(f.dataType)) for f in schema.fields]).add(
        corrupt, T.StringType()
    )
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}
    body = F.from_json(F.col("value").cast("string"), relaxed, options).alias(_BODY)
    columns = [as_named(F.col(_BODY).getField(f.name), f.dataType).alias(f.name) for f in schema.fields]
    own = RecordPart(tuple(columns), _json_problem(spec, spec.value, schema))
    return SparkDecoder(((*located, body), (*kept, *together(own, key, headers))))


def _unused_name(schema: T.StructType) -> str:
    """Return the field into which Spark puts a text that it cannot decode; no field of the records has its name."""
    name, taken = "_corrupt_record", {as_compared(field.name) for field in schema.fields}
    while name in taken:
        name = f"_{name}"
    return name


def _json_problem(spec: PipelineSpec, value: JsonValueSpec, schema: T.StructType) -> Column:
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
        F.when(F.col(VALUE).isNull(), F.lit(_null_problem(spec, [f.name for f in schema.fields if not f.nullable])))
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
    if value.unknown_fields == "quarantine":
        unknown = F.array_except(F.json_object_keys(text), F.array(*(F.lit(field.name) for field in schema.fields)))
        named = F.concat(F.lit("unknown_field\tnot in the schema: "), F.concat_ws(", ", unknown))
        problem = problem.when(F.size(unknown) > 0, named)
    return problem


def _null_problem(spec: PipelineSpec, required: Sequence[str] = ()) -> str | None:
    if spec.null_values == ROW:
        return f"missing_field\trequired but missing or null: {', '.join(required)}" if required else None
    return SKIPPED if skips_nulls(spec) else "null_value\tthe record has no value"


def _infinite(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test``: a number became infinite because it is beyond its type."""
    return F.abs(value) == F.lit(float("inf")) if isinstance(kind, T.FloatType | T.DoubleType) else None
