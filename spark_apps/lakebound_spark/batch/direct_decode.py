"""Values decoded by the driver's own Python, for small batches, into what Spark's ``from_json`` makes of them.

It takes only what is beyond doubt: one JSON object whose fields all have the type that the schema gives them. Whatever else
there is, a bad record or merely an unusual one, is refused with the whole batch, and Spark decodes it: ``decode`` stays the one
place that says what is bad. ``tests/spark/test_direct_decode.py`` holds the two side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.value import JsonValueSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS

Columns = dict[str, pa.Array]
ValueDecoder = Callable[[RecordColumns], Columns]
"""Makes the value's columns; raises DirectReadRefusedError where Spark is to decode them."""

_SIMPLE: dict[type[DataType], Any] = {
    StringType: str,
    DoubleType: float,
    BooleanType: bool,
    TimestampType: str,
    **{
        kind: Annotated[int, msgspec.Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)]
        for kind, bits in {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}.items()
    },
}
_TIME = r"^(19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z?$"
"""Of the many texts that Spark takes for a timestamp, the usual one. Without a zone it is the session's: UTC."""
_LONG = 1000
"""Jackson, with which Spark reads JSON, bounds the length of numbers and the depth of nesting so (StreamReadConstraints)."""
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""Of JSON; a half of a character alone is a group."""
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{900}")


def make_value_decoder(spec: PipelineSpec, schema: StructType | None) -> ValueDecoder | None:
    """Return the decoder of a pipeline's values, or None where only Spark decodes them.

    Args:
        spec: The pipeline.
        schema: Of its JSON values; None for bytes.
    """
    if schema is None:
        return _bytes_columns
    if not all(_is_taken(field.dataType) for field in schema.fields):
        return None
    unknown_refused = isinstance(spec.value, JsonValueSpec) and spec.value.unknown_fields == "quarantine"
    return _json_decoder(schema, unknown_refused=unknown_refused)


def rows_of_records(records: RecordColumns, columns: Columns, topic_ids: Mapping[str, str]) -> pa.Table:
    """Return the value's columns and ``_kafka``, as a pipeline without a transform lands them.

    Args:
        records: The records; as many as each column has values.
        columns: Decoded values, by column.
        topic_ids: Kafka's id of each topic, by name.
    """
    stamps = np.array(records.timestamps_ms, dtype=np.int64)
    milliseconds = pa.array(stamps, pa.timestamp("ms"), mask=(stamps < FIRST_MS) | (stamps > LAST_MS))
    kafka = {
        "topic": pa.array(records.topics, pa.string()),
        "topic_id": pa.array([topic_ids[topic] for topic in records.topics], pa.string()),
        "partition": pa.array(records.partitions, pa.int32()),
        "offset": pa.array(records.offsets, pa.int64()),
        "timestamp": milliseconds.cast(pa.timestamp("us")).cast(KAFKA_TYPE.field("timestamp").type),
        "ordinal": pa.array(np.zeros(len(records), dtype=np.int32)),
    }
    located = pa.StructArray.from_arrays([kafka[field.name] for field in KAFKA_TYPE], fields=list(KAFKA_TYPE))
    return pa.table({**columns, KAFKA_COLUMN: located})


def _bytes_columns(records: RecordColumns) -> Columns:
    _whole(records)
    return {"key": pa.array(records.keys, pa.binary()), "value": pa.array(records.values, pa.binary())}


def _json_decoder(schema: StructType, *, unknown_refused: bool) -> ValueDecoder:
    decode = msgspec.json.Decoder(_struct(schema, unknown_refused=unknown_refused)).decode
    fields = [(field.name, attrgetter(f"f{index}"), field.dataType) for index, field in enumerate(schema.fields)]

    def columns(records: RecordColumns) -> Columns:
        values = _whole(records)
        _check_text(values)
        try:
            rows = [decode(value) for value in values]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise DirectReadRefusedError(f"a record is not plainly what the schema says: {exc}") from exc
        return {name: _column([get(row) for row in rows], kind) for name, get, kind in fields}

    return columns


def _whole(records: RecordColumns) -> list[bytes]:
    values = [value for value in records.values if value is not None]
    if len(values) < len(records):
        raise DirectReadRefusedError("a record has no value")
    return values


def _check_text(values: Sequence[bytes]) -> None:
    """Refuse what the decoder would ignore in fields that the schema does not name."""
    try:
        for value in values:
            if not value.isascii():
                value.decode()
    except UnicodeDecodeError as exc:
        raise DirectReadRefusedError(f"a record is not UTF-8: {exc}") from exc
    if any(len(value) > _LONG and _strains_jackson(value) for value in values):
        raise DirectReadRefusedError("a record has a very long number, or is deeply nested")
    if any(b"\\u" in value and any(found[1] for found in _ESCAPES.finditer(value)) for value in values):
        raise DirectReadRefusedError("an escape in a record is half a character")
    if any(b'Infinity\\"' in value for value in values):
        raise DirectReadRefusedError("a record holds the text that Spark makes of a number beyond DOUBLE")


def _strains_jackson(value: bytes) -> bool:
    return value.count(b"[") + value.count(b"{") > _LONG // 2 or _LONG_NUMBER.search(value) is not None


def _is_taken(kind: DataType, *, nested: bool = False) -> bool:
    if isinstance(kind, ArrayType):
        return _is_taken(kind.elementType, nested=True)
    if isinstance(kind, StructType):
        return all(_is_taken(field.dataType, nested=True) for field in kind.fields)
    return type(kind) in _SIMPLE and not (nested and isinstance(kind, TimestampType))


def _struct(schema: StructType, *, unknown_refused: bool = False, nested: bool = False) -> type[msgspec.Struct]:
    """Return a type with fields f0, f1, ... under the schema's names; inside of a value Spark takes each as nullable."""
    fields: list[Any] = []
    for index, field in enumerate(schema.fields):
        kind = _python_type(field.dataType)
        fields.append((f"f{index}", kind | None, None) if field.nullable or nested else (f"f{index}", kind))
    names = {f"f{index}": field.name for index, field in enumerate(schema.fields)}
    return msgspec.defstruct(
        "Value", fields, rename=names, forbid_unknown_fields=unknown_refused, kw_only=True, gc=False, frozen=True
    )


def _python_type(kind: DataType) -> Any:
    if isinstance(kind, ArrayType):
        return list[_python_type(kind.elementType) | None]  # type: ignore[misc]
    if isinstance(kind, StructType):
        return _struct(kind, nested=True)
    return _SIMPLE[type(kind)]


def _column(values: list[Any], kind: DataType) -> pa.Array:
    if isinstance(kind, ArrayType | StructType):
        return pa.array(msgspec.to_builtins(values), to_arrow_type(kind))
    if isinstance(kind, TimestampType):
        return _timestamps(pa.array(values, pa.string()))
    return pa.array(values, to_arrow_type(kind))


def _timestamps(texts: pa.Array) -> pa.Array:
    if pc.all(pc.match_substring_regex(texts, _TIME)).as_py() is False:
        raise DirectReadRefusedError("a timestamp is not written in the usual way")
    try:
        return pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid as exc:
        raise DirectReadRefusedError(f"no timestamp: {exc}") from exc
