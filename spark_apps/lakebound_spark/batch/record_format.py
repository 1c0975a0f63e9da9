"""From a pipeline's YAML to the format of its records: how values, keys and headers are decoded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from lakebound.formats.composed import ComposedFormat, KeyColumns
from lakebound.formats.headers import HeaderColumn, HeadersFormat
from lakebound.formats.kinds import JsonFormat, SchemaFormat, ValueFormat
from lakebound.formats.plain import PlainFormat, PlainKind
from lakebound.spec.input_columns import VALUE_COLUMN
from lakebound.spec.key import JsonKeySpec, SchemaKeySpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.schema_source import SchemaSourceSpec
from lakebound.spec.tombstones import ROW, WITHOUT_ROWS
from lakebound.spec.value import JsonColumns, JsonValueSpec, PlainValueSpec


def record_format(spec: PipelineSpec, unhoused: Collection[str] = ()) -> ValueFormat:
    """Return the format of a pipeline's records.

    Args:
        spec: The pipeline.
        unhoused: Fields of the value's schema for which a table has no column: a record that has one is not landed.
    """
    value, key, headers = _value_format(spec, unhoused), _key_columns(spec), _headers(spec)
    null_is_row = spec.null_values == ROW
    if key is None and headers is None and not null_is_row:
        return value
    return ComposedFormat(value, key, headers, null_is_row)


def columns_of_ddl(ddl: str) -> pa.Schema:
    """Return the columns of a schema in Spark's DDL, as a decoder of records gets them; needs Spark."""
    return _arrow_columns(cast(StructType, StructType.fromDDL(ddl)))


def named_parts(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the key and the headers that become columns, as the errors of bad records name them."""
    headers = dict.fromkeys(f"header {one.name}" for one in spec.headers if one.name is not None)
    return (*(("key",) if spec.key is not None else ()), *headers)


def json_format(schema: StructType, unhoused: Collection[str] = (), *, unknown_refused: bool = False) -> JsonFormat:
    """Return the format of JSON objects.

    Args:
        schema: Of the objects.
        unhoused: Fields of the schema for which a table has no column.
        unknown_refused: Whether a record with a field that is not in the schema is not landed.
    """
    return JsonFormat(_arrow_columns(schema), tuple(sorted(unhoused)), unknown_refused)


def skips_nulls(spec: PipelineSpec) -> bool:
    """Whether a record without a value gives no row, and is no mistake."""
    return spec.null_values in WITHOUT_ROWS


def value_fields(spec: PipelineSpec) -> list[str]:
    """Return the top-level fields of a pipeline's values; of texts and bytes there are none."""
    schema = value_schema(spec)
    return [field.name for field in schema.fields] if schema is not None else []


def value_schema(spec: PipelineSpec) -> StructType | None:
    """Return the schema of a pipeline's values; None where they are texts or bytes."""
    value = spec.value
    if isinstance(value, PlainValueSpec):
        return None
    return _schema_of(value)


def key_schema(spec: PipelineSpec) -> StructType | None:
    """Return the schema of a pipeline's keys; None where they are texts or bytes, or do not land."""
    key = spec.key
    return _schema_of(key) if isinstance(key, JsonKeySpec | SchemaKeySpec) else None


def _value_format(spec: PipelineSpec, unhoused: Collection[str]) -> ValueFormat:
    schema, value = value_schema(spec), spec.value
    if schema is None or isinstance(value, PlainValueSpec):
        return PlainFormat(VALUE_COLUMN, cast(PlainKind, value.format))
    if isinstance(value, JsonValueSpec):
        form = json_format(schema, unhoused, unknown_refused=value.unknown_fields == "quarantine")
        return replace(form, is_connects=value.envelope == "connect")
    return _schema_format(value, schema)


def _schema_format(source: SchemaSourceSpec, schema: StructType) -> SchemaFormat:
    return SchemaFormat(_arrow_columns(schema), source.read.reader, source.record, source.read.known, source.part)


def _schema_of(written: JsonColumns | SchemaSourceSpec) -> StructType:
    if written.value_schema is None:
        return from_arrow_schema(written.read.columns, prefer_timestamp_ntz=True)
    return cast(StructType, StructType.fromDDL(written.value_schema))


def _key_columns(spec: PipelineSpec) -> KeyColumns | None:
    schema, key, whole = key_schema(spec), spec.key, spec.whole_key
    if isinstance(key, JsonKeySpec) and schema is not None:
        return KeyColumns(json_format(schema), key.column, key.columns or ())
    if isinstance(key, SchemaKeySpec) and schema is not None:
        return KeyColumns(_schema_format(key, schema), key.column, key.columns or (), key.read.is_one_value)
    if whole is None:
        return None
    name, kind = whole
    return KeyColumns(PlainFormat(name, cast(PlainKind, kind)), None, (name,))


def _headers(spec: PipelineSpec) -> HeadersFormat | None:
    wanted = tuple(HeaderColumn(one.column, one.name, one.type or "STRING") for one in spec.headers)
    return HeadersFormat(wanted) if wanted else None


def _arrow_columns(schema: StructType) -> pa.Schema:
    fields = [StructField(field.name, _nullable(field.dataType), field.nullable) for field in schema.fields]
    return to_arrow_schema(StructType(fields))


def _nullable(kind: DataType) -> DataType:
    """Return the type with every part nullable: what is inside of a value may be missing."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind
